#include "tandem/impl/cpu/small_floats.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <vector>

namespace tandem {
namespace {

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

/// All numbers of 16 bits.
template <class T>
std::vector<T> all_numbers() {
  std::vector<T> all;
  for (int bits = 0; bits < 1 << 16; ++bits) all.push_back(T::from_bits(static_cast<std::uint16_t>(bits)));
  return all;
}

template <class T>
class SmallFloats : public testing::Test {};
using Types = testing::Types<bf16, f16>;
TYPED_TEST_SUITE(SmallFloats, Types);

TYPED_TEST(SmallFloats, LoopsGiveTheBitsOfSingleConversions) {
  const std::vector<TypeParam> numbers = all_numbers<TypeParam>();
  const auto count = static_cast<Size>(numbers.size()) - 3;  // no whole vectors
  std::vector<float> wide(numbers.size()), expected(numbers.size());
  cpu::impl::widen(wide.data(), numbers.data(), count);
  for (Size i = 0; i < count; ++i) expected[i] = static_cast<float>(numbers[i]);
  EXPECT_EQ(bits_of(wide), bits_of(expected));

  // Floats around each number, so that half of them are rounded up, and ties in both directions.
  for (const std::uint32_t offset : {0U, 0xFFFU, 0x1000U, 0x1001U, 0x7FFFU, 0x8000U, 0x8001U}) {
    std::vector<float> floats;
    for (const float value : expected)
      floats.push_back(std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) + offset));
    std::vector<TypeParam> narrow(numbers.size(), TypeParam(0.0F));
    cpu::impl::narrow(narrow.data(), floats.data(), count);
    int wrong = 0;
    for (Size i = 0; i < count; ++i) wrong += narrow[i].bits != TypeParam(floats[i]).bits ? 1 : 0;
    EXPECT_EQ(wrong, 0) << offset;
  }
}

TYPED_TEST(SmallFloats, SumsAreThoseOfSingleAdditions) {
  const std::vector<TypeParam> numbers = all_numbers<TypeParam>();
  const auto count = static_cast<Size>(numbers.size()) - 3;
  const std::vector<TypeParam> others(numbers.rbegin(), numbers.rend());
  std::vector<float> sums(numbers.size()), more(numbers.size()), expected(numbers.size()),
      expected_more(numbers.size());
  cpu::impl::widen_sum(sums.data(), numbers.data(), others.data(), count);
  more = sums;
  cpu::impl::widen_add(more.data(), numbers.data(), count);
  int wrong = 0;
  for (Size i = 0; i < count; ++i) {
    const float sum = static_cast<float>(numbers[i]) + static_cast<float>(others[i]);
    const float sum_of_three = sum + static_cast<float>(numbers[i]);
    if (sum != sum && sums[i] != sums[i] && more[i] != more[i]) continue;  // the bits of a NaN are either operand's
    wrong += std::bit_cast<std::uint32_t>(sum) != std::bit_cast<std::uint32_t>(sums[i]) ? 1 : 0;
    wrong += std::bit_cast<std::uint32_t>(sum_of_three) != std::bit_cast<std::uint32_t>(more[i]) ? 1 : 0;
  }
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace tandem
