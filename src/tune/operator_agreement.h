#pragma once
/// What the PEs of a world say to each other on the host's behalf: one number each.

#include <vector>

#include "tandem/block.h"
#include "tandem/stream.h"
#include "tandem/world.h"

namespace tandem::tune {

/// Says a number to all PEs and waits until theirs are here.
struct SayToAll {
  struct Args {
    Signals said;  // [PE]
    Epoch value;   // above 0
    Epoch least;   // what any PE says in this round is at least that
  };
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    for (const int pe : block.pes_from_self()) block.signal(a.said + block.pe(), a.value, pe);
    block.wait(a.said, block.num_pes(), a.least);
  }
};

/// Numbers below 2^48 from PE to PE. Collective: made and asked by all PEs in the same order.
class Agreement {
 public:
  explicit Agreement(World& world);
  /// What every PE gave, by PE.
  std::vector<Epoch> all(Epoch mine);
  bool is_same(Epoch mine);
  Epoch most(Epoch mine);

 private:
  World* world_;
  Signals said_;
  Stream stream_;
  Epoch round_ = 0;
};

}  // namespace tandem::tune
