#pragma once
/// Plans of the simulator as they are after many calls.

#include <algorithm>

#include "tandem/world.h"

namespace tandem::test {

/// Made before a plan. All that the plan keeps to count with lies between what is allocated here before and after it.
class EarlierCalls {
 public:
  explicit EarlierCalls(World& world) : world_(world), epochs_(epochs()), signals_(signals()) {}

  /// As if the plan had made `calls` calls: its epochs, credits and other signals say so, where they count calls; what
  /// counts more in each call says less than it would, as if somebody waited for it. Packets are those of a flag that
  /// no call close by has. Collective over the world.
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
