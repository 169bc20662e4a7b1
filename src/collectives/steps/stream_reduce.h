#pragma once
/// Parts of reductions whose inputs come through slots.

#include "collectives/steps/reduce_input.h"
#include "collectives/steps/stream_slots.h"

namespace tandem::kernels {

/// Stores the elements `range` of this PE's input to a slot. Without a factor it is a copy, with more loads in flight.
template <class T, class Role>
TANDEM_DEVICE void fill_slot(Role& role, T* slot, const T* in, Range range, ReduceOp op, Accumulator<T> scale) {
  if (op == ReduceOp::kPremulSum)
    copy_input<T>(role, slot, in + range.begin, {0, range.size()}, op, scale);
  else
    role.copy(slot, in + range.begin, range.size());
}

/// Sums the elements `range` of all PEs' inputs in PE order: `own` is this PE's, and chunk i has the others'. Calls
/// store(tile, sums) for each tile of the range; tiles count from its begin.
template <class T, class Role, class Store>
TANDEM_DEVICE void reduce_slots(Role& role, const StreamChunks<T>& chunks, Size i, const T* own, Range range,
                                ReduceOp op, Accumulator<T> scale, const Store& store) {
  const int me = role.pe();
  for (const Range tile : role.template tiles<T>({0, range.size()})) {
    const auto input = [&](int pe) {
      const T* const values = pe == me ? own + range.begin : chunks.slot(role, i, pe, me).local();
      return load_input<T>(role, values, tile, op, pe == me ? scale : Accumulator<T>{1});
    };
    store(tile, reduce_in_pe_order<T>(role, op, role.num_pes(), input));
  }
}

}  // namespace tandem::kernels
