// The simulator's GEMM: layouts of B, bias, activation, types; against sums by definition.

#include "tandem/advanced/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "gemm/contract/epilogue.h"
#include "tandem/error.h"
#include "tandem/simulation.h"

namespace tandem::gemm_test {
namespace {

constexpr Size kM = 37, kN = 50, kK = 23;

/// Small integers: sums of their products are exact in f32.
float element(int matrix, Size row, Size col) { return static_cast<float>((row * 7 + col * 3 + matrix * 5) % 7 - 3); }

template <class T>
std::vector<T> matrix(int number, Size rows, Size cols, bool transposed = false) {
  std::vector<T> values;
  for (Size row = 0; row < rows; ++row)
    for (Size col = 0; col < cols; ++col)
      values.push_back(convert<T>(transposed ? element(number, col, row) : element(number, row, col)));
  return values;
}

template <class T>
T* on_device(World& world, const std::vector<T>& values, const char* name) {
  T* const memory = world.heap().allocate_local<T>(static_cast<Size>(values.size()), name);
  world.copy_in(memory, values.data(), static_cast<Size>(values.size() * sizeof(T)));
  return memory;
}

struct Case {
  BLayout layout = BLayout::kNxK;
  bool biased = false;
  Activation activation = Activation::kNone;
};

float expected(const Case& c, Size row, Size col) {
  float sum = c.biased ? element(2, 0, col) : 0;
  for (Size i = 0; i < kK; ++i) sum += element(0, row, i) * element(1, col, i);
  return activate(c.activation, sum);
}

template <class T>
std::vector<T> run(const Case& c, bool scattered = false) {
  std::vector<T> result(static_cast<std::size_t>(kM * kN));
  Simulation simulation(load_machine("h200x8"), 1, {});
  simulation.run([&](World& world) {
    Gemm gemm;
    gemm.m = kM;
    gemm.n = kN;
    gemm.k = kK;
    gemm.type = gemm.out_type = dtype_of<T>();
    gemm.tile_m = 16;
    gemm.tile_n = 32;
    gemm.a = on_device(world, matrix<T>(0, kM, kK), "a");
    const bool rows_of_b = c.layout == BLayout::kNxK;
    gemm.b = on_device(world, matrix<T>(1, rows_of_b ? kN : kK, rows_of_b ? kK : kN, !rows_of_b), "b");
    gemm.b_layout = c.layout;
    if (c.biased) gemm.bias = on_device(world, matrix<T>(2, 1, kN), "bias");
    gemm.activation = c.activation;
    T* const out = world.heap().allocate_local<T>(kM * kN, "c");
    gemm.destination = GemmLocal{out};
    if (scattered)
      gemm.destination = GemmScatter{world.heap().allocate<std::byte>(kM * kN * Size{sizeof(T)}, "collected"), {}};
    Stream stream = world.make_stream("main");
    stream.gemm(gemm, world.team());
    stream.synchronize();
    world.copy_out(result.data(), out, kM * kN * Size{sizeof(T)});
  });
  return result;
}

template <class T>
class SimulatedGemm : public testing::Test {};
using Types = testing::Types<float, bf16, f16>;
TYPED_TEST_SUITE(SimulatedGemm, Types);

TYPED_TEST(SimulatedGemm, EveryLayoutBiasAndActivation) {
  for (const BLayout layout : {BLayout::kNxK, BLayout::kKxN})
    for (const bool biased : {false, true})
      for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kSilu}) {
        const Case c{layout, biased, activation};
        const std::vector<TypeParam> got = run<TypeParam>(c);
        for (Size row = 0; row < kM; ++row)
          for (Size col = 0; col < kN; ++col)
            ASSERT_EQ(convert<float>(got[static_cast<std::size_t>(row * kN + col)]),
                      convert<float>(convert<TypeParam>(expected(c, row, col))))
                << "row " << row << " column " << col << (layout == BLayout::kKxN ? " KxN" : "")
                << (biased ? " bias" : "") << " activation " << static_cast<int>(activation);
      }
}

/// fp8 with a scale for each row and column, powers of two so that everything is exact.
TEST(SimulatedFp8Gemm, ScalesOfRowsAndColumns) {
  Simulation simulation(load_machine("h200x8"), 1, {});
  simulation.run([&](World& world) {
    std::vector<float> a_scales, b_scales;
    for (Size i = 0; i < kM; ++i) a_scales.push_back(i % 2 == 0 ? 1 : 2);
    for (Size i = 0; i < kN; ++i) b_scales.push_back(i % 3 == 0 ? 0.25F : 4);
    Gemm gemm;
    gemm.m = kM;
    gemm.n = kN;
    gemm.k = kK;
    gemm.type = DType::kE4M3;
    gemm.out_type = DType::kF32;
    gemm.tile_m = 16;
    gemm.tile_n = 32;
    gemm.a = on_device(world, matrix<fp8_e4m3>(0, kM, kK), "a");
    gemm.b = on_device(world, matrix<fp8_e4m3>(1, kN, kK), "b");
    gemm.scales = {on_device(world, a_scales, "a scales"), true, on_device(world, b_scales, "b scales"), true, nullptr};
    float* const out = world.heap().allocate_local<float>(kM * kN, "c");
    gemm.destination = GemmLocal{out};
    Stream stream = world.make_stream("main");
    stream.gemm(gemm, world.team());
    stream.synchronize();
    std::vector<float> got(static_cast<std::size_t>(kM * kN));
    world.copy_out(got.data(), out, kM * kN * Size{sizeof(float)});
    for (Size row = 0; row < kM; ++row)
      for (Size col = 0; col < kN; ++col)
        ASSERT_EQ(
            got[static_cast<std::size_t>(row * kN + col)],
            expected({}, row, col) * a_scales[static_cast<std::size_t>(row)] * b_scales[static_cast<std::size_t>(col)])
            << "row " << row << " column " << col;
  });
}

TEST(SimulatedGemmErrors, PartialSumsGetNoActivation) {
  EXPECT_THROW(run<bf16>({.activation = Activation::kRelu}, true), InvalidArgument);
}

}  // namespace
}  // namespace tandem::gemm_test
