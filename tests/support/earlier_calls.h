#pragma once
/// Plans of the simulator as they are after many calls.

#include <algorithm>

#include "tandem/world.h"

namespace tandem::test {

/// Made before a plan. All that the plan keeps to count with lies between what is allocated here before and after it.
class EarlierCalls {
 public:
  explicit EarlierCalls(World& world) : world_(world), epochs_(epochs()), signals_(signals()) {}

  /// Sets the plan to the state after `calls` calls: its epochs, credits and other signals that count calls. Signals
  /// that count more in each call get less than they would have, as if a PE waited for them. Packets get a flag that no
  /// nearby call has. Collective over the world.
  void pretend(Epoch calls) {
    set(epochs_, epochs(), calls);
    set(signals_, signals(), calls);
    world_.barrier();
  }

 private:
  Epoch* epochs() { return world_.heap().epochs(1, "mark").words; }
  Epoch* signals() { return &world_.heap().signals(1, "mark").local()->value; }
  static void set(Epoch* one_mark, Epoch* other_mark, Epoch value) {
    std::fill(std::min(one_mark, other_mark) + 1, std::max(one_mark, other_mark), value);
  }

  World& world_;
  Epoch* epochs_;
  Epoch* signals_;
};

}  // namespace tandem::test
