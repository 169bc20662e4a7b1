#pragma once
/// File descriptors handed from process to process on one host (SCM_RIGHTS, unix(7)): memory that others shall map.
///
/// Each process listens on a local socket of its own, where the others ask for its descriptors with a message that
/// proves the world's secret. Callers of another user, or with any other message, are closed and do not disturb the
/// others.

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "bootstrap/rendezvous/session.h"

namespace tandem::bootstrap {

class FdExchange {
 public:
  /// Most descriptors of a PE in one exchange.
  static constexpr std::size_t kMost = 16;

  /// Collective over the world.
  explicit FdExchange(Session& session);

  /// Whether PE `pe`'s process runs on this host, in the same network name space.
  bool is_here(int pe) const { return arrivals_[static_cast<std::size_t>(pe)].host == arrivals_[me()].host; }
  /// Name of PE `pe`'s local socket.
  const std::string& socket_of(int pe) const { return arrivals_[static_cast<std::size_t>(pe)].socket; }

  /// Every member's descriptors (copies of them), by number in the team; the own ones are empty there. Every member
  /// gives equally many. Collective over `team`; throws Unsupported where a member is on another host, Timeout naming
  /// who sent nothing, and what Session::all_gather throws.
  std::vector<std::vector<Fd>> exchange(const std::vector<int>& own, const Team& team);

 private:
  struct Arrival {
    std::string host;
    std::string socket;
  };
  struct Round;

  std::size_t me() const { return static_cast<std::size_t>(session_.pe()); }
  void check_here(const Team& team) const;
  Round begin(std::size_t count, const Team& team);
  void check_progress(const Round& round, const Deadline& deadline) const;
  void ask(Round& round) const;
  void take_turn(Round& round, const std::vector<int>& own) const;
  void take_in(Round& round) const;
  void answer(Round& round, const Fd& caller, const std::vector<int>& own) const;
  void receive(Round& round, int fd) const;

  Session& session_;
  Key asking_;
  Key giving_;
  Fd listener_;
  std::vector<Arrival> arrivals_;  // by PE
  std::uint64_t rounds_ = 0;
};

}  // namespace tandem::bootstrap
