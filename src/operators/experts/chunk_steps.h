#pragma once
/// Steps between a grouped GEMM by chunks of columns and the sums of its chunks. The number of panels is on the device.

#include "operators/steps/steps.h"
#include "tandem/advanced/gemm_groups.h"

namespace tandem::ops {

/// Adds the tiles of the next GEMM to the values that its notifications reach.
struct ExpectTiles {
  struct Args {
    const std::int32_t* panels;  // their number
    Epoch* expected;             // [chunk]: tiles of all calls
    PanelOrder order;
  };
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const auto panels = static_cast<Epoch>(block.load_scalar(a.panels));
    for (int chunk = 0; chunk < a.order.chunks(); ++chunk) {
      const int tiles = a.order.end_of(chunk) - chunk * a.order.chunk_columns;
      block.store_scalar(a.expected + chunk,
                         block.load_scalar(a.expected + chunk) + panels * static_cast<Epoch>(tiles));
    }
  }
};

/// Waits for a chunk. Later work on its stream takes no SM before that, as with AwaitWord.
struct AwaitTiles {
  static constexpr bool kHoldsNext = true;
  struct Args {
    Signals word;
    const Epoch* expected;
  };
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    block.wait(a.word, 1, block.load_scalar(a.expected));
  }
};

TANDEM_GPU_STEP(ExpectTiles);
TANDEM_GPU_STEP(AwaitTiles);

}  // namespace tandem::ops
