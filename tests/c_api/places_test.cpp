// Numbers of allocations and registrations, which tell places of a world's memory apart.
#include <gtest/gtest.h>

#include "../../bindings/c/call_order.h"
#include "../../bindings/c/world.h"
#include "tandem/error.h"

namespace tandem::c {
namespace {

TEST(Places, AreOthersForAllNumbersOfBothKinds) {
  const std::uint64_t last = Place::number_of(false, Place::kMostBuffers, 0);
  EXPECT_GT(last, Place::number_of(false, Place::kMostBuffers - 1, 0));
  EXPECT_LT(last, Place::number_of(true, 1, 0)) << "a registration's";
  EXPECT_LT(Place::number_of(true, 1, 0), Place::number_of(true, Place::kMostBuffers, 0));
}

TEST(Places, HaveNoNumberBeyondTheLast) {
  BufferNumbers numbers("allocations");
  for (int i = 1; i <= Place::kMostBuffers; ++i) {
    ASSERT_EQ(numbers.next(), i);
    numbers.take(i);
  }
  EXPECT_THROW(numbers.next(), OutOfMemory);
  numbers.free(7);
  numbers.free(5);
  EXPECT_EQ(numbers.next(), 5);
  numbers.take(5);
  EXPECT_EQ(numbers.next(), 7);
}

}  // namespace
}  // namespace tandem::c
