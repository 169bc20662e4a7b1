#pragma once
/// Residual, norm and quantisation of rows that are complete on this PE.

#include "base/gpu_kernel.h"
#include "collectives/all_reduce_norm/held_row.h"
#include "collectives/all_reduce_norm/norm_row.h"

namespace tandem::ops {

/// Norms rows of T into Q, which is T or fp8_e4m3. `out` may be `rows_of_sums`, because a row is read before it is
/// written.
template <class T, class Q>
struct NormRows {
  struct Args : kernels::NormArgs<T, Q> {
    const T* rows_of_sums = nullptr;
    bool out_to_all = false;  // output and scales go to all PEs
  };

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Size step = kernels::group_step<T>(block, a.hidden + kernels::kScaleGroup);
    if (a.hidden <= step) return run_held(block, a, step);
    for (Size row = block.index(); row < a.rows; row += block.count()) {
      kernels::NormRow<T, Q, Block> norm(block, a, place_of(a, row), step);
      norm.run(true, [&](Range piece) { return block.template load<float>(a.rows_of_sums + row * a.hidden, piece); });
    }
  }

  template <class Block>
  TANDEM_DEVICE static void run_held(Block& block, const Args& a, Size step) {
    kernels::HeldRow<T, Q, Block, 1> held(block, a, step);
    for (Size row = block.index(); row < a.rows; row += block.count()) {
      held.complete(place_of(a, row), [&](int, Range piece) {
        return block.template load<float>(a.rows_of_sums + row * a.hidden, piece);
      });
      held.finish(place_of(a, row));
    }
  }

 private:
  TANDEM_DEVICE static kernels::NormPlace place_of(const Args& a, Size row) { return {row, row, false, a.out_to_all}; }
};

TANDEM_GPU_OUTPUT_KERNELS(NormRows, 512);

}  // namespace tandem::ops
