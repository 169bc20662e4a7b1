#pragma once
/// Common parts of norms of rows: their outputs, which are scales and elements in the output's type.

#include <cmath>

#include "collectives/all_reduce_norm/norm_args.h"

namespace tandem::kernels {

/// Calls f(pe) for this PE, or for all PEs.
template <class Block, class F>
TANDEM_DEVICE void for_pes(Block& block, bool all, const F& f) {
  if (!all) return f(block.pe());
  for (const int pe : block.pes_from_self()) f(pe);
}

template <class Values>
TANDEM_DEVICE Values magnitudes(const Values& values) {
  return values.map([](float x) { return fabsf(x); });
}

/// The sums and maxima of a row that one block has whole.
struct WholeRow {
  template <class Block, class Values>
  TANDEM_DEVICE static float sum(Block& block, const Values& values) {
    return block.sum(values);
  }
  template <class Block, class Values>
  TANDEM_DEVICE static float greatest(Block& block, const Values& values) {
    return block.greatest(values);
  }
  /// Whether this block writes what a row has once.
  TANDEM_DEVICE static bool is_first() { return true; }
};

/// Returns the scale of a row, and writes it if `writes`.
template <class T, class Q, class Block>
TANDEM_DEVICE float write_row_scale(Block& block, const NormArgs<T, Q>& a, const NormPlace& place, float greatest,
                                    bool writes = true) {
  const float scale = scale_for(greatest);
  if (writes) for_pes(block, place.out_to_all, [&](int pe) { block.store_scalar(a.scales.on(pe) + place.row, scale); });
  return scale;
}

/// Writes the scales of the groups of a piece, and returns the elements divided by them.
template <class T, class Q, class Block, class Values>
TANDEM_DEVICE Values scaled_by_groups(Block& block, const NormArgs<T, Q>& a, const NormPlace& place, Range piece,
                                      const Values& y) {
  const Size first = place.row * ceil_div(a.hidden, kScaleGroup) + piece.begin / kScaleGroup;
  const Values scales =
      block.template group_greatest<kScaleGroup>(magnitudes(y)).map([](float most) { return scale_for(most); });
  for_pes(block, place.out_to_all,
          [&](int pe) { block.template store_group_firsts<kScaleGroup>(a.scales.on(pe) + first, scales); });
  return y.zip(scales, [](float x, float scale) { return x * (1.0F / scale); });
}

/// Writes the elements of a piece.
template <class T, class Q, class Block, class Values>
TANDEM_DEVICE void write_normed(Block& block, const NormArgs<T, Q>& a, const NormPlace& place, Range piece,
                                const Values& y) {
  const auto out = y.template convert<Q>();
  for_pes(block, place.out_to_all, [&](int pe) { block.store(a.out.on(pe) + place.row * a.hidden, piece, out); });
}

}  // namespace tandem::kernels
