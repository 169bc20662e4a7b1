#pragma once
/// Plans of a world's calls, made as they are needed.

#include <compare>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "tandem/collectives.h"

namespace tandem::c {

/// What is called, beside the number of elements.
struct Operation {
  Collective collective;
  DType type;
  ReduceOp op;
  int root;

  auto operator<=>(const Operation&) const = default;
};

class Plans {
 public:
  /// What a call runs with. It follows from the call and from which of its buffers peers do not reach, so that every PE
  /// knows that of all others' calls, too. Calls with equal choices share a plan.
  struct Choice {
    std::string algorithm;
    int blocks = 0;
    /// What peers touch of memory that they do not reach.
    bool copies_in = false, copies_out = false;
    /// What peers touch where the caller has it: at the same place on all PEs.
    bool reaches_in = false, reaches_out = false;

    auto operator<=>(const Choice&) const = default;
  };

  Plans(World& world, const CollectiveStaging& staging) : world_(&world), staging_(staging) {}

  /// `local_in`, `local_out`: memory that peers do not reach. Throws what make_collective throws for such a call, but
  /// makes nothing.
  const Choice& choice(const Operation& what, Size count, bool local_in, bool local_out) {
    return way(what, count, local_in, local_out).choice;
  }
  /// Collective where it is the first of its operation, size class and choice.
  CollectivePlan& plan(const Operation& what, Size count, bool local_in, bool local_out);

 private:
  struct Way {
    Choice choice;
    CollectivePlan* plan = nullptr;  // made by the first call
  };

  Way& way(const Operation& what, Size count, bool local_in, bool local_out);
  /// Bytes of the larger buffer up to which a plan is for.
  Size size_class(const Operation& what, Size count) const;
  CollectiveOptions options(const Operation& what, Size bytes, bool local_in, bool local_out) const;

  World* world_;
  CollectiveStaging staging_;
  std::map<std::tuple<Operation, Size, bool, bool>, Way> ways_;
  std::map<std::tuple<Operation, Size, Choice>, std::unique_ptr<CollectivePlan>> plans_;
};

}  // namespace tandem::c
