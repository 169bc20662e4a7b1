#include "base/divider.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <random>

namespace tandem {
namespace {

constexpr std::int32_t kMost = 2147483647;

void expect_quotients(std::int32_t divisor, std::initializer_list<std::int64_t> numbers) {
  const Divider by(divisor);
  for (const std::int64_t n : numbers) {
    if (n < 0 || n > kMost) continue;
    EXPECT_EQ(by(static_cast<std::int32_t>(n)), n / divisor) << n << " / " << divisor;
  }
}

TEST(Divider, IsOneAtFirst) { EXPECT_EQ(Divider()(kMost), kMost); }

TEST(Divider, GivesQuotientsOfSmallNumbers) {
  for (std::int32_t divisor = 1; divisor <= 300; ++divisor) {
    const Divider by(divisor);
    for (std::int32_t n = 0; n < 2000; ++n) ASSERT_EQ(by(n), n / divisor) << n << " / " << divisor;
  }
}

TEST(Divider, GivesQuotientsBesideMultiplesOfEveryKindOfDivisor) {
  std::mt19937 random(1);
  for (int bits = 1; bits <= 31; ++bits)
    for (int i = 0; i < 200; ++i) {
      const std::int64_t power = std::int64_t{1} << bits;
      const std::int64_t divisors[] = {power - 1, power, power + 1,
                                       power - static_cast<std::int64_t>(random() % power)};
      for (const std::int64_t divisor : divisors) {
        if (divisor < 1 || divisor > kMost) continue;
        const std::int64_t multiple = random() % (kMost / divisor + 1) * divisor;
        const std::int64_t last = kMost / divisor * divisor;
        expect_quotients(static_cast<std::int32_t>(divisor),
                         {multiple - 1, multiple, multiple + 1, last - 1, last, last + 1, kMost});
      }
    }
}

}  // namespace
}  // namespace tandem
