#pragma once
/// Two-shot all_reduce_norm: the owner of a row sums it over all PEs and writes the sums to all, if they are asked for.
/// Without quantisation each PE then norms all rows. Else, or without sums, the owner writes the output to all, too.
///
/// So the second shot carries few bytes, but no PE quantises rows of others, which would take longer than their bytes.
/// A block takes its rows in groups: it norms a group of its peers while they norm one of its own. Fixed order: in[0] +
/// in[1] + ... + in[n-1]. A row is read by its owner alone, piece by piece before it is written.

#include "base/gpu_kernel.h"
#include "collectives/all_reduce_norm/held_row.h"
#include "collectives/all_reduce_norm/norm_row.h"

namespace tandem::kernels {

template <class T, class Q>
struct AllReduceNormTwoShot {
  static constexpr int kThreads = 512;
  static constexpr bool kKeepsRows = true;

  struct Args : NormArgs<T, Q> {
    Signals arrived;   // [block][PE]: that PE has begun this call: its input is in place, its outputs may be written
    Signals finished;  // [block][PE]: the last group that this PE has read and written here
    Epochs epochs;     // [block]: groups over all calls
  };

  template <class Setup>
  static void prepare(Setup& setup, Args& a) {
    a.arrived = setup.slots("arrived");
    a.finished = setup.slots("finished");
    a.epochs = setup.epochs();
  }

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Size step = group_step<T>(block, a.hidden + kScaleGroup);
    if (a.hidden <= step)
      run_groups<HeldRows<Block>>(block, a, step);
    else
      run_groups<RowsInPieces<Block>>(block, a, step);
  }

 private:
  template <class Rows, class Block>
  TANDEM_DEVICE static void run_groups(Block& block, const Args& a, Size step) {
    constexpr Size kMostGroups = 8;
    Rows rows(block, a, step);
    const bool sums_to_all = a.sum && !a.sharded_residual;
    const bool gathers = sums_to_all && a.quantisation == Quantisation::kNone;
    const Size most = ceil_div(ceil_div(a.rows, block.num_pes()), block.count());
    const Size size = gathers ? ceil_div(most, kMostGroups) : most;
    const Size groups = ceil_div(most, size);
    const Epoch first = block.next_epoch(a.epochs, static_cast<Epoch>(groups));
    const Size own_begin = split(a.rows, block.num_pes())[block.pe()].begin;

    block.notify_all(a.arrived, first);
    block.wait_all(a.arrived, first);
    for (Size i = 0; i <= groups; ++i) {
      for (const int pe : block.pes_from_self()) {
        const bool owns = pe == block.pe();
        if (!owns && (i == 0 || !gathers)) break;
        const Range group = group_of(block, a, pe, (owns ? i : i - 1) * size, size);
        for (Size row = group.begin; row < group.end; ++row)
          rows.norm({row, a.sharded_residual ? row - own_begin : row, owns && sums_to_all, !gathers}, owns);
        if (!owns) continue;
        if (i < groups) block.notify_all(a.finished, first + static_cast<Epoch>(i));
        if (i > 0) block.wait_all(a.finished, first + static_cast<Epoch>(i - 1));
      }
    }
  }

  /// Returns the rows of PE `pe` that this block takes, from number `first` on.
  template <class Block>
  TANDEM_DEVICE static Range group_of(Block& block, const Args& a, int pe, Size first, Size count) {
    const Range part = split(split(a.rows, block.num_pes())[pe], block.count())[block.index()];
    return {min(part.begin + first, part.end), min(part.begin + first + count, part.end)};
  }

  /// Norms rows that this PE owns, and others, whose sums are here.
  template <class Block>
  class HeldRows {
   public:
    TANDEM_DEVICE HeldRows(Block& block, const Args& a, Size step) : block_(block), a_(a), row_(block, a, step) {}
    TANDEM_DEVICE void norm(const NormPlace& place, bool owns) {
      if (owns)
        row_.complete(place, [&](int, Range piece) {
          return block_.template load_reduce<float>(a_.in + place.row * a_.hidden, piece, ReduceOp::kSum);
        });
      else
        row_.take(a_.sum.local() + place.row * a_.hidden);
      row_.finish(place);
    }

   private:
    Block& block_;
    const Args& a_;
    HeldRow<T, Q, Block, 1> row_;
  };

  /// The same for rows of any size at any place.
  template <class Block>
  class RowsInPieces {
   public:
    TANDEM_DEVICE RowsInPieces(Block& block, const Args& a, Size step) : block_(block), a_(a), step_(step) {}
    TANDEM_DEVICE void norm(const NormPlace& place, bool owns) {
      NormRow<T, Q, Block> row(block_, a_, place, step_);
      const T* const kept = a_.sum.local();
      row.run(owns, [&](Range piece) {
        if (owns) return block_.template load_reduce<float>(a_.in + place.row * a_.hidden, piece, ReduceOp::kSum);
        return block_.template load<float>(kept + place.row * a_.hidden, piece);
      });
    }

   private:
    Block& block_;
    const Args& a_;
    Size step_;
  };
};

TANDEM_GPU_OUTPUT_KERNELS(AllReduceNormTwoShot, 512);

}  // namespace tandem::kernels
