#include "bootstrap/host.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "bootstrap/socket.h"
#include "tandem/error.h"

namespace tandem::bootstrap {

namespace {

/// Connections that have not proved the secret yet. More wait in the listener's queue.
constexpr std::size_t kMostStrangers = 64;
/// How long an ending process goes on for the world's other processes.
constexpr double kGrace = 2;
constexpr std::size_t kMostFromMember = kMostContribution + 1024;

}  // namespace

Host::Host(const Key& secret, const std::string& address)
    : secret_(secret), listener_(listen_tcp(address)), port_(port_of(listener_)) {
  service_.start([this] { run(); });
}

void Host::run() {
  try {
    serve();
  } catch (const std::exception& error) {
    report(error);
  }
  connections_.clear();
  listener_.reset();
  over_ = true;
}

void Host::report(const std::exception& error) {
  try {
    meeting_.fail_all({failure_of(error).kind, fmt::format("the rendezvous failed: {}", error.what())});
    send_letters();
    flush();
  } catch (const std::exception&) {
    // The members still see that their connections are closed.
  }
}

void Host::serve() {
  std::optional<Deadline> end;
  while (!meeting_.over() || std::any_of(connections_.begin(), connections_.end(),
                                         [](const auto& one) { return one.second->has_output(); })) {
    if (!end && service_.is_stopping()) end.emplace(kGrace);
    if (end && (end->passed() || connections_.empty())) return;
    if (meeting_.complete()) listener_.reset();
    std::vector<pollfd> polled{{end ? -1 : service_.wake(), POLLIN, 0}};
    const auto strangers = std::count_if(connections_.begin(), connections_.end(),
                                         [](const auto& one) { return !one.second->is_member(); });
    polled.push_back({static_cast<std::size_t>(strangers) < kMostStrangers ? listener_.get() : -1, POLLIN, 0});
    for (const auto& [fd, connection] : connections_)
      polled.push_back({fd, static_cast<short>(POLLIN | (connection->has_output() ? POLLOUT : 0)), 0});
    const int patience = end ? std::min(patience_ms(), end->milliseconds()) : patience_ms();
    if (::poll(polled.data(), polled.size(), patience) < 0 && errno != EINTR) throw_errno("poll");
    if (polled[1].revents != 0) take_in();
    for (std::size_t i = 2; i < polled.size(); ++i)
      if ((polled[i].revents & ~POLLOUT) != 0) read(polled[i].fd);
    drop_late_strangers();
    meeting_.look_at_clock();
    send_letters();
    flush();
  }
}

int Host::patience_ms() const {
  Clock::time_point next = Clock::now() + std::chrono::hours(1);
  if (const auto deadline = meeting_.next_deadline()) next = std::min(next, *deadline);
  for (const auto& [fd, connection] : connections_)
    if (!connection->is_member()) next = std::min(next, connection->deadline().at());
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
  return static_cast<int>(std::max<long long>(left, 0));
}

void Host::take_in() {
  Fd socket = accept_one(listener_);
  if (!socket) return;
  const int fd = socket.get();
  connections_[fd] = std::make_unique<Connection>(std::move(socket), secret_);
}

void Host::read(int fd) {
  const auto found = connections_.find(fd);
  if (found == connections_.end()) return;
  Connection& connection = *found->second;
  try {
    for (const Frame& frame : connection.receive()) handle(connection, frame);
    if (connection.is_closed()) drop(fd, "its process has ended, or closed the connection");
  } catch (const BadMessage& error) {
    drop(fd, error.what());
  }
}

void Host::handle(Connection& connection, const Frame& frame) {
  if (!connection.is_member()) return join(connection, frame);
  switch (frame.kind) {
    case Kind::kContribute:
      return meeting_.contribute(connection.pe(), Contribution::decode(frame.payload));
    case Kind::kFailed:
      return meeting_.fail(connection.pe(), Failure::decode(frame.payload));
    case Kind::kLeave:
      return meeting_.leave(connection.pe());
    default:
      throw BadMessage("a message that no member sends");
  }
}

void Host::join(Connection& connection, const Frame& frame) {
  if (frame.kind != Kind::kJoin) throw BadMessage("a stranger who does not join");
  Reader reader(frame.payload);
  const auto pe = static_cast<int>(reader.u32());
  const auto size = static_cast<int>(reader.u32());
  reader.end();
  try {
    meeting_.join(pe, size);
    connection.admit(pe, kMostFromMember);
    connection.send(Kind::kWelcome, {});
  } catch (const Error& error) {
    // It knows the secret, so it is told why; closing is its part.
    connection.send(Kind::kFailed, failure_of(error).encode());
  }
}

void Host::drop(int fd, const std::string& why) {
  const auto found = connections_.find(fd);
  if (found == connections_.end()) return;
  const std::unique_ptr<Connection> connection = std::move(found->second);
  connections_.erase(found);
  if (connection->is_member()) meeting_.lose(connection->pe(), why);
}

void Host::drop_late_strangers() {
  std::vector<int> late;
  for (const auto& [fd, connection] : connections_)
    if (!connection->is_member() && connection->deadline().passed()) late.push_back(fd);
  for (const int fd : late) drop(fd, "");
}

void Host::send_letters() {
  // Sending may find that somebody is gone, which makes more letters.
  for (auto letters = meeting_.take_letters(); !letters.empty(); letters = meeting_.take_letters())
    for (const Meeting::Letter& letter : letters)
      for (auto& [fd, connection] : connections_) {
        if (!connection->is_member() || connection->pe() != letter.to) continue;
        try {
          connection->send(letter.kind, letter.payload);
        } catch (const BadMessage& error) {
          drop(fd, error.what());
        }
        break;
      }
}

void Host::flush() {
  std::vector<std::pair<int, std::string>> broken;
  for (auto& [fd, connection] : connections_) {
    try {
      connection->flush();
    } catch (const BadMessage& error) {
      broken.emplace_back(fd, error.what());
    }
  }
  for (const auto& [fd, why] : broken) drop(fd, why);
  if (!broken.empty()) send_letters();
}

}  // namespace tandem::bootstrap
