// Bias and activation of the portable GEMM.

#include "gemm/contract/epilogue.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tandem/error.h"

namespace tandem {
namespace {

// Values of the normal distribution's and the logistic function's tables.
TEST(Epilogue, ActivationsAreThoseOfTheTables) {
  EXPECT_EQ(activate(Activation::kNone, -1.5F), -1.5F);
  EXPECT_EQ(activate(Activation::kRelu, -1.5F), 0.0F);
  EXPECT_EQ(activate(Activation::kRelu, 1.5F), 1.5F);
  EXPECT_NEAR(activate(Activation::kGelu, 1), 0.8413447F, 1e-6);
  EXPECT_NEAR(activate(Activation::kGelu, -2), -2 * 0.0227501F, 1e-6);
  EXPECT_NEAR(activate(Activation::kSilu, 1), 0.7310586F, 1e-6);
  EXPECT_NEAR(activate(Activation::kSilu, -2), -2 * 0.1192029F, 1e-6);
}

TEST(Epilogue, NotANumberStaysOne) {
  for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kSilu})
    EXPECT_TRUE(std::isnan(activate(activation, std::numeric_limits<float>::quiet_NaN())));
}

TEST(Epilogue, TheBiasIsThatOfTheColumns) {
  const std::vector<bf16> bias{bf16(1), bf16(2), bf16(-30), bf16(4)};
  Gemm gemm;
  gemm.n = 4;
  gemm.bias = bias.data();
  gemm.activation = Activation::kRelu;
  std::vector<float> sums{10, 20, 30, 40};  // columns 1 and 2 of two rows
  apply_epilogue(gemm, {0, 2}, {1, 3}, sums.data());
  EXPECT_EQ(sums, (std::vector<float>{12, 0, 32, 10}));
}

TEST(Epilogue, ScalesAreThoseOfRowsAndColumns) {
  const float a[] = {1, 2, 4}, b[] = {1, 0.5F, 3}, c = 10;
  const bf16 bias[] = {bf16(1), bf16(2), bf16(3)};
  Gemm gemm;
  gemm.n = 3;
  gemm.out_type = DType::kE4M3;  // then the bias is bf16
  gemm.bias = bias;
  gemm.scales = {a, true, b, true, &c};
  std::vector<float> sums{100, 10};
  apply_epilogue(gemm, {1, 2}, {1, 3}, sums.data());
  EXPECT_EQ(sums, (std::vector<float>{(100 * 2 * 0.5F + 2) * 10, (10 * 2 * 3 + 3) * 10}));
  gemm.scales = {a, false, b, false, nullptr};
  sums = {100, 10};
  apply_epilogue(gemm, {1, 2}, {1, 3}, sums.data());
  EXPECT_EQ(sums, (std::vector<float>{102, 13}));
}

TEST(Epilogue, ActivationsOfOtherValuesAreRefused) {
  Gemm gemm;
  gemm.activation = static_cast<Activation>(6);
  EXPECT_THROW(check_epilogue(gemm), InvalidArgument);
}

// Two rows of a group of gates and a group of ups, with scales, a bias and a scale of C.
TEST(Epilogue, GatedPairsBecomeOneColumnEach) {
  const std::vector<bf16> bias(16, convert<bf16>(1.0F));
  const float of_b = 2, of_c = 4;
  Gemm gemm;
  gemm.activation = Activation::kSwiGlu;
  gemm.n = 16;
  gemm.bias = bias.data();
  gemm.scales.b = &of_b;
  gemm.scales.c = &of_c;
  EXPECT_NO_THROW(check_epilogue(gemm));
  std::vector<float> sums(32);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<float>(i) / 16 - 1;
  const std::vector<float> before = sums;
  apply_epilogue(gemm, {0, 2}, {0, 16}, sums.data());
  for (std::size_t row = 0; row < 2; ++row)
    for (std::size_t i = 0; i < 8; ++i) {
      const float gate = before[row * 16 + i] * 2 + 1, up = before[row * 16 + 8 + i] * 2 + 1;
      EXPECT_FLOAT_EQ(sums[row * 8 + i], silu(gate) * up * 4) << row << ", " << i;
    }
  gemm.n = 24;
  EXPECT_THROW(check_epilogue(gemm), InvalidArgument);
  gemm.n = 16;
  for (const GemmDestination& partial : {GemmDestination(GemmRing{}), GemmDestination(GemmSum{})}) {
    gemm.destination = partial;
    EXPECT_THROW(check_epilogue(gemm), InvalidArgument);
  }
}

TEST(Epilogue, PartialSumsGetABiasAndScalesAlone) {
  const bf16 bias{};
  Gemm gemm;
  gemm.activation = Activation::kGelu;
  EXPECT_NO_THROW(check_epilogue(gemm));
  gemm.destination = GemmRing{};  // complete sums are its own
  EXPECT_NO_THROW(check_epilogue(gemm));
  for (const GemmDestination& reduced_later : {GemmDestination(GemmScatter{}), GemmDestination(GemmBroadcast{})}) {
    gemm.destination = reduced_later;
    EXPECT_THROW(check_epilogue(gemm), InvalidArgument);
  }
  gemm.activation = Activation::kNone;
  EXPECT_NO_THROW(check_epilogue(gemm));
  gemm.bias = &bias;
  EXPECT_NO_THROW(check_epilogue(gemm));
  const float scale = 2;
  gemm.scales.a = gemm.scales.b = &scale;
  EXPECT_NO_THROW(check_epilogue(gemm));
  gemm.scales.c = &scale;
  EXPECT_THROW(check_epilogue(gemm), InvalidArgument);
}

}  // namespace
}  // namespace tandem
