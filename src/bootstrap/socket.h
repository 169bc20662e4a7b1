#pragma once
/// Sockets, all non-blocking and closed on exec; whoever waits for one does so with a deadline.

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "bootstrap/deadline.h"
#include "bootstrap/fd.h"
#include "bootstrap/seal.h"

namespace tandem::bootstrap {

/// Listens on a port that the system chooses. Throws InvalidArgument for an address that is not this host's,
/// Timeout where its name is not found in time.
Fd listen_tcp(const std::string& address);
std::uint16_t port_of(const Fd& listener);
/// This end's, as a number.
std::string address_of(const Fd& socket);
/// Tries until the deadline. Throws Timeout with the last reason.
Fd connect_tcp(const std::string& address, std::uint16_t port, const Deadline& deadline);

/// Unix sockets in the abstract name space (unix(7)): no file is left behind. Of sequenced packets, so that a message
/// arrives whole. An empty name: the system chooses one.
Fd listen_local(const std::string& name);
std::string name_of(const Fd& listener);
/// Invalid where nobody listens under that name, or the listener's queue is full.
Fd connect_local(const std::string& name);
/// The user whose process is at the other end.
uid_t user_of_peer(const Fd& socket);

/// Invalid where nobody is waiting to be accepted.
Fd accept_one(const Fd& listener);

/// Waits for poll(2)'s `events`. False: the deadline has passed.
bool wait_for(int fd, short events, const Deadline& deadline);
/// Throws Timeout, or RuntimeFailure where the connection broke.
void send_all(const Fd& socket, View bytes, const Deadline& deadline);

/// "what: the system's words for errno", as a RuntimeFailure.
[[noreturn]] void throw_errno(const std::string& what);

}  // namespace tandem::bootstrap
