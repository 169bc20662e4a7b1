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
/// store(tile, sums) for each tile of the range; tiles count from its begin. A role has few warps, so the loads of
/// several tiles are in flight at once.
template <class T, class Role, class Store>
TANDEM_DEVICE void reduce_slots(Role& role, const StreamChunks<T>& chunks, Size i, const T* own, Range range,
                                ReduceOp op, Accumulator<T> scale, const Store& store) {
  constexpr int kTiles = sizeof(T) >= 4 ? 4 : 2;  // as many as registers have room for
  using A = Accumulator<T>;
  const int me = role.pe(), n = role.num_pes();
  const Size size = range.size(), step = (*role.template tiles<T>({0, size}).begin()).size();
  const auto input = [&](int pe, Range tile) {
    const T* const values = pe == me ? own + range.begin : chunks.slot(role, i, pe, me).local();
    return load_input<T>(role, values, tile, op, pe == me ? scale : Accumulator<T>{1});
  };
  for (Size begin = 0; begin < size; begin += kTiles * step) {
    const auto tile = [&](int k) { return Range{min(begin + k * step, size), min(begin + (k + 1) * step, size)}; };
    decltype(input(0, tile(0))) next[kTiles];
    decltype(next[0].template convert<A>()) sums[kTiles];
    for (int k = 0; k < kTiles; ++k) next[k] = input(0, tile(k));
    for (int pe = 1; pe <= n; ++pe) {
      decltype(input(0, tile(0))) values[kTiles];
      for (int k = 0; k < kTiles; ++k) values[k] = std::move(next[k]);
      for (int k = 0; k < kTiles; ++k)
        if (pe < n) next[k] = input(pe, tile(k));
      for (int k = 0; k < kTiles; ++k) {
        auto converted = values[k].template convert<A>();
        sums[k] = pe == 1 ? std::move(converted) : role.combine(op, sums[k], converted);
      }
    }
    for (int k = 0; k < kTiles; ++k)
      if (!tile(k).empty()) store(tile(k), finished(std::move(sums[k]), op, n));
  }
}

}  // namespace tandem::kernels
