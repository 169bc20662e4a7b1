// Signal values grow from chunk to chunk and from call to call, also for the longest ranges.
#include "collectives/steps/chunk_epoch.h"

#include <gtest/gtest.h>

#include "collectives/steps/move.h"
#include "collectives/steps/reduce_ring_steps.h"
#include "collectives/steps/reduce_tree_steps.h"

namespace tandem::kernels {
namespace {

constexpr Size kSizes[] = {0, 1, 16, 1000, Size{1} << 20, (Size{64} << 20) + 1, Size{1} << 35, (Size{1} << 46) - 1};

TEST(ChunkEpoch, NoPartHasMoreChunksThanAWordTellsApart) {
  for (const Size size : kSizes) {
    for (const Chunks& chunks : {Chunks(size), Chunks(size, Size{64} << 10), Chunks(size, 16, 16, 4)}) {
      EXPECT_LE(chunks.count(), kMostChunksOfCall) << size;
      const Range last = chunks.of({0, size}, max(chunks.count() - 1, 0));
      EXPECT_EQ(last.end, size);
    }
    Size count = 0, end = 0;
    for (const Range chunk : tree_chunks<float>({0, size})) {
      ASSERT_LE(++count, kMostChunksOfCall) << size;
      EXPECT_EQ(chunk.begin % 16, 0);
      end = chunk.end;
    }
    EXPECT_EQ(end, size);
  }
}

TEST(ChunkEpoch, TheFirstChunkOfACallCountsMoreThanTheLastOfTheOneBefore) {
  for (const Epoch epoch : {Epoch{1}, (Epoch{1} << 32) - 1, Epoch{1} << 32, (Epoch{1} << 54) - 2}) {
    EXPECT_LT(chunk_epoch(epoch, 0), chunk_epoch(epoch, kMostChunksOfCall - 1));
    EXPECT_LT(chunk_epoch(epoch, kMostChunksOfCall - 1), chunk_epoch(epoch + 1, 0));
  }
}

TEST(RingCount, TheFirstPieceOfACallCountsMoreThanTheLastOfTheOneBefore) {
  for (const int n : {1, 2, 3, 72, 8192})
    for (const Epoch epoch : {Epoch{1}, (Epoch{1} << 32) - 1, Epoch{1} << 32, Epoch{1} << 44}) {
      const auto delivered = static_cast<Epoch>(2 * (n - 1) * kMostRingChunks);
      EXPECT_LT(ring_count(epoch, n) + delivered, ring_count(epoch + 1, n) + 1);
      EXPECT_LT(ring_count(epoch, n), ring_count(epoch + 1, n));
    }
}

}  // namespace
}  // namespace tandem::kernels
