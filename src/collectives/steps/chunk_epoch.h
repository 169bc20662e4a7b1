#pragma once
/// Signal values for chunked calls. A value combines the call with the chunk, so it grows within a call and across
/// calls.

#include "tandem/range.h"
#include "tandem/signal.h"

namespace tandem::kernels {

/// Most chunks of a call that a word distinguishes. A word has 64 bits for calls and chunks. Ten bits for chunks leave
/// 2^54 calls: 570 years at one call each microsecond, more than any GPU makes. Larger ranges get longer chunks, not
/// more (`chunk_step`).
inline constexpr unsigned kChunkBits = 10;
inline constexpr Size kMostChunksOfCall = Size{1} << kChunkBits;

/// Returns the word's value when chunk `index` of call `epoch` is there. It grows within a call and from call to call,
/// whatever their numbers of chunks.
TANDEM_DEVICE constexpr Epoch chunk_epoch(Epoch epoch, Size index) {
  return (epoch << kChunkBits) + static_cast<Epoch>(index) + 1;
}

/// Returns the chunk length of a range: `wanted`, a multiple of 16, or the larger length that gives kMostChunksOfCall
/// chunks.
TANDEM_DEVICE constexpr Size chunk_step(Size range, Size wanted) {
  return max(wanted, round_up(ceil_div(range, kMostChunksOfCall), 16));
}

}  // namespace tandem::kernels
