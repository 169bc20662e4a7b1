#include "bootstrap/rendezvous/world_member.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <exception>

#include "base/outside_order.h"
#include "bootstrap/protocol/handshake.h"
#include "tandem/error.h"

namespace tandem::bootstrap {

namespace {

/// Seconds by which the host's error may come after its deadline. The host knows the deadlines, too.
constexpr double kHostIsLate = 5;
/// The host drops connections that are slow to prove the secret, so one may be dropped by mistake.
constexpr int kConnects = 10;
constexpr std::size_t kMostFromHost = (kMostContribution + 64) * kMostPes;

}  // namespace

void check_place(int pe, int pes) {
  if (pes < 1 || pes > kMostPes)
    throw InvalidArgument(fmt::format("pes: {} given, allowed are 1 to {}", pes, kMostPes));
  if (pe < 0 || pe >= pes) throw InvalidArgument(fmt::format("pe: {} given, allowed are 0 to {}", pe, pes - 1));
}

WorldMember::WorldMember(const UniqueId& id, int pe, int size, double timeout_s)
    : pe_(pe), size_(size), exceptions_before_(std::uncaught_exceptions()), timeout_s_(timeout_s) {
  check_place(pe, size);
  if (!(timeout_s > 0)) throw InvalidArgument(fmt::format("timeout: {} s given, must be positive", timeout_s));
  join(id);
  or_fail([&] { service_.start([this] { listen(); }); });
  barrier("the world's beginning");
}

WorldMember::~WorldMember() {
  if (!is_own_process()) return;
  expect_end();
  if (std::uncaught_exceptions() > exceptions_before_)
    fail({FailureKind::kRuntimeFailure, "its host program has failed"});
  try {
    send(Kind::kLeave, {});
    finish_sending();
  } catch (const std::exception&) {
    // The host is gone, and the world with it.
  }
  service_.stop();
}

void WorldMember::join(const UniqueId& id) {
  const IdContents contents = contents_of(id);
  const Deadline deadline(timeout_s_);
  secret_ = contents.secret;
  for (int attempt = 1;; ++attempt) {
    try {
      connect(contents, deadline);
      Handshake handshake = shake_hands(socket_, secret_, pe_, size_, deadline);
      out_ = std::move(handshake.out);
      in_ = std::move(handshake.in);
      return in_.set_limit(kMostFromHost);
    } catch (const Unheard& error) {
      if (attempt == kConnects || deadline.passed())
        throw RuntimeFailure(
            fmt::format("rendezvous at {} port {}: {} {} times: another secret, or too many connections without it",
                        contents.address, contents.port, error.what(), attempt));
      std::this_thread::sleep_for(std::chrono::milliseconds(20 * attempt));
    } catch (const BadMessage& error) {
      throw RuntimeFailure(fmt::format("rendezvous at {} port {}: {}", contents.address, contents.port, error.what()));
    }
  }
}

/// The host's local socket accepts processes of this user only, so other users cannot block it.
void WorldMember::connect(const IdContents& contents, const Deadline& deadline) {
  socket_ = connect_local(local_name(contents), SOCK_STREAM, deadline);
  const bool is_local = socket_ && peer_of(socket_).is_of_this_user();
  if (!is_local) socket_ = connect_tcp(contents.address, contents.port, deadline);
  address_ = is_local ? contents.address : address_of(socket_);
}

void WorldMember::listen() {
  std::vector<std::byte> chunk(std::size_t{64} << 10);
  try {
    for (;;) {
      while (const auto frame = in_.next()) take(*frame);
      const auto events = static_cast<short>(POLLIN | (has_unsent() ? POLLOUT : 0));
      std::array<pollfd, 2> polled{{{service_.wake(), POLLIN, 0}, {socket_.get(), events, 0}}};
      if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) throw_errno("poll");
      if (polled[0].revents != 0 && service_.is_stopping()) return;
      if ((polled[1].revents & POLLOUT) != 0) send_more();
      if ((polled[1].revents & ~POLLOUT) == 0) continue;
      const ssize_t got = ::recv(socket_.get(), chunk.data(), chunk.size(), 0);
      if (got > 0) in_.feed(View(chunk).first(static_cast<std::size_t>(got)));
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        return end({FailureKind::kRuntimeFailure, "the process that holds the rendezvous is gone"});
    }
  } catch (const std::exception& error) {
    end({FailureKind::kRuntimeFailure, fmt::format("the rendezvous broke: {}", error.what())});
  }
}

void WorldMember::send_more() {
  try {
    const std::lock_guard lock(sending_);
    flush();
  } catch (const RuntimeFailure&) {
    // The next read finds the reason.
  }
}

void WorldMember::take(const Frame& frame) {
  if (frame.kind == Kind::kFailed) return end(Failure::decode(frame.payload));
  if (frame.kind != Kind::kResult) throw BadMessage("a message that no host sends");
  Gathered gathered = Gathered::decode(frame.payload);
  const std::lock_guard lock(mutex_);
  results_[{gathered.first, gathered.stride, gathered.size, gathered.number}] = std::move(gathered.blobs);
  changed_.notify_all();
}

void WorldMember::end(Failure failure) {
  std::function<void()> callback;
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = std::move(failure);
    if (!ending_) callback = callback_;
    is_calling_ = callback != nullptr;
    changed_.notify_all();
  }
  if (!callback) return;
  callback();
  const std::lock_guard lock(mutex_);
  is_calling_ = false;
  changed_.notify_all();
}

/// Sends a frame. The listening thread sends the rest that the socket does not take at once.
void WorldMember::send(Kind kind, View payload) {
  order_leaves_process();
  const std::lock_guard lock(sending_);
  const Bytes frame = out_.frame(kind, payload);
  unsent_.insert(unsent_.end(), frame.begin(), frame.end());
  if (!flush()) service_.wake_up();
}

/// Returns whether everything is sent. The caller holds `sending_`.
bool WorldMember::flush() {
  try {
    const std::size_t done = send_some(socket_, unsent_);
    unsent_.erase(unsent_.begin(), unsent_.begin() + static_cast<std::ptrdiff_t>(done));
  } catch (const RuntimeFailure&) {
    unsent_.clear();
    throw;
  }
  return unsent_.empty();
}

bool WorldMember::has_unsent() {
  const std::lock_guard lock(sending_);
  return !unsent_.empty();
}

void WorldMember::finish_sending() {
  const Deadline deadline(std::min(timeout_s_, kHostIsLate));
  while (has_unsent() && wait_for(socket_.get(), POLLOUT, deadline)) {
    const std::lock_guard lock(sending_);
    flush();
  }
}

std::vector<Bytes> WorldMember::all_gather(View own, const std::string& name, const Team& team) {
  if (own.size() > kMostContribution)
    throw InvalidArgument(
        fmt::format("all-gather '{}': {} bytes given, allowed are {}", name, own.size(), kMostContribution));
  if (team.me < 0) throw InvalidArgument(fmt::format("all-gather '{}': PE {} is not in the team", name, pe_));
  std::unique_lock lock(mutex_);
  if (failure_) failure_->raise();
  const std::uint64_t number = calls_[{team.first, team.stride, team.size}]++;
  lock.unlock();
  Contribution contribution{team.first, team.stride, team.size, number, name, 0, Bytes(own.begin(), own.end())};
  contribution.timeout_ms = static_cast<std::uint32_t>(std::min(timeout_s_ * 1e3, 4e9));
  try {
    send(Kind::kContribute, contribution.encode());
  } catch (const RuntimeFailure&) {
    // The listening thread finds the reason, which the host may have sent before.
  }
  lock.lock();
  const auto result = [&] { return results_.find({team.first, team.stride, team.size, number}); };
  const Deadline deadline(timeout_s_ + kHostIsLate);
  if (!changed_.wait_until(lock, deadline.at(), [&] { return result() != results_.end() || failure_; }))
    throw Timeout(fmt::format("'{}': the process that holds the rendezvous does not answer", name));
  if (result() == results_.end()) failure_->raise();
  std::vector<Bytes> blobs = std::move(result()->second);
  results_.erase(result());
  return blobs;
}

void WorldMember::all_or_none(const std::string& name, const std::function<void()>& work) {
  Bytes problem;
  try {
    work();
  } catch (const std::exception& error) {
    problem = failure_of(error).encode();
  }
  const std::vector<Bytes> all = all_gather(problem, name);
  for (std::size_t pe = 0; pe < all.size(); ++pe) {
    if (all[pe].empty()) continue;
    Failure failure = Failure::decode(all[pe]);
    failure.text = fmt::format("PE {}: {}", pe, failure.text);
    failure.raise();
  }
}

void WorldMember::fail(const Failure& failure) {
  try {
    send(Kind::kFailed, failure.encode());
  } catch (const std::exception&) {
    // A broken connection ends the world at the host.
  }
}

void WorldMember::fail_here(const Failure& failure) {
  fail(failure);
  end({failure.kind, fmt::format("PE {}: {}", pe_, failure.text)});  // as the rendezvous words it for the others
}

std::optional<Failure> WorldMember::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void WorldMember::on_failure(std::function<void()> callback) {
  bool is_late = false;
  {
    const std::lock_guard lock(mutex_);
    callback_ = callback;
    is_late = failure_.has_value();
  }
  if (is_late) callback();
}

void WorldMember::expect_end() {
  std::unique_lock lock(mutex_);
  ending_ = true;
  changed_.wait(lock, [&] { return !is_calling_; });
}

}  // namespace tandem::bootstrap
