#include "bootstrap/protocol/socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include "bootstrap/protocol/within.h"
#include "tandem/error.h"

namespace tandem::bootstrap {

namespace {

constexpr int kFlags = SOCK_NONBLOCK | SOCK_CLOEXEC;
constexpr int kBacklog = 1024;
/// Most seconds for the lookup of the own address by its name.
constexpr double kResolveOwn = 30;
constexpr const char* kForHosts = "; processes of several hosts need an address that all of them reach";

std::string reason(int error) { return std::generic_category().message(error); }

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

struct Resolved {
  int code;  // of getaddrinfo
  AddressList list;
};

Resolved look_up(const std::string& address, std::uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int code = getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &list);
  return {code, {list, freeaddrinfo}};
}

/// Names are looked up on another thread, because name servers may take minutes.
AddressList resolve(const std::string& address, std::uint16_t port, int flags, const Deadline& deadline) {
  if (Resolved numeric = look_up(address, port, flags | AI_NUMERICHOST); numeric.code == 0)
    return std::move(numeric.list);
  auto named = within(deadline, [=] { return look_up(address, port, flags); });
  if (!named) throw Timeout(fmt::format("address '{}': the name service does not answer", address));
  if (named->code != 0) throw InvalidArgument(fmt::format("address '{}': {}", address, gai_strerror(named->code)));
  return std::move(named->list);
}

/// Makes an address in the abstract name space: a zero, then the name without a terminating zero.
struct LocalAddress {
  explicit LocalAddress(const std::string& name) {
    address.sun_family = AF_UNIX;
    if (name.size() + 1 > sizeof(address.sun_path))
      throw InvalidArgument(fmt::format("local socket: a name of {} bytes given, allowed are {}", name.size(),
                                        sizeof(address.sun_path) - 1));
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + (name.empty() ? 0 : 1 + name.size()));
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }

  sockaddr_un address{};
  socklen_t length;
};

/// Returns an error number, or 0 if connected.
int finish_connect(const Fd& socket, const Deadline& deadline) {
  if (!wait_for(socket.get(), POLLOUT, deadline)) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof(error);
  return getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

std::string number_of(const sockaddr_storage& address, socklen_t size) {
  std::array<char, NI_MAXHOST> text{};
  const int code = getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, text.data(), text.size(), nullptr, 0,
                               NI_NUMERICHOST);
  if (code != 0) throw RuntimeFailure(fmt::format("address of a socket: {}", gai_strerror(code)));
  return text.data();
}

}  // namespace

void throw_errno(const std::string& what) {
  const int error = errno;
  throw RuntimeFailure(fmt::format("{}: {}", what, reason(error)));
}

Fd listen_tcp(const std::string& address, std::uint16_t port) {
  const AddressList list = resolve(address, port, AI_PASSIVE, Deadline(kResolveOwn));
  int error = 0;
  for (const addrinfo* a = list.get(); a != nullptr; a = a->ai_next) {
    Fd socket(::socket(a->ai_family, a->ai_socktype | kFlags, a->ai_protocol));
    const int on = 1;  // an earlier job's connections may still hold the port
    if (socket && port != 0) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (socket && ::bind(socket.get(), a->ai_addr, a->ai_addrlen) == 0 && ::listen(socket.get(), kBacklog) == 0)
      return socket;
    error = errno;
  }
  throw InvalidArgument(fmt::format("address '{}'{}: cannot listen there: {}", address,
                                    port == 0 ? "" : fmt::format(" port {}", port), reason(error)));
}

std::uint16_t port_of(const Fd& listener) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) throw_errno("getsockname");
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

std::string address_of(const Fd& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) throw_errno("getsockname");
  return number_of(address, size);
}

std::string address_of_peer(const Fd& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  return number_of(address, size);
}

Fd connect_tcp(const std::string& address, std::uint16_t port, const Deadline& deadline) {
  const AddressList list = resolve(address, port, 0, deadline);
  for (;;) {
    int error = 0;
    for (const addrinfo* a = list.get(); a != nullptr; a = a->ai_next) {
      Fd socket(::socket(a->ai_family, a->ai_socktype | kFlags, a->ai_protocol));
      if (!socket && errno != EAFNOSUPPORT) throw_errno("socket");
      if (!socket) {  // this host has no such addresses, perhaps no IPv6
        if (error == 0) error = EAFNOSUPPORT;
        continue;
      }
      const bool done = ::connect(socket.get(), a->ai_addr, a->ai_addrlen) == 0;
      error = done ? 0 : errno == EINPROGRESS ? finish_connect(socket, deadline) : errno;
      if (error != 0) continue;
      const int on = 1;
      ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      return socket;
    }
    // The rendezvous was open before its id was handed over, so a refusal means that it has ended.
    if (error == ECONNREFUSED)
      throw RuntimeFailure(
          fmt::format("rendezvous at {} port {}: no process listens there any more{}", address, port, kForHosts));
    if (error == ENETUNREACH || error == EAFNOSUPPORT)
      throw RuntimeFailure(
          fmt::format("rendezvous at {} port {}: this host has no route to that address{}", address, port, kForHosts));
    if (deadline.passed())
      throw Timeout(
          fmt::format("rendezvous at {} port {}: not reached: {}{}", address, port, reason(error), kForHosts));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

Fd listen_local(const std::string& name, int type) {
  const LocalAddress address(name);
  Fd socket(::socket(AF_UNIX, type | kFlags, 0));
  if (!socket) throw_errno("local socket");
  if (::bind(socket.get(), address.get(), address.length) != 0) {
    if (errno == EADDRINUSE) return {};
    throw_errno("local socket");
  }
  if (::listen(socket.get(), kBacklog) != 0) throw_errno("local socket");
  return socket;
}

std::string name_of(const Fd& listener) {
  sockaddr_un address{};
  socklen_t size = sizeof(address);
  if (::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) throw_errno("getsockname");
  const std::size_t before = offsetof(sockaddr_un, sun_path) + 1;
  return size > before ? std::string(address.sun_path + 1, size - before) : std::string();
}

Fd connect_local(const std::string& name, int type, const Deadline& deadline) {
  const LocalAddress address(name);
  Fd socket(::socket(AF_UNIX, type | kFlags, 0));
  if (!socket) throw_errno("local socket");
  while (::connect(socket.get(), address.get(), address.length) != 0) {
    if (errno == ECONNREFUSED || errno == EPROTOTYPE) return {};
    if (errno != EAGAIN && errno != EINTR) throw_errno("local socket");
    if (deadline.passed()) return {};
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return socket;
}

std::string Peer::text() const {
  return process == 0 ? fmt::format("a process of user {}", user) : fmt::format("process {} of user {}", process, user);
}

Peer peer_of(const Fd& socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) throw_errno("SO_PEERCRED");
  return {peer.pid, peer.uid};
}

Fd accept_one(const Fd& listener) {
  Fd socket(::accept4(listener.get(), nullptr, nullptr, kFlags));
  if (socket) {
    const int on = 1;  // local sockets reject the option; they never wait to fill a packet
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  return socket;
}

bool wait_for(int fd, short events, const Deadline& deadline) {
  pollfd one{fd, events, 0};
  for (;;) {
    const int ready = ::poll(&one, 1, deadline.milliseconds());
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) throw_errno("poll");
    if (ready == 0 && deadline.passed()) return false;
  }
}

std::size_t send_some(const Fd& socket, View bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t sent = ::send(socket.get(), bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) break;
    if (sent <= 0) throw_errno("the connection to the rendezvous broke");
    done += static_cast<std::size_t>(sent);
  }
  return done;
}

void send_all(const Fd& socket, View bytes, const Deadline& deadline) {
  for (;;) {
    bytes = bytes.subspan(send_some(socket, bytes));
    if (bytes.empty()) return;
    if (!wait_for(socket.get(), POLLOUT, deadline)) throw Timeout("the rendezvous does not take messages");
  }
}

}  // namespace tandem::bootstrap
