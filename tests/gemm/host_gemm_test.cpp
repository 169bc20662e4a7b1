#include "gemm/host/host_gemm.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gemm/host/host_gemm_kernel.h"
#include "gemm/host/reference.h"
#include "tandem/error.h"

namespace tandem {
namespace {

constexpr DType kFloats[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kE4M3, DType::kE5M2, DType::kF64};

template <class T>
std::vector<T> random_values(Size count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<T> values(static_cast<std::size_t>(count));
  for (T& value : values) value = convert<T>(normal(generator));
  return values;
}

template <class T>
std::vector<T> transposed(const std::vector<T>& from, Size rows, Size columns) {
  std::vector<T> to(from.size());
  for (Size i = 0; i < rows; ++i) {
    for (Size j = 0; j < columns; ++j)
      to[static_cast<std::size_t>(j * rows + i)] = from[static_cast<std::size_t>(i * columns + j)];
  }
  return to;
}

/// The definition, in f64.
template <class T>
std::vector<double> by_definition(const std::vector<T>& a, const std::vector<T>& b, Size m, Size n, Size k) {
  std::vector<double> c(static_cast<std::size_t>(m * n));
  for (Size i = 0; i < m; ++i) {
    for (Size j = 0; j < n; ++j) {
      double& sum = c[static_cast<std::size_t>(i * n + j)];
      for (Size x = 0; x < k; ++x) {
        sum += convert<double>(a[static_cast<std::size_t>(i * k + x)]) *
               convert<double>(b[static_cast<std::size_t>(j * k + x)]);
      }
    }
  }
  return c;
}

bool same_bits(const std::vector<float>& x, const std::vector<float>& y) {
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
}

TEST(HostGemm, IsTheProductForAllTypesLayoutsAndEdges) {
  for (const DType type : kFloats) {
    dispatch(type, [&]<class T>() {
      for (const auto& [m, n, k] :
           {std::array<Size, 3>{1, 1, 1}, {5, 17, 3}, {4, 16, 256}, {13, 35, 257}, {130, 270, 600}}) {
        const auto a = random_values<T>(m * k, 1), b = random_values<T>(n * k, 2);
        const auto expected = by_definition(a, b, m, n, k);
        const auto b_columns = transposed(b, n, k);
        std::vector<float> c(expected.size(), -1.0F), c_columns(expected.size(), -1.0F);
        host_gemm_tile(a.data(), k, b.data(), k, c.data(), n, m, n, k, type);
        host_gemm_tile(a.data(), k, b_columns.data(), n, c_columns.data(), n, m, n, k, type, BLayout::kKxN);
        EXPECT_TRUE(same_bits(c, c_columns)) << name(type);
        for (std::size_t i = 0; i < c.size(); ++i) {
          ASSERT_NEAR(c[i], expected[i], 1e-4 * std::sqrt(static_cast<double>(k))) << name(type) << " " << i;
        }
      }
    });
  }
}

TEST(HostGemm, EveryTilingGivesTheSameBits) {
  const Size m = 261, n = 515, k = 1000;
  for (const DType type : {DType::kBF16, DType::kF32, DType::kF64}) {
    dispatch(type, [&]<class T>() {
      const auto a = random_values<T>(m * k, 3), b = random_values<T>(n * k, 4);
      std::vector<float> whole(static_cast<std::size_t>(m * n));
      host_gemm_tile(a.data(), k, b.data(), k, whole.data(), n, m, n, k, type);
      for (const auto& [tile_m, tile_n] :
           {std::array<Size, 2>{128, 256}, {64, 7}, {1, 515}, {261, 1}, {3, 100}, {130, 260}}) {
        std::vector<float> tiled(whole.size());
        for (Size i = 0; i < m; i += tile_m) {
          for (Size j = 0; j < n; j += tile_n) {
            host_gemm_tile(a.data() + i * k, k, b.data() + j * k, k, tiled.data() + i * n + j, n, min(tile_m, m - i),
                           min(tile_n, n - j), k, type);
          }
        }
        EXPECT_TRUE(same_bits(whole, tiled)) << name(type) << " " << tile_m << "x" << tile_n;
      }
    });
  }
}

TEST(HostGemm, TouchesNothingButItsTile) {
  const Size m = 6, n = 19, k = 20, ld = 64;
  const auto a = random_values<bf16>(m * ld, 5), b = random_values<bf16>(n * ld, 6);
  std::vector<float> c(static_cast<std::size_t>(m * ld), 7.0F);
  host_gemm_tile(a.data(), ld, b.data(), ld, c.data(), ld, m, n, k, DType::kBF16);
  for (Size i = 0; i < m; ++i) {
    for (Size j = n; j < ld; ++j) EXPECT_EQ(c[static_cast<std::size_t>(i * ld + j)], 7.0F);
  }
}

TEST(HostGemm, NoDepthGivesZeros) {
  std::vector<float> c(12, 7.0F);
  host_gemm_tile(nullptr, 0, nullptr, 0, c.data(), 4, 3, 4, 0, DType::kF16);
  EXPECT_EQ(c, std::vector<float>(12, 0.0F));
}

TEST(HostGemm, RefusesWhatMakesNoSenseByName) {
  float x = 0;
  const auto message = [&](Size lda, Size ldb, Size ldc, Size m, DType type) -> std::string {
    try {
      host_gemm_tile(&x, lda, &x, ldb, &x, ldc, m, 1, 1, type);
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message(1, 1, 1, 1, DType::kF32), "");
  EXPECT_EQ(message(0, 1, 1, 1, DType::kF32), "lda: 0 given, at least a row of A, 1, needed");
  EXPECT_EQ(message(1, 0, 1, 1, DType::kF32), "ldb: 0 given, at least a row of B, 1, needed");
  EXPECT_EQ(message(1, 1, 0, 1, DType::kF64), "ldc: 0 given, at least a row of C, 1, needed");
  EXPECT_EQ(message(1, 1, 1, -1, DType::kF64), "m: -1 given, at least 0 needed");
  EXPECT_EQ(message(1, 1, 1, 1, DType::kI32), "dtype: i32 given, GEMM takes floating-point types");
}

TEST(HostGemm, TheGenericKernelComputesTheSameTile) {
  using namespace host_gemm;
  constexpr int nr = kNr<float>;
  const Size k = 100;
  const auto a = random_values<float>(kMr * k, 7), b = random_values<float>(nr * k, 8);
  std::vector<float> c(kMr * nr, 1.0F);
  kGenericKernels.f32(k, a.data(), b.data(), c.data(), nr, true);
  for (int i = 0; i < kMr; ++i) {
    for (int j = 0; j < nr; ++j) {
      double sum = 1;
      for (Size x = 0; x < k; ++x) {
        sum += static_cast<double>(a[static_cast<std::size_t>(x * kMr + i)]) * b[static_cast<std::size_t>(x * nr + j)];
      }
      EXPECT_NEAR(c[static_cast<std::size_t>(i * nr + j)], sum, 1e-4);
    }
  }
}

struct Checked {
  Size m = 300, n = 530, k = 700;
  std::vector<bf16> a = random_values<bf16>(m * k, 9), b = random_values<bf16>(n * k, 10);
  std::vector<float> c = std::vector<float>(static_cast<std::size_t>(m * n));

  Checked() { host_gemm_tile(a.data(), k, b.data(), k, c.data(), n, m, n, k, DType::kBF16); }

  template <class Out>
  Mismatch check() const {
    std::vector<Out> out(c.size());
    convert(c.data(), out.data(), m * n);
    const DType type = dtype_of<Out>();
    return check_gemm(a.data(), k, b.data(), k, BLayout::kNxK, out.data(), n, m, n, k, DType::kBF16, type,
                      gemm_tolerance(type, k));
  }
};

TEST(Reference, AcceptsARightProductInEveryOutputType) {
  const Checked p;
  for (const DType type : kFloats) {
    dispatch(type, [&]<class Out>() {
      if constexpr (is_float<Out>) {
        const Mismatch result = p.check<Out>();
        EXPECT_EQ(result.checked, p.m * p.n);
        EXPECT_EQ(result.wrong, 0) << name(type);
        EXPECT_GT(result.max_rel_error, 0) << name(type);
        EXPECT_LE(result.max_rel_error, gemm_tolerance(type, p.k)) << name(type);
        EXPECT_EQ(result.row, -1);
      }
    });
  }
}

TEST(Reference, CountsWrongElementsAndNamesTheFirst) {
  Checked p;
  p.c[static_cast<std::size_t>(299 * p.n + 3)] += 5.0F;
  p.c[static_cast<std::size_t>(7 * p.n + 529)] += 1.0F;  // as if one term were missing
  p.c[static_cast<std::size_t>(7 * p.n + 528)] = std::numeric_limits<float>::quiet_NaN();
  const Mismatch result = p.check<float>();
  EXPECT_EQ(result.wrong, 3);
  EXPECT_EQ(result.row, 7);
  EXPECT_EQ(result.column, 528);
  EXPECT_TRUE(std::isnan(result.found));
  EXPECT_TRUE(std::isinf(result.max_rel_error));
}

TEST(Reference, FindsRowsThatBelongElsewhere) {
  Checked p;
  for (Size j = 0; j < p.n; ++j) std::swap(p.c[static_cast<std::size_t>(j)], p.c[static_cast<std::size_t>(p.n + j)]);
  EXPECT_GT(p.check<bf16>().wrong, 2 * p.n * 95 / 100);
}

TEST(Reference, SaturationAndInfinityAreRightWhereTheFormatSaysSo) {
  const std::vector<float> a = {300.0F, -300.0F, 1.0F}, b = {300.0F};
  const auto wrong = [&]<class Out>(std::vector<float> c) {
    std::vector<Out> out(c.size());
    convert(c.data(), out.data(), 3);
    return check_gemm(a.data(), 1, b.data(), 1, BLayout::kKxN, out.data(), 1, 3, 1, 1, DType::kF32, dtype_of<Out>(),
                      gemm_tolerance(dtype_of<Out>(), 1))
        .wrong;
  };
  constexpr float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(wrong.operator()<fp8_e4m3>({448.0F, -448.0F, 300.0F}), 0);
  EXPECT_EQ(wrong.operator()<fp8_e4m3>({448.0F, 448.0F, 300.0F}), 1);
  EXPECT_EQ(wrong.operator()<f16>({inf, -inf, 300.0F}), 0);
  EXPECT_EQ(wrong.operator()<f16>({65504.0F, -inf, inf}), 2);
}

TEST(Reference, NothingToCheckIsRight) {
  EXPECT_EQ(check_gemm(nullptr, 8, nullptr, 8, BLayout::kNxK, nullptr, 0, 0, 0, 8, DType::kF32, DType::kF32, 0).checked,
            0);
}

TEST(Reference, RefusesIntegersAndBadShapes) {
  float x = 0;
  EXPECT_THROW(check_gemm(&x, 1, &x, 1, BLayout::kNxK, &x, 1, 1, 1, 1, DType::kI8, DType::kF32, 0), InvalidArgument);
  EXPECT_THROW(check_gemm(&x, 1, &x, 1, BLayout::kNxK, &x, 1, 1, 1, 1, DType::kF32, DType::kU64, 0), InvalidArgument);
  EXPECT_THROW(check_gemm(&x, 1, &x, 1, BLayout::kNxK, &x, 1, -1, 1, 1, DType::kF32, DType::kF32, 0), InvalidArgument);
  EXPECT_THROW(check_gemm(&x, 1, &x, 1, BLayout::kNxK, &x, 0, 1, 1, 1, DType::kF32, DType::kF32, 0), InvalidArgument);
}

}  // namespace
}  // namespace tandem
