#pragma once
/// File descriptors handed from process to process on one host (SCM_RIGHTS, unix(7)), for memory that others map.
///
/// Each process listens on its own local socket. The others ask there for its descriptors, with a message that proves
/// the world's secret. Callers of another user, or with any other message, are closed and do not disturb the others.

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "bootstrap/rendezvous/world_member.h"

namespace tandem::bootstrap {

class FdExchange {
 public:
  /// Most descriptors of a PE in one exchange.
  static constexpr std::size_t kMost = 16;

  /// Collective over the world.
  explicit FdExchange(WorldMember& member);

  /// Returns whether the process of PE `pe` runs on this host, in the same network name space.
  bool is_on_this_host(int pe) const { return arrivals_[static_cast<std::size_t>(pe)].host == arrivals_[me()].host; }
  /// Returns the consecutive PEs of this host around this PE.
  Team host_team() const;
  /// Returns an identity that PEs on one host, in one network name space, have in common.
  const std::string& host_of(int pe) const { return arrivals_[static_cast<std::size_t>(pe)].host; }
  /// Returns how many PEs run on this computer, in whatever name spaces and hosts of it.
  int pes_of_computer() const;
  /// Returns the name of the host of PE `pe`: its TANDEM_HOST, else what the system calls it.
  const std::string& host_name_of(int pe) const { return arrivals_[static_cast<std::size_t>(pe)].host_name; }
  /// Returns the name of the local socket of PE `pe`.
  const std::string& socket_of(int pe) const { return arrivals_[static_cast<std::size_t>(pe)].socket; }

  /// Returns copies of every member's descriptors, by number in the team; its own entry is empty. Every member gives
  /// the same number of descriptors. Collective over `team`. Throws Unsupported if a member is on another host, Timeout
  /// with the members that sent nothing, and everything that WorldMember::all_gather throws.
  std::vector<std::vector<Fd>> exchange(const std::vector<int>& own, const Team& team);

 private:
  struct Arrival {
    std::string host;
    std::string host_name;
    std::string socket;
  };
  struct Round;

  std::size_t me() const { return static_cast<std::size_t>(member_.pe()); }
  void check_here(const Team& team) const;
  Round begin(std::size_t count, const Team& team);
  void check_progress(const Round& round, const Deadline& deadline) const;
  void ask(Round& round) const;
  void take_turn(Round& round, const std::vector<int>& own) const;
  void take_in(Round& round) const;
  void answer(Round& round, const Fd& caller, const std::vector<int>& own) const;
  void receive(Round& round, int fd) const;

  WorldMember& member_;
  Key asking_;
  Key giving_;
  Fd listener_;
  std::vector<Arrival> arrivals_;  // by PE
  std::uint64_t rounds_ = 0;
};

}  // namespace tandem::bootstrap
