#pragma once
/// Sockets, all non-blocking and closed on exec; whoever waits for one does so with a deadline.

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "bootstrap/protocol/deadline.h"
#include "bootstrap/protocol/fd.h"
#include "bootstrap/protocol/seal.h"

namespace tandem::bootstrap {

/// Listens on a port that the system chooses. Throws InvalidArgument for an address that is not this host's,
/// Timeout where its name is not found in time.
Fd listen_tcp(const std::string& address);
std::uint16_t port_of(const Fd& listener);
/// This end's, as a number.
std::string address_of(const Fd& socket);
/// The other end's; empty where that has gone.
std::string address_of_peer(const Fd& socket);
/// Tries until the deadline. Throws Timeout with the last reason.
Fd connect_tcp(const std::string& address, std::uint16_t port, const Deadline& deadline);

/// Unix sockets in the abstract name space (unix(7)): no file is left behind. `type` is SOCK_STREAM, or SOCK_SEQPACKET
/// where a message has to arrive whole. An empty name: the system chooses one. Invalid where the name is taken.
Fd listen_local(const std::string& name, int type);
std::string name_of(const Fd& listener);
/// Invalid where nobody listens under that name with that type, or the listener's queue is still full at the deadline.
Fd connect_local(const std::string& name, int type, const Deadline& deadline = Deadline(0));

/// The process at the other end of a local socket: the one that listened, or that connected.
struct Peer {
  pid_t process;  ///< 0: it cannot be seen from here, as in another container
  uid_t user;

  bool is_of_this_user() const { return user == ::geteuid(); }
  std::string text() const;
};
Peer peer_of(const Fd& socket);

/// Invalid where nobody is waiting to be accepted.
Fd accept_one(const Fd& listener);

/// Waits for poll(2)'s `events`. False: the deadline has passed.
bool wait_for(int fd, short events, const Deadline& deadline);
/// Number of bytes that the socket takes at once. Throws RuntimeFailure where the connection broke.
std::size_t send_some(const Fd& socket, View bytes);
/// Throws Timeout, or RuntimeFailure where the connection broke.
void send_all(const Fd& socket, View bytes, const Deadline& deadline);

/// "what: the system's words for errno", as a RuntimeFailure.
[[noreturn]] void throw_errno(const std::string& what);

}  // namespace tandem::bootstrap
