#include "bootstrap/local/local_rendezvous.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>

#include <cerrno>
#include <optional>
#include <thread>

#include "tandem/error.h"

namespace tandem::bootstrap {

namespace {

/// Seconds for PE 0's answer. Another process may accept a connection and not answer.
constexpr double kAnswer = 2;
constexpr const char* kAdvice = "jobs that run at the same time need a MASTER_PORT or a TANDEM_RUN_ID of their own";

/// A listener with some name, or the process that holds the name. It is neither if the holder does not listen.
struct Claim {
  Fd listener;
  std::optional<Peer> holder;
};

Claim claim(const std::string& name) {
  // A process that is about to listen holds the name for a moment without a queue.
  for (int attempt = 0; attempt < 20; ++attempt) {
    if (Fd listener = listen_local(name, SOCK_STREAM)) return {std::move(listener), std::nullopt};
    if (const Fd socket = connect_local(name, SOCK_STREAM)) return {Fd(), peer_of(socket)};
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return {};
}

bool lives(const Peer& peer) { return peer.process > 0 && (::kill(peer.process, 0) == 0 || errno == EPERM); }

/// Returns nothing if the other end does not prove that it belongs to the job.
std::optional<UniqueId> ask(const Fd& socket, const Key& job, int pe, int size) {
  try {
    return UniqueId::from_bytes(shake_hands(socket, job, pe, size, Deadline(kAnswer)).welcome);
  } catch (const BadMessage&) {
    return std::nullopt;
  } catch (const Timeout&) {
    return std::nullopt;
  }
}

}  // namespace

std::string hand_off_name(const Key& job, int i) {
  return fmt::format("tandem-{}/{}", hex(derive(job, "hand-off")), i);
}

void HandOff::check(int pe, int job_size, const Peer& taker) {
  if (job_size != size || pe < 1 || pe >= size)
    throw InvalidArgument(fmt::format("PE {} of {} given, allowed are 1 to {} of {}", pe, job_size, size - 1, size));
  const auto [at, is_first] = takers.try_emplace(pe, taker);
  if (!is_first && at->second.process != taker.process && lives(at->second))
    throw InvalidArgument(
        fmt::format("PE {} of {} has joined twice: {} and {}; {}", pe, size, at->second.text(), taker.text(), kAdvice));
  at->second = taker;
}

HandOff open_hand_off(const Key& job, int size) {
  std::string holder = "an unknown process";
  for (int i = 0; i < kHandOffNames; ++i) {
    Claim claimed = claim(hand_off_name(job, i));
    if (claimed.listener) return {std::move(claimed.listener), job, size, {}};
    if (!claimed.holder) continue;
    holder = claimed.holder->text();
    if (claimed.holder->is_of_this_user())
      throw RuntimeFailure(fmt::format("another process is PE 0 of this job already: {}; {}", holder, kAdvice));
  }
  throw RuntimeFailure(
      fmt::format("all {} names of this job's hand-off socket are taken, by {} for example; "
                  "a secret TANDEM_RUN_ID gives it other names",
                  kHandOffNames, holder));
}

UniqueId take_id(const Key& job, int pe, int size, const Deadline& deadline) {
  std::string others;
  while (!deadline.passed()) {
    for (int i = 0; i < kHandOffNames; ++i) {
      const Fd socket = connect_local(hand_off_name(job, i), SOCK_STREAM);
      if (!socket) continue;
      const Peer holder = peer_of(socket);
      if (holder.is_of_this_user())
        if (const auto id = ask(socket, job, pe, size)) return *id;
      others = fmt::format("; {} is at its hand-off socket and does not belong to the job", holder.text());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  throw Timeout(
      "PE 0 of this job did not start, or runs on another host (which needs TANDEM_SECRET or TANDEM_UNIQUE_ID)" +
      others);
}

}  // namespace tandem::bootstrap
