#pragma once
/// A process as a member of a world: all-gathers and barriers between the world's processes, and notice of failures.

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "bootstrap/protocol/handshake.h"
#include "bootstrap/protocol/socket.h"
#include "bootstrap/rendezvous/coordinator.h"
#include "bootstrap/rendezvous/id_contents.h"
#include "bootstrap/rendezvous/service.h"
#include "tandem/advanced/unique_id.h"

namespace tandem::bootstrap {

/// Throws InvalidArgument if a world of that size has no such PE, or if the size is not allowed.
void check_place(int pe, int pes);

class WorldMember {
 public:
  /// Joins the world of `id` as PE `pe` of `size`, and returns when all have joined. Throws Timeout (with the missing
  /// PEs), InvalidArgument (sizes differ, a PE joined twice) or RuntimeFailure (no rendezvous, another secret).
  /// `timeout_s` bounds this and every later wait.
  WorldMember(const UniqueId& id, int pe, int size, double timeout_s);
  /// Leaves the world. PEs that still wait for this PE get an error. All PEs get one if an exception is being thrown.
  ~WorldMember();
  WorldMember(const WorldMember&) = delete;
  WorldMember& operator=(const WorldMember&) = delete;

  int pe() const { return pe_; }
  int size() const { return size_; }
  /// Returns this process's address, as the host of the rendezvous sees it. Other processes should reach it there, too.
  const std::string& address() const { return address_; }
  const Key& secret() const { return secret_; }
  /// Returns the number of earlier splits of this world, which is the same on all PEs.
  std::uint64_t count_split() { return splits_++; }
  double timeout_s() const { return timeout_s_; }
  /// Returns whether this process joined, and is not a child of the one that did. A child leaves the world alone.
  bool is_own_process() const { return service_.is_own_process(); }
  Team world() const { return {0, 1, size_, pe_, size_}; }

  /// Returns every member's bytes (at most kMostContribution), by number in the team. Collective over `team`; all
  /// members give the same `name`. If the world is over, it throws the reason: InvalidArgument (different names),
  /// Timeout (missing members) or RuntimeFailure (lost members). One thread at a time may call it.
  std::vector<Bytes> all_gather(View own, const std::string& name, const Team& team);
  std::vector<Bytes> all_gather(View own, const std::string& name) { return all_gather(own, name, world()); }
  void barrier(const std::string& name, const Team& team) { all_gather({}, name, team); }
  void barrier(const std::string& name) { barrier(name, world()); }

  /// Runs `work`. If it throws on one PE, all PEs throw that error with the PE's number, and the world goes on.
  /// Collective. A member that throws before it would leave the others waiting.
  void all_or_none(const std::string& name, const std::function<void()>& work);
  /// Runs `work` of this PE alone. If it throws, the world ends: all PEs get the error, and it is rethrown here.
  template <class Work>
  auto or_fail(Work work) {
    try {
      return work();
    } catch (const std::exception& error) {
      fail(failure_of(error));
      throw;
    }
  }

  /// Ends the world for all PEs. Their waits end with this text.
  void fail(const Failure& failure);
  /// Ends the world here at once, and for all PEs that the rendezvous still reaches.
  void fail_here(const Failure& failure);
  /// Returns the reason of the world's end, if it has ended.
  std::optional<Failure> failure() const;
  /// Sets a callback for the world's end, which a thread of the member calls once.
  void on_failure(std::function<void()> callback);
  /// Announces the regular end of the world. From now on a PE that disconnects is no failure, and no callback runs.
  void expect_end();

 private:
  using Call = std::tuple<int, int, int, std::uint64_t>;

  void join(const UniqueId& id);
  void connect(const IdContents& contents, const Deadline& deadline);
  void listen();
  void take(const Frame& frame);
  void end(Failure failure);
  void send(Kind kind, View payload);
  void send_more();
  bool flush();
  bool has_unsent();
  void finish_sending();

  int pe_;
  int size_;
  int exceptions_before_;
  double timeout_s_;
  Key secret_{};
  Fd socket_;
  std::string address_;
  std::mutex sending_;  // never held during a wait
  FrameWriter out_{Key{}};
  Bytes unsent_;  // bytes that the socket has not taken yet
  FrameReader in_{Key{}, kMostHandshake};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::tuple<int, int, int>, std::uint64_t> calls_;  // calls of each team so far
  std::uint64_t splits_ = 0;
  std::map<Call, std::vector<Bytes>> results_;
  std::optional<Failure> failure_;
  std::function<void()> callback_;
  bool ending_ = false;
  bool is_calling_ = false;
  Service service_;
};

}  // namespace tandem::bootstrap
