// Keys and what they prove.
#include "bootstrap/seal.h"

#include <gmock/gmock.h>

#include <memory>

namespace tandem::bootstrap {
namespace {

TEST(KeyTest, IsOverwrittenWhenItIsDestroyed) {
  alignas(Key) std::array<unsigned char, sizeof(Key)> memory{};
  Key* const key = std::construct_at(reinterpret_cast<Key*>(memory.data()), random_key());
  EXPECT_THAT(memory, ::testing::Contains(::testing::Ne(0)));
  std::destroy_at(key);
  EXPECT_THAT(memory, ::testing::Each(0));
}

}  // namespace
}  // namespace tandem::bootstrap
