#pragma once
/// Records of the calls that each PE makes of its plans, in host memory that all PEs of a host see. Host programs find
/// mismatching calls when they make them, so the devices do no work for it. PEs of other hosts send each other their
/// calls (`news_for`, `take`).

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/serial.h"
#include "tandem/range.h"
#include "tandem/team.h"

namespace tandem {

/// One PE's calls of one plan, written by that PE alone. Zeros mean no calls.
struct PlanCalls {
  /// Number of calls that are kept. A PE that is further ahead of another PE is not compared with it.
  static constexpr std::uint64_t kRemembered = 256;

  struct Call {
    std::atomic<std::uint64_t> stamp;  ///< lower half of the call's number (from 1) above the plan's hash
    std::atomic<Size> count;           ///< valid if the stamp is the same before and after the read
    std::array<std::atomic<std::uint64_t>, 2> places;  ///< likewise
  };

  std::array<char, 248> what;       ///< zero-terminated; written before `plan`
  std::atomic<std::uint64_t> plan;  ///< the hash of the plan's description, and a bit above it; 0: not made yet
  std::atomic<std::uint64_t> made;
  std::array<Call, kRemembered> calls;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "processes share it");

/// A call in numbers that mean the same on all PEs, so that they can be compared.
struct RecordedCall {
  std::uint32_t what = 0;  ///< hash of the plan's description
  Size count = 0;
  std::array<std::uint64_t, 2> places = {};  ///< where the buffers are; zeros for calls of a plan

  bool operator==(const RecordedCall&) const = default;
};

/// Returns a hash (FNV-1a, RFC 9923) that distinguishes calls and is the same on every machine.
std::uint32_t call_signature(const std::string& text);

class MismatchDetector {
 public:
  /// A function for the memory in which PE `pe` keeps the calls of its plan `number`. Returns null on all PEs if there
  /// is no room.
  using Records = std::function<PlanCalls*(int pe, std::size_t number)>;
  /// A function for the text how this PE's call and the call of PE `pe` with the same number differ, or "" if they
  /// match.
  using Difference = std::function<std::string(const RecordedCall& own, const RecordedCall& its, int pe)>;

  /// Makes the log of PE `me`. On a mismatch `report` is called before `note` throws. Calls are compared with the first
  /// member's, and with those of every PE for which `is_near` is true. A mismatch of two such PEs is found when
  /// the second of them calls, whatever the first member does.
  MismatchDetector(int me, Records records, std::function<void(const std::string&)> report = nullptr,
                   std::function<bool(int)> is_near = nullptr);

  /// Returns the number of a new plan of `team`, for `note`. All PEs of the world make plans in the same order. It
  /// compares `what` with that of other members on this host, as far as they have made the plan. If two PEs differ, at
  /// least one throws InvalidArgument, which names both. So it comes before a plan's allocations, which are collective.
  std::size_t add(const std::string& what, const Team& team);
  /// Returns the number of an order that calls of several plans share. `difference` compares what `note` was given.
  std::size_t add_order(const std::string& what, const Team& team, Difference difference);
  /// Records this PE's next call of a plan and compares it with the other PEs' calls of the same number, as far as they
  /// exist. If two PEs make different calls, at least one throws InvalidArgument, which names both calls, before it
  /// enqueues anything.
  void note(std::size_t number, Size count);
  void note(std::size_t number, const RecordedCall& call);
  /// Withdraws this PE's last call, which could not be enqueued. The next call takes its number.
  void take_back(std::size_t number);
  /// Records a call, then runs `enqueue`. If that throws, the call is withdrawn.
  template <class Enqueue>
  void note(std::size_t number, Size count, const Enqueue& enqueue) {
    note(number, count);
    try {
      enqueue();
    } catch (...) {
      take_back(number);
      throw;
    }
  }
  /// Returns calls of this PE that PE `pe` of another host compares and has not got yet, in at most `most` bytes.
  Bytes news_for(int pe, std::size_t most);
  /// Takes news of PE `pe` into its records, and compares them with calls that this PE has made already. Throws as
  /// `note`.
  void take(int pe, View news);
  /// Ends the comparison of an order, before the objects end that its `difference` needs.
  void forget(std::size_t number);
  /// Returns the plans whose members have made different numbers of calls, as an addition to a report ("; so far ...").
  /// Returns "" if there are none.
  std::string apart() const;

 private:
  struct Plan {
    std::size_t number;
    Team team;
    std::uint32_t hash;
    PlanCalls* own;
    Difference difference;  // null: an ordinary plan, whose calls are compared field by field
  };

  /// Calls `compare` with each PE whose plans and calls this PE compares with its own.
  template <class Compare>
  void for_compared(const Plan& plan, const Compare& compare) const;
  void publish(const Plan& plan, const std::string& what) const;
  void compare_plan(const Plan& plan, int other) const;
  [[noreturn]] void refuse(const std::string& text) const;
  void note_call(const Plan& plan, const RecordedCall& call);
  bool compares(const Plan& plan, int other) const;
  void take_call(std::size_t number, PlanCalls& its, Reader& reader, int from);
  void compare(const Plan& plan, std::uint64_t number, const RecordedCall& call, int other) const;
  std::string difference(const Plan& plan, const RecordedCall& call, const RecordedCall& its, int other) const;

  int me_;
  Records records_;
  std::function<void(const std::string&)> report_;
  std::function<bool(int)> is_near_;
  mutable std::mutex mutex_;
  std::vector<Plan> plans_;
  std::uint64_t changes_ = 0;                                       // of this PE's calls
  std::map<int, std::uint64_t> delivered_changes_;                  // by PE: `changes_` when it had got everything
  std::map<std::pair<int, std::size_t>, std::uint64_t> delivered_;  // by PE and plan: the last call that it has got
};

/// The records of PEs that share one process.
class CallRecords {
 public:
  explicit CallRecords(int pes) : plans_(static_cast<std::size_t>(pes)) {}
  PlanCalls* of(int pe, std::size_t number);

 private:
  std::mutex mutex_;
  std::vector<std::deque<std::unique_ptr<PlanCalls>>> plans_;  // by PE
};

}  // namespace tandem
