#include "tandem/numeric.h"

#include <gtest/gtest.h>

#include <Eigen/Core>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "tandem/reduce_op.h"

namespace tandem {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Floats that are hard to round: every pattern of the upper bits with the lower ones around zero, half and full.
template <class F>
void for_hard_floats(F&& f) {
  for (std::uint32_t high = 0; high < 0x1'0000; ++high) {
    for (std::uint32_t low : {0x0000U, 0x0001U, 0x0FFFU, 0x1000U, 0x1001U, 0x1FFFU, 0x2000U, 0x3000U, 0x7FFFU, 0x8000U,
                              0x8001U, 0xF000U, 0xFFFFU}) {
      f(impl::float_of(high << 16 | low));
    }
  }
}

template <class Ours, class Theirs>
void expect_same_as() {
  for (std::uint32_t bits = 0; bits < 0x1'0000; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    const auto ours = static_cast<float>(Ours::from_bits(pattern));
    const auto theirs = static_cast<float>(Eigen::numext::bit_cast<Theirs>(pattern));
    if (std::isnan(theirs)) {
      EXPECT_TRUE(std::isnan(ours)) << bits;
      EXPECT_TRUE(std::isnan(static_cast<float>(Ours(ours)))) << bits;
    } else {
      ASSERT_EQ(impl::bits_of(ours), impl::bits_of(theirs)) << bits;
      ASSERT_EQ(Ours(ours).bits, pattern);
    }
  }
  for_hard_floats([](float value) {
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(static_cast<float>(Ours(value))));
    } else {
      ASSERT_EQ(Ours(value).bits, Eigen::numext::bit_cast<std::uint16_t>(Theirs(value))) << std::hexfloat << value;
    }
  });
}

TEST(Numeric, HalfIsEigensHalf) { expect_same_as<f16, Eigen::half>(); }
TEST(Numeric, Bfloat16IsEigensBfloat16) { expect_same_as<bf16, Eigen::bfloat16>(); }

/// The magnitudes of a format from its definition: pattern -> value.
std::vector<double> table(int exponent_bits, int mantissa_bits, int finite_patterns) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  std::vector<double> values;
  for (int pattern = 0; pattern < finite_patterns; ++pattern) {
    const int exponent = pattern >> mantissa_bits;
    const int mantissa = pattern & ((1 << mantissa_bits) - 1);
    const int significand = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
    values.push_back(std::ldexp(significand, (exponent == 0 ? 1 : exponent) - bias - mantissa_bits));
  }
  return values;
}

/// Nearest entry, ties to the even pattern; `beyond` from half a step above the last.
int nearest(const std::vector<double>& values, double magnitude, int beyond) {
  const int last = static_cast<int>(values.size()) - 1;
  const double step = values[last] - values[last - 1];
  if (magnitude >= values[last] + step / 2) return beyond;
  int best = 0;
  for (int i = 1; i <= last; ++i) {
    const double gain = std::fabs(values[best] - magnitude) - std::fabs(values[i] - magnitude);
    if (gain > 0 || (gain == 0 && i % 2 == 0)) best = i;
  }
  return best;
}

template <class T>
void expect_as_table(const std::vector<double>& values, int beyond) {
  for (int pattern = 0; pattern < 256; ++pattern) {
    const int magnitude = pattern & 0x7F;
    const auto value = static_cast<float>(T::from_bits(static_cast<std::uint8_t>(pattern)));
    if (magnitude < static_cast<int>(values.size())) {
      ASSERT_EQ(std::signbit(value), pattern >= 128);
      ASSERT_EQ(std::fabs(value), values[static_cast<std::size_t>(magnitude)]) << pattern;
      ASSERT_EQ(T(value).bits, pattern);
    }
  }
  for_hard_floats([&](float value) {
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(static_cast<float>(T(value))));
    } else if (impl::bits_of(value) % 5 == 0 || std::fabs(value) > 400) {  // the slow reference sees a part of them
      const int expected = nearest(values, std::fabs(static_cast<double>(value)), beyond);
      ASSERT_EQ(T(value).bits, expected | (std::signbit(value) ? 0x80 : 0)) << std::hexfloat << value;
    }
  });
}

TEST(Numeric, E4m3IsItsTableAndSaturates) {
  const auto values = table(4, 3, 0x7F);
  ASSERT_EQ(values.back(), 448);
  expect_as_table<fp8_e4m3>(values, 0x7E);
  EXPECT_EQ(fp8_e4m3(kInf).bits, 0x7E);
  EXPECT_EQ(fp8_e4m3(-1e30F).bits, 0xFE);
  EXPECT_TRUE(std::isnan(static_cast<float>(fp8_e4m3::from_bits(0x7F))));
  EXPECT_TRUE(std::isnan(static_cast<float>(fp8_e4m3::from_bits(0xFF))));
}

TEST(Numeric, E5m2IsItsTableAndOverflowsToInfinity) {
  const auto values = table(5, 2, 0x7C);
  ASSERT_EQ(values.back(), 57344);
  expect_as_table<fp8_e5m2>(values, 0x7C);
  EXPECT_EQ(static_cast<float>(fp8_e5m2::from_bits(0xFC)), -kInf);
  for (int pattern : {0x7D, 0x7E, 0x7F, 0xFF}) {
    EXPECT_TRUE(std::isnan(static_cast<float>(fp8_e5m2::from_bits(static_cast<std::uint8_t>(pattern)))));
  }
}

TEST(Numeric, NamesAndSizesAgreeWithTheTypes) {
  for (const DType type : kDTypes) {
    EXPECT_EQ(parse_dtype(name(type)), type);
    dispatch(type, [&]<class T>() {
      EXPECT_EQ(dtype_of<T>(), type);
      EXPECT_EQ(static_cast<Size>(sizeof(T)), size_of(type));
      EXPECT_TRUE(std::is_trivial_v<T>);
    });
  }
  for (const ReduceOp op : kReduceOps) EXPECT_EQ(parse_reduce_op(name(op)), op);
  static_assert(std::is_same_v<Accumulator<bf16>, float> && std::is_same_v<Accumulator<fp8_e5m2>, float> &&
                std::is_same_v<Accumulator<std::int8_t>, std::int8_t> && std::is_same_v<Accumulator<double>, double>);
}

TEST(Numeric, UnknownNamesAreRefusedWithTheListOfAllowedOnes) {
  try {
    parse_dtype("float");
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(
        error.what(),
        "dtype: 'float' given, allowed are f32, f16, bf16, fp8_e4m3, fp8_e5m2, i8, u8, i32, u32, i64, u64, f64");
  }
  EXPECT_THROW(parse_reduce_op("mean"), InvalidArgument);
}

TEST(Numeric, FloatsBecomeIntegersTowardsZeroWithinTheRange) {
  EXPECT_EQ(convert<std::int32_t>(-2.9F), -2);
  EXPECT_EQ(convert<std::int8_t>(200.0F), 127);
  EXPECT_EQ(convert<std::int8_t>(-128.5), -128);
  EXPECT_EQ(convert<std::int8_t>(-1e9F), -128);
  EXPECT_EQ(convert<std::uint8_t>(-3.0F), 0);
  EXPECT_EQ(convert<std::uint32_t>(4294967040.0F), 4294967040U);
  volatile float beyond = 2147483648.0F, not_a_number = kNan;  // not folded by the compiler
  EXPECT_EQ(convert<std::int32_t>(static_cast<float>(beyond)), 2147483647);
  EXPECT_EQ(convert<std::int32_t>(static_cast<float>(not_a_number)), 0);
  EXPECT_EQ(convert<std::int64_t>(kInf), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(convert<std::uint64_t>(1e30), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(convert<std::int64_t>(-9223372036854775808.0), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(convert<std::int32_t>(bf16(3.0F)), 3);
  EXPECT_EQ(convert<bf16>(std::int64_t{5}).bits, bf16(5.0F).bits);
  EXPECT_EQ(convert<std::int8_t>(std::int32_t{257}), 1);
}

TEST(Numeric, ConvertsArrays) {
  const std::vector<float> from = {0.0F, -1.5F, 3.0e38F, 1.0e-40F, kInf};
  std::vector<bf16> small(from.size());
  std::vector<float> back(from.size());
  convert(from.data(), small.data(), static_cast<Size>(from.size()));
  convert(small.data(), back.data(), static_cast<Size>(from.size()));
  for (std::size_t i = 0; i < from.size(); ++i) EXPECT_EQ(back[i], static_cast<float>(bf16(from[i]))) << i;
}

TEST(ReduceOps, IntegersWrap) {
  EXPECT_EQ(apply<std::int8_t>(ReduceOp::kSum, 127, 1), -128);
  EXPECT_EQ(apply<std::uint8_t>(ReduceOp::kSum, 255, 2), 1);
  EXPECT_EQ(apply<std::int32_t>(ReduceOp::kSum, std::numeric_limits<std::int32_t>::max(), 1),
            std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(apply<std::int64_t>(ReduceOp::kProd, std::numeric_limits<std::int64_t>::max(), 2), -2);
  EXPECT_EQ(apply<std::int8_t>(ReduceOp::kProd, -128, -1), -128);
  EXPECT_EQ(premultiply<std::int32_t>(1 << 30, 4), 0);
}

TEST(ReduceOps, AverageDividesAtTheEndTowardsZero) {
  EXPECT_EQ(finish<std::int32_t>(ReduceOp::kAvg, -7, 2), -3);
  EXPECT_EQ(finish<std::int8_t>(ReduceOp::kAvg, 100, 3), 33);
  EXPECT_EQ(finish<std::uint64_t>(ReduceOp::kAvg, std::numeric_limits<std::uint64_t>::max(), 2),
            std::numeric_limits<std::uint64_t>::max() / 2);
  EXPECT_EQ(finish(ReduceOp::kAvg, 3.0F, 2), 1.5F);
  EXPECT_EQ(finish(ReduceOp::kSum, 3.0F, 2), 3.0F);
  EXPECT_EQ(finish(ReduceOp::kPremulSum, 3.0, 2), 3.0);
}

TEST(ReduceOps, MinimumAndMaximumPropagateNan) {
  EXPECT_EQ(apply(ReduceOp::kMin, 1.0F, -2.0F), -2.0F);
  EXPECT_EQ(apply(ReduceOp::kMax, 1.0F, -2.0F), 1.0F);
  EXPECT_EQ(apply<std::int8_t>(ReduceOp::kMin, -128, 127), -128);
  EXPECT_EQ(apply<std::uint32_t>(ReduceOp::kMax, 0xFFFF'FFFFU, 1U), 0xFFFF'FFFFU);
  for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
    EXPECT_TRUE(std::isnan(apply(op, kNan, 1.0F)));
    EXPECT_TRUE(std::isnan(apply(op, 1.0F, kNan)));
    EXPECT_TRUE(std::isnan(apply(op, kNan, -kInf)));
  }
}

TEST(ReduceOps, AddAndMultiplyFloats) {
  EXPECT_EQ(apply(ReduceOp::kSum, 1.5F, 2.0F), 3.5F);
  EXPECT_EQ(apply(ReduceOp::kAvg, 1.5F, 2.0F), 3.5F);
  EXPECT_EQ(apply(ReduceOp::kPremulSum, 1.5, 2.0), 3.5);
  EXPECT_EQ(apply(ReduceOp::kProd, 1.5F, 2.0F), 3.0F);
  EXPECT_EQ(premultiply(1.5F, 0.5F), 0.75F);
}

}  // namespace
}  // namespace tandem
