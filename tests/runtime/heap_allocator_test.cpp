#include "runtime/heap_allocator.h"

#include <gtest/gtest.h>

#include <string>

#include "tandem/error.h"

namespace tandem {
namespace {

constexpr Size kMiB = Size{1} << 20;

TEST(HeapAllocator, WhatDoesNotFitOnOnePeFitsOnNone) {
  HeapAllocator allocator(2, 2 * kMiB);
  const auto ask = [&](int pe, Size bytes, const char* name) {
    return allocator.allocate_symmetric(pe, MemoryKind::kData, bytes, name, 1);
  };
  EXPECT_THROW(ask(0, 3 * kMiB, "large"), OutOfMemory);
  const Size small = ask(0, kMiB, "small");  // before PE 1 has asked for the large one
  EXPECT_THROW(ask(1, 3 * kMiB, "large"), OutOfMemory);
  EXPECT_EQ(ask(1, kMiB, "small"), small);
}

/// One PE's book of data.
class OnePe : public testing::Test {
 protected:
  Size ask(Size bytes) { return allocator_.allocate_symmetric(0, MemoryKind::kData, bytes, "buffer", 1); }
  Size ask_own(Size bytes) { return allocator_.allocate_local(0, MemoryKind::kData, bytes, "own", 1); }
  void free(Size offset) { allocator_.free_symmetric(0, offset); }

  HeapAllocator allocator_{1, 4 * kMiB};
};

TEST_F(OnePe, WhatIsFreedIsUsedAgainLowestFirst) {
  const Size a = ask(kMiB);
  const Size b = ask(kMiB);
  const Size c = ask(kMiB);
  const Size d = ask(kMiB);
  EXPECT_THROW(ask(1), OutOfMemory);
  free(a);
  free(c);
  EXPECT_THROW(ask(2 * kMiB), OutOfMemory) << "the holes are no neighbours";
  EXPECT_EQ(ask(kMiB / 2), a);
  EXPECT_EQ(ask(kMiB), c) << "what is left of the first hole is too small";
  EXPECT_EQ(ask(kMiB / 2), a + kMiB / 2);
  free(b);
  free(c);
  EXPECT_EQ(ask(2 * kMiB), b) << "neighbours are one hole";
  EXPECT_EQ(allocator_.describe(0, d), "buffer[0] on PE 0");
}

TEST_F(OnePe, WhatIsFreedAtTheEndIsThereForBuffersOfOnePeToo) {
  const Size a = ask(kMiB);
  const Size b = ask(3 * kMiB);
  EXPECT_THROW(ask_own(kMiB), OutOfMemory);
  free(a);
  EXPECT_THROW(ask_own(kMiB), OutOfMemory) << "a hole below a symmetric buffer";
  free(b);
  const Size own = ask_own(4 * kMiB);
  allocator_.free_local(0, own);
  EXPECT_EQ(ask(4 * kMiB), a);
}

TEST_F(OnePe, BuffersOfOnePeAreUsedAgain) {
  const Size first = ask_own(kMiB);
  const Size second = ask_own(kMiB);
  allocator_.free_local(0, first);
  EXPECT_EQ(allocator_.left(MemoryKind::kData), 2 * kMiB);
  EXPECT_EQ(ask_own(kMiB), first);
  allocator_.free_local(0, first);
  allocator_.free_local(0, second);
  EXPECT_EQ(allocator_.left(MemoryKind::kData), 4 * kMiB);
}

TEST_F(OnePe, WhatIsNoBufferIsNotFreed) {
  const Size a = ask(kMiB);
  EXPECT_THROW(free(a + 256), InvalidArgument);
  EXPECT_THROW(allocator_.free_local(0, a), InvalidArgument);
  free(a);
  EXPECT_THROW(free(a), InvalidArgument);
}

TEST(HeapAllocator, PesThatFreeOtherBuffersAreRefused) {
  HeapAllocator allocator(2, 4 * kMiB);
  const auto ask = [&](int pe) { return allocator.allocate_symmetric(pe, MemoryKind::kData, kMiB, "x", 1); };
  const Size first = ask(0);
  ask(1);
  const Size second = ask(0);
  ask(1);
  allocator.free_symmetric(0, first);
  EXPECT_THROW(allocator.free_symmetric(1, second), InvalidArgument);
  allocator.free_symmetric(0, second);
  EXPECT_THROW(ask(1), InvalidArgument) << "the other one freed here";
}

TEST(HeapAllocator, GuardedLeavesRoomAndUsesWhatWasFreedLast) {
  HeapAllocator allocator(1, 4 * kMiB, 0, true);
  const auto ask = [&](Size bytes, const char* name) {
    return allocator.allocate_symmetric(0, MemoryKind::kData, bytes, name, 4);
  };
  const Size a = ask(256, "a");
  EXPECT_EQ(ask(256, "b") - a, 256 + HeapAllocator::kGuardBytes);
  EXPECT_EQ(allocator.describe(0, a + 260), "a + 260 of 256 bytes on PE 0");
  EXPECT_EQ(allocator.describe(0, a + HeapAllocator::kGuardBytes), "b - 256 bytes on PE 0");
  EXPECT_FALSE(allocator.within_buffer(0, a + 252, 8));
  EXPECT_EQ(allocator.bytes_from(0, a + 252), 4);
  EXPECT_EQ(allocator.bytes_from(0, a + 256), std::nullopt);
  allocator.free_symmetric(0, a);
  EXPECT_TRUE(allocator.was_freed(0, a + 4));
  EXPECT_EQ(allocator.describe(0, a + 4), "a[1] on PE 0, which was freed");
  EXPECT_NE(ask(256, "c"), a);
  EXPECT_TRUE(allocator.was_freed(0, a));
  ask(allocator.left(MemoryKind::kData) - HeapAllocator::kGuardBytes, "all that is left");
  EXPECT_EQ(ask(256, "d"), a) << "nothing else is left";
  EXPECT_FALSE(allocator.was_freed(0, a));
}

TEST(HeapAllocator, GuardedUsesOwnBuffersThatWereFreedLast) {
  HeapAllocator allocator(1, kMiB, 0, true);
  const auto ask = [&](Size bytes) { return allocator.allocate_local(0, MemoryKind::kData, bytes, "own", 4); };
  const Size a = ask(256);
  allocator.free_local(0, a);
  EXPECT_NE(ask(256), a);
  EXPECT_TRUE(allocator.was_freed(0, a));
  ask(kMiB - 2 * (256 + HeapAllocator::kGuardBytes) - HeapAllocator::kGuardBytes);
  EXPECT_EQ(ask(256), a);
}

TEST(HeapAllocator, WhatAllPesHaveReleasedIsFreeWhereTheyMeetForIt) {
  HeapAllocator allocator(2, 4 * kMiB);
  const auto ask = [&](int pe, Size bytes) {
    return allocator.allocate_symmetric(pe, MemoryKind::kData, bytes, "x", 1);
  };
  const auto needs_barrier = [&](int pe, Size bytes) { return allocator.needs_barrier(pe, MemoryKind::kData, bytes); };
  Size first = 0, second = 0;
  for (const int pe : {0, 1}) {
    first = ask(pe, kMiB);
    second = ask(pe, 2 * kMiB);
  }
  allocator.release_symmetric(0, first);
  allocator.release_symmetric(0, second);
  allocator.release_symmetric(1, first);
  EXPECT_FALSE(needs_barrier(0, kMiB)) << "there is room";
  EXPECT_EQ(ask(0, kMiB), second + 2 * kMiB);
  EXPECT_FALSE(needs_barrier(1, kMiB)) << "PE 0 had room when it came";
  ask(1, kMiB);
  EXPECT_TRUE(needs_barrier(1, 3 * kMiB));
  allocator.release_symmetric(1, second);
  EXPECT_TRUE(needs_barrier(0, 3 * kMiB));
  for (int pe : {0, 1}) {
    allocator.reclaim();
    EXPECT_EQ(ask(pe, 3 * kMiB), first) << "neighbours are one hole";
  }
  EXPECT_TRUE(needs_barrier(0, kMiB));
  EXPECT_TRUE(needs_barrier(1, kMiB)) << "in vain, but alike";
  EXPECT_THROW(ask(0, kMiB), OutOfMemory);
  EXPECT_THROW(ask(1, kMiB), OutOfMemory);
  EXPECT_THROW(allocator.release_symmetric(0, second), InvalidArgument) << "no buffer begins there any more";
}

TEST(HeapAllocator, GrowsForAllPesAlikeUpToItsLimit) {
  HeapAllocator allocator(2, 4 * kMiB, 16 * kMiB);
  const auto ask = [&](int pe, Size bytes) {
    if (const Size more = allocator.growth_for(pe, bytes)) allocator.grow(more);
    return allocator.allocate_symmetric(pe, MemoryKind::kData, bytes, "x", 1);
  };
  const Size first = ask(0, 3 * kMiB);
  allocator.allocate_local(1, MemoryKind::kData, kMiB, "own", 1);
  EXPECT_EQ(allocator.growth_for(0, kMiB), 4 * kMiB) << "PE 1 has no room for it: as much again";
  const Size second = ask(0, kMiB);
  EXPECT_EQ(second, allocator.range_bytes());
  EXPECT_EQ(ask(1, 3 * kMiB), first);
  EXPECT_EQ(allocator.growth_for(1, kMiB), 0) << "PE 0 has made it";
  EXPECT_EQ(ask(1, kMiB), second);
  EXPECT_EQ(ask(0, 10 * kMiB), second + kMiB);
  EXPECT_EQ(ask(1, 10 * kMiB), second + kMiB);
  try {
    ask(0, 2 * kMiB);
    FAIL() << "nothing was thrown";
  } catch (const OutOfMemory& error) {
    EXPECT_NE(std::string(error.what()).find("2097152 bytes asked, 1048576 of"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("may grow to 16777216"), std::string::npos) << error.what();
  }
  EXPECT_THROW(ask(1, 2 * kMiB), OutOfMemory);
  for (const int pe : {0, 1}) allocator.free_symmetric(pe, second + kMiB);
  EXPECT_EQ(ask(0, 11 * kMiB), second + kMiB) << "what is freed behind is one with the rest";
}

}  // namespace
}  // namespace tandem
