#pragma once
/// What words count to where chunks of a call are told one by one.

#include "tandem/range.h"
#include "tandem/signal.h"

namespace tandem::kernels {

/// Chunks of one call that a word tells apart. A word has 64 bits for calls and chunks: ten for chunks leave 2^54
/// calls, which at one every microsecond, more than any GPU makes, are 570 years. So what is cut into chunks is cut
/// into no more than these (`chunk_step`): chunks grow, not their number.
inline constexpr unsigned kChunkBits = 10;
inline constexpr Size kMostChunksOfCall = Size{1} << kChunkBits;

/// What a word says when chunk `index` of call `epoch` is there: grows within a call and from call to call, whatever
/// their numbers of chunks.
TANDEM_DEVICE constexpr Epoch chunk_epoch(Epoch epoch, Size index) {
  return (epoch << kChunkBits) + static_cast<Epoch>(index) + 1;
}

/// The length of chunks of a range: `wanted`, a multiple of 16, or as much more as keeps them within kMostChunksOfCall.
TANDEM_DEVICE constexpr Size chunk_step(Size range, Size wanted) {
  return max(wanted, round_up(ceil_div(range, kMostChunksOfCall), 16));
}

}  // namespace tandem::kernels
