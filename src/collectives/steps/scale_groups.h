#pragma once
/// Groups of elements that share a scale.

#include "tandem/block.h"

namespace tandem::kernels {

/// Elements of a group.
inline constexpr int kScaleGroup = 128;

/// Returns the elements of T that a block takes at once, of at most `most`: whole groups.
template <class T, class Block>
TANDEM_DEVICE Size group_step(Block& block, Size most) {
  const Size tile = (*block.template tiles<T>({0, most}).begin()).size();
  return max(kScaleGroup, tile / kScaleGroup * kScaleGroup);
}

}  // namespace tandem::kernels
