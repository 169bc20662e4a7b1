#include "bootstrap/offer.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <optional>
#include <set>

#include "bootstrap/socket.h"
#include "tandem/error.h"

namespace tandem::bootstrap {

namespace {

Fd listen_under(const std::string& name) {
  try {
    return listen_local(name);
  } catch (const RuntimeFailure& error) {
    throw RuntimeFailure(fmt::format("another process of this job is PE 0 already ({})", error.what()));
  }
}

/// Its process; nothing where it is another user's.
std::optional<pid_t> process_of(const Fd& socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != ::geteuid())
    return std::nullopt;
  return peer.pid;
}

}  // namespace

Offer::Offer(const std::string& name, const UniqueId& id, int takers, const Deadline& deadline)
    : id_(id), takers_(takers), deadline_(deadline), listener_(listen_under(name)) {
  service_.start([this] { run(); });
}

void Offer::run() {
  std::set<pid_t> taken;
  while (taken.size() < static_cast<std::size_t>(takers_) && !deadline_.passed()) {
    std::array<pollfd, 2> polled{{{service_.wake(), POLLIN, 0}, {listener_.get(), POLLIN, 0}}};
    if (::poll(polled.data(), polled.size(), deadline_.milliseconds()) < 0 && errno != EINTR) break;
    if (polled[0].revents != 0 && service_.is_stopping()) break;
    const Fd socket = polled[1].revents != 0 ? accept_one(listener_) : Fd();
    const auto process = socket ? process_of(socket) : std::nullopt;
    if (process && ::send(socket.get(), id_.bytes().data(), UniqueId::kBytes, MSG_NOSIGNAL) > 0) taken.insert(*process);
  }
  listener_.reset();
  over_ = true;
}

UniqueId take_offer(const std::string& name, const Deadline& deadline) {
  while (!deadline.passed()) {
    const Fd socket = connect_local(name);
    if (socket && user_of_peer(socket) != ::geteuid())
      throw RuntimeFailure("the local socket of this job's PE 0 belongs to another user");
    UniqueId::Bytes bytes{};
    const Deadline answer(1);
    if (socket && wait_for(socket.get(), POLLIN, answer) &&
        ::recv(socket.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()))
      return UniqueId::from_bytes(bytes);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  throw Timeout("PE 0 of this job did not come, or runs on another host (then TANDEM_UNIQUE_ID has to be set)");
}

}  // namespace tandem::bootstrap
