#pragma once
/// File descriptors handed from process to process on one host (SCM_RIGHTS, unix(7)): memory that others shall map.
///
/// Each process listens on a local socket of its own; what comes from another user's process, is not sealed with the
/// world's secret, comes twice or has another form than was announced is closed and does not disturb the others.

#include <map>
#include <string>
#include <vector>

#include "bootstrap/session.h"

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
  void take_turn(Round& round, std::map<int, Fd>& callers, int patience_ms) const;
  bool send_to(const Round& round, int pe, const std::vector<int>& own) const;
  void receive(Round& round, const Fd& socket) const;
  Bytes letter(std::uint64_t number, int from, int to, std::size_t count) const;

  Session& session_;
  Key key_;
  Fd listener_;
  std::vector<Arrival> arrivals_;  // by PE
  std::uint64_t rounds_ = 0;
};

}  // namespace tandem::bootstrap
