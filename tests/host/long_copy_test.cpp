// Copies past the caches: the right bytes at every alignment and length, and nothing beside them.
#include "base/cpu/long_copy.h"

#include <gtest/gtest.h>

#include <vector>

namespace tandem::cpu {
namespace {

TEST(LongCopy, CopiesEveryByteAndNoOther) {
  constexpr Size kRoom = 40'000, kMargin = 100;
  std::vector<std::byte> from(kRoom);
  for (Size i = 0; i < kRoom; ++i) from[static_cast<std::size_t>(i)] = static_cast<std::byte>(i % 251);
  for (const Size bytes : {0, 1, 63, 64, 16'383, 16'384, 16'385, 33'000})
    for (const Size to_offset : {0, 1, 16, 63})
      for (const Size from_offset : {0, 3, 64}) {
        constexpr std::byte kOther{0xEE};
        std::vector<std::byte> to(kRoom + kMargin, kOther);
        copy_past_caches(to.data() + to_offset, from.data() + from_offset, bytes);
        Size wrong = 0;
        for (Size i = 0; i < kRoom + kMargin; ++i) {
          const bool is_copy = i >= to_offset && i < to_offset + bytes;
          const Size source = i - to_offset + from_offset;
          wrong += to[static_cast<std::size_t>(i)] != (is_copy ? from[static_cast<std::size_t>(source)] : kOther);
        }
        EXPECT_EQ(wrong, 0) << bytes << " bytes from " << from_offset << " to " << to_offset;
      }
}

}  // namespace
}  // namespace tandem::cpu
