#include "model/heap_book.h"

#include <gtest/gtest.h>

#include "tandem/error.h"

namespace tandem {
namespace {

constexpr Size kMiB = Size{1} << 20;

TEST(HeapBook, WhatDoesNotFitOnOnePeFitsOnNone) {
  HeapBook book(2, 2 * kMiB);
  const auto ask = [&](int pe, Size bytes, const char* name) {
    return book.allocate_symmetric(pe, MemoryKind::kData, bytes, name, 1);
  };
  EXPECT_THROW(ask(0, 3 * kMiB, "large"), OutOfMemory);
  const Size small = ask(0, kMiB, "small");  // before PE 1 has asked for the large one
  EXPECT_THROW(ask(1, 3 * kMiB, "large"), OutOfMemory);
  EXPECT_EQ(ask(1, kMiB, "small"), small);
}

}  // namespace
}  // namespace tandem
