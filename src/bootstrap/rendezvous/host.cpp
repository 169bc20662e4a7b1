#include "bootstrap/rendezvous/host.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "base/log.h"
#include "bootstrap/local/environment.h"
#include "bootstrap/protocol/socket.h"
#include "tandem/error.h"

namespace tandem::bootstrap {

namespace {

/// Most connections that have not proved the secret. Each costs a descriptor, so the oldest is closed if there are
/// more. Processes of the world send their hello at once.
constexpr std::size_t kMostStrangers = 128;
constexpr std::size_t kMostOfAddress = 32;
/// Connections that are accepted before others are served.
constexpr int kAtOnce = 16;
/// Milliseconds until the next accept after one that found no free descriptor.
constexpr int kFullPause = 20;
/// Seconds for which an ending process keeps serving the other processes of the world.
constexpr double kGrace = 2;
constexpr std::size_t kMostFromMember = kMostContribution + 1024;

Fd listen_local_for(const IdContents& contents) {
  Fd listener = listen_local(local_name(contents), SOCK_STREAM);
  if (!listener) throw RuntimeFailure("rendezvous: its local socket's name is taken");
  return listener;
}

}  // namespace

Host::Host(const Key& secret, const std::string& address, HandOff hand_off)
    : contents_{address, 0, secret},
      tcp_(listen_tcp(address)),
      hand_off_(std::move(hand_off)),
      coordinator_(slow_wait_s()) {
  contents_.port = port_of(tcp_);
  local_ = listen_local_for(contents_);
  service_.start([this] { run(); });
}

Host::Host(const IdContents& contents, Fd& listener, std::function<void(Fd)> give_back)
    : contents_(contents),
      give_back_(std::move(give_back)),
      local_(listen_local_for(contents_)),
      coordinator_(slow_wait_s()) {
  tcp_ = std::move(listener);
  try {
    service_.start([this] { run(); });
  } catch (...) {
    listener = std::move(tcp_);
    throw;
  }
}

void Host::run() {
  try {
    serve();
  } catch (const std::exception& error) {
    report(error);
  }
  connections_.clear();
  close_listeners();
  over_ = true;
}

void Host::report(const std::exception& error) {
  try {
    coordinator_.fail_all({failure_of(error).kind, fmt::format("the rendezvous failed: {}", error.what())});
    send_messages();
    flush();
  } catch (const std::exception&) {
    // The members still notice that their connections are closed.
  }
}

void Host::close_listeners() {
  if (tcp_ && give_back_) give_back_(std::move(tcp_));
  for (Fd* const listener : {&tcp_, &local_, &hand_off_.listener}) {
    // A child of fork may hold a copy of the socket, which would go on listening.
    if (*listener) ::shutdown(listener->get(), SHUT_RDWR);
    listener->reset();
  }
}

void Host::serve() {
  std::optional<Deadline> end;
  while (!coordinator_.over() || std::any_of(connections_.begin(), connections_.end(),
                                             [](const auto& one) { return one.second->has_output(); })) {
    if (!end && service_.is_stopping()) end.emplace(kGrace);
    if (end && (end->passed() || connections_.empty())) return;
    if (coordinator_.complete()) close_listeners();
    std::vector<pollfd> polled{{end ? -1 : service_.wake(), POLLIN, 0}};
    const std::array<const Fd*, 3> listeners{&tcp_, &local_, &hand_off_.listener};
    for (const Fd* const listener : listeners) polled.push_back({is_full_ ? -1 : listener->get(), POLLIN, 0});
    for (const auto& [fd, connection] : connections_)
      polled.push_back({fd, static_cast<short>(POLLIN | (connection->has_output() ? POLLOUT : 0)), 0});
    int timeout = end ? std::min(poll_timeout_ms(), end->milliseconds()) : poll_timeout_ms();
    if (is_full_) timeout = std::min(timeout, kFullPause);
    if (::poll(polled.data(), polled.size(), timeout) < 0 && errno != EINTR) throw_errno("poll");
    for (std::size_t i = 1 + listeners.size(); i < polled.size(); ++i)
      if ((polled[i].revents & ~POLLOUT) != 0) read(polled[i].fd);
    is_full_ = false;
    for (std::size_t i = 0; i < listeners.size(); ++i)
      if (polled[1 + i].revents != 0) take_in(*listeners[i]);
    drop_late();
    coordinator_.look_at_clock(about_strangers());
    for (const std::string& line : coordinator_.take_slow()) log_line(LogLevel::kWarn, [&] { return line; });
    send_messages();
    flush();
  }
}

int Host::poll_timeout_ms() const {
  Clock::time_point next = Clock::now() + std::chrono::hours(1);
  if (const auto deadline = coordinator_.next_deadline()) next = std::min(next, *deadline);
  for (const auto& [fd, connection] : connections_)
    if (!connection->is_member()) next = std::min(next, connection->deadline().at());
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
  return static_cast<int>(std::max<long long>(left, 0));
}

void Host::take_in(const Fd& listener) {
  for (int i = 0; i < kAtOnce; ++i) {
    Fd socket = accept_one(listener);
    if (!socket && (errno == EMFILE || errno == ENFILE)) is_full_ = true;
    if (!socket) return;
    const bool is_local = &listener != &tcp_;
    if (is_local && !peer_of(socket).is_of_this_user()) continue;
    const std::string address = is_local ? "" : address_of_peer(socket);
    if (!is_local && address.empty()) continue;  // the peer has disconnected
    make_room(address);
    const int fd = socket.get();
    const bool takes_id = &listener == &hand_off_.listener;
    if (takes_id) takers_.insert(fd);
    connections_[fd] =
        std::make_unique<Connection>(std::move(socket), takes_id ? hand_off_.job : contents_.secret, address, nonces_);
  }
}

/// Makes room for one more unauthenticated connection from that address.
void Host::make_room(const std::string& address) {
  const Connection* oldest = nullptr;
  const Connection* oldest_there = nullptr;
  std::size_t all = 0;
  std::size_t there = 0;
  const auto older = [](const Connection* a, const Connection* b) {
    return a == nullptr || b->deadline().at() < a->deadline().at() ? b : a;
  };
  for (const auto& [fd, connection] : connections_) {
    if (!connection->is_stranger()) continue;
    ++all;
    oldest = older(oldest, connection.get());
    if (connection->address() != address) continue;
    ++there;
    oldest_there = older(oldest_there, connection.get());
  }
  if (there >= kMostOfAddress)
    drop(oldest_there->socket().get(), "");
  else if (all >= kMostStrangers)
    drop(oldest->socket().get(), "");
}

std::string Host::about_strangers() const {
  const auto waiting = std::count_if(connections_.begin(), connections_.end(),
                                     [](const auto& one) { return one.second->is_stranger(); });
  if (turned_away_ == 0 && waiting == 0) return "";
  return fmt::format("; of connections without the world's secret, {} were closed and {} wait", turned_away_, waiting);
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
      return coordinator_.contribute(connection.pe(), Contribution::decode(frame.payload));
    case Kind::kFailed:
      return coordinator_.fail(connection.pe(), Failure::decode(frame.payload));
    case Kind::kLeave:
      return coordinator_.leave(connection.pe());
    default:
      throw BadMessage("a message that no member sends");
  }
}

void Host::join(Connection& connection, const Frame& frame) {
  if (frame.kind != Kind::kJoin) throw BadMessage("an unknown process that does not join");
  Reader reader(frame.payload);
  const auto pe = static_cast<int>(reader.u32());
  const auto size = static_cast<int>(reader.u32());
  const std::string host = reader.text();
  reader.end();
  try {
    connection.send(Kind::kWelcome, welcome(connection, pe, size, host));
  } catch (const Error& error) {
    // The process knows the secret, so it gets the reason; it closes the connection itself.
    connection.send(Kind::kFailed, failure_of(error).encode());
  }
}

/// Returns the id for processes that ask for it, and nothing for connections that are members from now on.
Bytes Host::welcome(Connection& connection, int pe, int size, const std::string& host) {
  if (takers_.count(connection.socket().get()) != 0) {
    hand_off_.check(pe, size, peer_of(connection.socket()));
    const UniqueId::Bytes id = id_of(contents_).bytes();
    return {id.begin(), id.end()};
  }
  coordinator_.join(pe, size, host);
  connection.admit(pe, kMostFromMember);
  return {};
}

void Host::drop(int fd, const std::string& why) {
  const auto found = connections_.find(fd);
  if (found == connections_.end()) return;
  const std::unique_ptr<Connection> connection = std::move(found->second);
  connections_.erase(found);
  takers_.erase(fd);
  if (connection->is_stranger()) ++turned_away_;
  if (connection->is_member()) coordinator_.lose(connection->pe(), why);
}

void Host::drop_late() {
  std::vector<int> late;
  for (const auto& [fd, connection] : connections_)
    if (!connection->is_member() && connection->deadline().passed()) late.push_back(fd);
  for (const int fd : late) drop(fd, "");
}

void Host::send_messages() {
  // Sending may find broken connections, which makes more messages.
  for (auto messages = coordinator_.take_messages(); !messages.empty(); messages = coordinator_.take_messages())
    for (const Coordinator::Message& message : messages)
      for (auto& [fd, connection] : connections_) {
        if (!connection->is_member() || connection->pe() != message.to) continue;
        try {
          connection->send(message.kind, message.payload);
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
  if (!broken.empty()) send_messages();
}

}  // namespace tandem::bootstrap
