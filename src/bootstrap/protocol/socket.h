#pragma once
/// Sockets, all non-blocking and closed on exec. Every wait for one has a deadline.

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "bootstrap/protocol/deadline.h"
#include "bootstrap/protocol/fd.h"
#include "bootstrap/protocol/mac.h"

namespace tandem::bootstrap {

/// Listens on a port; 0: one that the system chooses. Throws InvalidArgument for an address of another host or a port
/// in use, and Timeout if the lookup of the address's name takes too long.
Fd listen_tcp(const std::string& address, std::uint16_t port = 0);
std::uint16_t port_of(const Fd& listener);
/// Returns the address of this end as a number.
std::string address_of(const Fd& socket);
/// Returns the address of the other end, or "" if the connection is closed.
std::string address_of_peer(const Fd& socket);
/// Tries until the deadline. Throws Timeout with the last reason; RuntimeFailure at once if no process listens, or this
/// host has no route to the address.
Fd connect_tcp(const std::string& address, std::uint16_t port, const Deadline& deadline);

/// Listens on a Unix socket in the abstract name space (unix(7)), which leaves no file behind. `type` is SOCK_STREAM,
/// or SOCK_SEQPACKET to keep messages whole. With an empty name the system chooses one. Returns an invalid socket if
/// the name is taken.
Fd listen_local(const std::string& name, int type);
std::string name_of(const Fd& listener);
/// Returns an invalid socket if no listener of that type has the name, or if its queue is still full at the deadline.
Fd connect_local(const std::string& name, int type, const Deadline& deadline = Deadline(0));

/// The process at the other end of a local socket, which listened or connected.
struct Peer {
  pid_t process;  ///< 0: not visible from here, for example in another container
  uid_t user;

  bool is_of_this_user() const { return user == ::geteuid(); }
  std::string text() const;
};
Peer peer_of(const Fd& socket);

/// Returns an invalid socket if no connection is waiting.
Fd accept_one(const Fd& listener);

/// Waits for poll(2)'s `events`. Returns false if the deadline has passed.
bool wait_for(int fd, short events, const Deadline& deadline);
/// Returns the number of bytes that the socket takes at once. Throws RuntimeFailure if the connection is broken.
std::size_t send_some(const Fd& socket, View bytes);
/// Throws Timeout, or RuntimeFailure if the connection is broken.
void send_all(const Fd& socket, View bytes, const Deadline& deadline);

/// Returns a RuntimeFailure "WHAT: the system's text for errno".
[[noreturn]] void throw_errno(const std::string& what);

}  // namespace tandem::bootstrap
