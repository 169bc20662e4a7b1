#pragma once
/// Plans of a world's calls, made on demand. Each plan serves calls of one operation, choice and size class. Partial
/// results of calls beyond 256 MiB may be as large as the call, so there is one plan for them: a larger call replaces
/// it. If memory does not suffice for a new plan, all others are destroyed, except those that a graph holds.

#include <compare>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "controls.h"
#include "tandem/collectives.h"

namespace tandem::c {

/// An operation without its number of elements.
struct Operation {
  Collective collective;
  DType type;
  ReduceOp op;
  int root;
  WireFormat wire = WireFormat::kType;

  auto operator<=>(const Operation&) const = default;
};

class Plans {
 public:
  /// The algorithm and copies of a call. They follow from the call and from the buffers that peers cannot access, so
  /// every PE also knows the choice of all others' calls. Calls with equal choices share a plan.
  struct Choice {
    std::string algorithm;
    int blocks = 0;
    /// Whether peers access the input or output, which is copied because they cannot reach it.
    bool copies_in = false, copies_out = false;
    /// Whether peers access the caller's own input or output, which is at the same place on all PEs.
    bool reaches_in = false, reaches_out = false;

    auto operator<=>(const Choice&) const = default;
  };

  /// The stream of a call. All earlier calls of the world precede it.
  struct Caller {
    Stream& stream;
    bool is_captured;
  };

  /// `staging_bytes`: for inputs and for outputs that peers do not reach; 0: plans have their own.
  Plans(World& world, Size staging_bytes, Controls controls = {})
      : world_(&world), staging_{{}, {}, staging_bytes}, controls_(std::move(controls)) {}
  /// Makes the staging, which else comes with the first plan for memory that peers do not reach. Collective.
  void make_staging();

  /// `local_in`, `local_out`: memory that peers do not reach. Throws what make_collective throws for such a call, but
  /// makes nothing.
  const Choice& choice(const Operation& what, Size count, bool local_in, bool local_out) {
    return way(what, count, local_in, local_out).choice;
  }
  /// Collective where there is none yet for such a call; waits for the caller's stream then, if plans are given back.
  CollectivePlan& plan(const Operation& what, Size count, bool local_in, bool local_out, const Caller& caller);

  /// Bytes up to which a plan is for, if it is for calls of so many bytes: little more than them where that is much.
  static Size size_class(Size bytes);

 private:
  /// Plans that take the place of one another.
  struct Slot {
    std::unique_ptr<CollectivePlan> plan;  // null: to be made
    Size bytes = 0;                        // what it is for
    bool is_captured = false;
  };
  struct Way {
    Choice choice;
    Size bytes;
    Slot* slot;
  };

  Way& way(const Operation& what, Size count, bool local_in, bool local_out);
  /// Not above the user's most. `chosen`: as CollectiveChoice::blocks.
  int blocks(const AlgorithmInfo& info, int chosen, Size bytes) const;
  std::unique_ptr<CollectivePlan> make(const Operation& what, const Way& way);
  void renew(const Operation& what, const Way& way, const Caller& caller);
  /// Whether there was one.
  bool give_all_back(const Caller& caller);
  CollectiveOptions options(const Operation& what, Size bytes, bool local_in, bool local_out) const;

  World* world_;
  CollectiveStaging staging_;
  Controls controls_;
  std::map<std::tuple<Operation, Size, bool, bool>, Way> ways_;
  std::map<std::tuple<Operation, Size, Choice>, Slot> slots_;
  std::vector<std::unique_ptr<CollectivePlan>> captured_;  // others have taken their places
};

}  // namespace tandem::c
