/// The GEMM model of h200x4 against cuBLASLt times measured on 4 x H200 (bf16, bench/results/h200x4.json).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "tandem/machine.h"

namespace tandem {
namespace {

/// One PE's part of a layer at TP=4, and cuBLAS's time for it.
struct Measured {
  const char* layer;
  Size m, n, k;
  double us;
};

constexpr int tp = 4;

/// AllGather+GEMM: each PE has all rows and a quarter of the columns.
constexpr Measured column_parallel(const char* layer, Size m, Size n, Size k, double us) {
  return {layer, m, n / tp, k, us};
}
/// GEMM+ReduceScatter: each PE has a quarter of the depth.
constexpr Measured row_parallel(const char* layer, Size m, Size n, Size k, double us) {
  return {layer, m, n, k / tp, us};
}

constexpr Measured layers[] = {
    column_parallel("tutorial 07", 8192, 49152, 12288, 3486),
    column_parallel("8B ffn up", 8192, 28672, 4096, 705.6),
    column_parallel("70B qkv", 8192, 10240, 8192, 500.3),
    column_parallel("70B ffn up", 8192, 57344, 8192, 2822),
    column_parallel("405B qkv", 8192, 18432, 16384, 1784),
    column_parallel("405B ffn up", 8192, 106496, 16384, 10653.6),
    column_parallel("small M up", 1024, 57344, 8192, 343.3),
    row_parallel("tutorial shape", 8192, 12288, 49152, 3501.6),
    row_parallel("8B ffn down", 8192, 4096, 14336, 338.4),
    row_parallel("70B ffn down", 8192, 8192, 28672, 1418.3),
    row_parallel("70B o", 8192, 8192, 8192, 403.7),
    row_parallel("405B ffn down", 8192, 16384, 53248, 5249.9),
    row_parallel("small M down", 1024, 8192, 28672, 157.3),
};

constexpr Measured decode[] = {
    row_parallel("decode M=1", 1, 8192, 28672, 29.4),     row_parallel("decode M=16", 16, 8192, 28672, 29.3),
    row_parallel("decode M=64", 64, 8192, 28672, 32),     row_parallel("decode M=128", 128, 8192, 28672, 31.6),
    row_parallel("decode M=256", 256, 8192, 28672, 43.1),
};

/// Prints one line; the model's relative error.
double compare(const Machine& machine, const Measured& layer) {
  const int sms = machine.gpu.sm_count;
  const double us = gemm_alone_us(machine, layer.m, layer.n, layer.k, 2, sms);
  const auto tile = best_gemm_tile(machine, {layer.m, layer.n, layer.k, 2}, sms);
  const double error = us / layer.us - 1;
  std::printf("%-15s %6lld x %6lld x %6lld  tile %3d x %3d  measured %8.1f us  model %8.1f us  %+5.1f%%\n", layer.layer,
              static_cast<long long>(layer.m), static_cast<long long>(layer.n), static_cast<long long>(layer.k), tile.m,
              tile.n, layer.us, us, 100 * error);
  return error;
}

TEST(GemmFit, LargeLayersWithinTwelvePercentAndHalfOfThemWithinThree) {
  const Machine machine = load_machine("h200x4");
  std::vector<double> errors;
  for (const Measured& layer : layers) {
    errors.push_back(std::abs(compare(machine, layer)));
    EXPECT_LE(errors.back(), 0.12) << layer.layer;
  }
  std::sort(errors.begin(), errors.end());
  EXPECT_LE(errors[errors.size() / 2], 0.03);
}

TEST(GemmFit, DecodeWithinEightPercent) {
  const Machine machine = load_machine("h200x4");
  for (const Measured& layer : decode) EXPECT_LE(std::abs(compare(machine, layer)), 0.08) << layer.layer;
}

}  // namespace
}  // namespace tandem
