#pragma once
/// What the PEs of a world have called of their plans, in host memory that all of them see. Calls that differ are found
/// by the host programs when they are made, so that comparing them costs the devices nothing.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tandem/range.h"
#include "tandem/team.h"

namespace tandem {

/// One PE's calls of one plan. That PE alone writes it; zeros are a plan without calls.
struct PlanCalls {
  /// Calls that are remembered: a PE that is so far ahead of another one is not compared with it.
  static constexpr std::uint64_t kRemembered = 256;

  struct Call {
    std::atomic<std::uint64_t> stamp;  ///< lower half of the number (from 1), and below it what identifies the plan
    std::atomic<Size> count;           ///< valid where the stamp is the same before and after it is read
    std::array<std::atomic<std::uint64_t>, 2> places;  ///< likewise
  };

  std::array<char, 120> what;  ///< ends with a zero; written before the first call
  std::atomic<std::uint64_t> made;
  std::array<Call, kRemembered> calls;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "processes share it");

/// A call as the other PEs compare it with theirs, in numbers that mean the same on all of them.
struct NotedCall {
  std::uint32_t what = 0;  ///< a plan's: its hash
  Size count = 0;
  std::array<std::uint64_t, 2> places = {};  ///< where the buffers are; a plan's: zeros

  bool operator==(const NotedCall&) const = default;
};

/// What tells one call from another: a hash (FNV-1a, RFC 9923) that is the same on every machine.
std::uint32_t call_signature(const std::string& text);

class CallLog {
 public:
  /// Where PE `pe` keeps the calls of its plan `number`; null beyond what there is room for, on all PEs alike.
  using Records = std::function<PlanCalls*(int pe, std::size_t number)>;
  /// In what this PE's call and that of PE `pe` with the same number do not go together; empty where they do.
  using Difference = std::function<std::string(const NotedCall& own, const NotedCall& its, int pe)>;

  /// Of PE `me`. `tell` gets to know of calls that differ before `note` throws.
  CallLog(int me, Records records, std::function<void(const std::string&)> tell = nullptr);

  /// The number of a new plan of `team`, for `note`; `what` has to be the same on all its members. All PEs of the world
  /// make plans in the same order.
  std::size_t add(const std::string& what, const Team& team);
  /// The same for calls of several plans that have one order; `note` takes what `difference` compares.
  std::size_t add_order(const std::string& what, const Team& team, Difference difference);
  /// Notes this PE's next call of a plan and compares it with the others' calls of that number, as far as they have
  /// come. Of two PEs that make different calls at least one throws before it enqueues anything. Throws InvalidArgument
  /// naming both.
  void note(std::size_t number, Size count);
  void note(std::size_t number, const NotedCall& call);
  /// This PE's last call could not be enqueued and was none: the next one takes its number.
  void take_back(std::size_t number);
  /// The same around `enqueue`; where that throws, the call is taken back.
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
  /// Plans of which members have made other numbers of calls so far, as an addition to a report ("; so far ..."); empty
  /// where there are none.
  std::string apart() const;

 private:
  struct Plan {
    std::size_t number;
    Team team;
    std::uint32_t hash;
    PlanCalls* own;
    Difference difference;  // none: a plan's calls
  };

  void note_call(const Plan& plan, const NotedCall& call);
  void compare(const Plan& plan, std::uint64_t number, const NotedCall& call, int other) const;
  std::string difference(const Plan& plan, const NotedCall& call, const NotedCall& its, int other) const;

  int me_;
  Records records_;
  std::function<void(const std::string&)> tell_;
  mutable std::mutex mutex_;
  std::vector<Plan> plans_;
};

/// The records of PEs that share a process.
class CallRecords {
 public:
  explicit CallRecords(int pes) : plans_(static_cast<std::size_t>(pes)) {}
  PlanCalls* of(int pe, std::size_t number);

 private:
  std::mutex mutex_;
  std::vector<std::deque<std::unique_ptr<PlanCalls>>> plans_;  // by PE
};

}  // namespace tandem
