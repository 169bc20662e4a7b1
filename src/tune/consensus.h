#pragma once
/// An exchange of one number for each PE, for the host programs of a world.

#include <string>
#include <vector>

#include "base/gpu_kernel.h"
#include "tandem/block.h"
#include "tandem/stream.h"
#include "tandem/world.h"

namespace tandem::tune {

/// Sends a number to all PEs and waits until theirs have arrived.
struct SignalToAll {
  struct Args {
    Signals values;  // [PE]
    Epoch value;     // above 0
    Epoch least;     // the lower bound of every PE's word in this round
  };
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    for (const int pe : block.pes_from_self()) block.signal(a.values + block.pe(), a.value, pe);
    block.wait(a.values, block.num_pes(), a.least);
  }
};

/// Exchanges numbers below 2^48 between PEs. Collective: all PEs construct and call it in the same order.
class Consensus {
 public:
  explicit Consensus(World& world);
  /// Returns every PE's number, by PE.
  std::vector<Epoch> all(Epoch mine);
  bool is_same(Epoch mine);
  Epoch most(Epoch mine);

 private:
  World* world_;
  Signals values_;
  Stream stream_;
  Epoch round_ = 0;
};

/// Returns a number of 48 bits, never 0, by which PEs compare texts: FNV-1a.
Epoch digest(const std::string& text);

TANDEM_GPU_STEP(SignalToAll);
TANDEM_GPU_BETWEEN_NODES(SignalToAll);

}  // namespace tandem::tune
