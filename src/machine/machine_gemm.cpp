/// The time of matrix products on a machine: waves of tiles at the sustained rate, or the time of the memory.

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tandem/error.h"
#include "tandem/machine.h"

namespace tandem {
namespace {

double rate_factor(const Machine::Gemm& gemm, int element_bytes) {
  switch (element_bytes) {
    case 1:
      return gemm.one_byte_factor;
    case 2:
      return 1;
    case 4:
      return gemm.four_byte_factor;
    case 8:
      return gemm.eight_byte_factor;
    default:
      throw InvalidArgument(
          fmt::format("GEMM: element size of {} bytes given, allowed is 1, 2, 4 or 8", element_bytes));
  }
}

/// Returns the efficiency of the table's tile with the nearest shape. Doubling an edge counts as distance one.
double tile_efficiency(const Machine::Gemm& gemm, int tile_m, int tile_n) {
  double nearest = 0;
  double efficiency = 0;
  for (const Machine::Gemm::Tile& tile : gemm.tiles) {
    const double distance = std::abs(std::log2(static_cast<double>(tile_m) / tile.m)) +
                            std::abs(std::log2(static_cast<double>(tile_n) / tile.n));
    if (efficiency > 0 && distance >= nearest) continue;
    nearest = distance;
    efficiency = tile.efficiency;
  }
  return efficiency;
}

void check(const Machine& machine, int tile_m, int tile_n, const GemmShape& problem, int sms) {
  if (problem.m < 1 || problem.n < 1 || problem.k < 0)
    throw InvalidArgument(fmt::format("GEMM: shape {}x{}x{} given, allowed is m and n from 1, k from 0", problem.m,
                                      problem.n, problem.k));
  if (problem.passes < 1)
    throw InvalidArgument(fmt::format("GEMM: {} passes given, allowed is a number from 1", problem.passes));
  if (problem.groups < 1)
    throw InvalidArgument(fmt::format("GEMM: {} groups given, allowed is a number from 1", problem.groups));
  if (tile_m < 1 || tile_n < 1)
    throw InvalidArgument(fmt::format("GEMM: tile {}x{} given, allowed is sizes from 1", tile_m, tile_n));
  if (sms < 1 || sms > machine.gpu.sm_count)
    throw InvalidArgument(
        fmt::format("GEMM: {} SMs given, allowed on {} is 1 to {}", sms, machine.name, machine.gpu.sm_count));
}

/// Time of the tiles by arithmetic alone, and the number of SMs that stream operands.
struct Waves {
  Size whole = 0;  ///< full waves
  Size rest = 0;   ///< tiles of the last wave, if it is not full
  double whole_us = 0;
  double last_us = 0;
  double streaming = 0;

  Size count() const { return whole + (rest > 0 ? 1 : 0); }
  double us() const { return static_cast<double>(whole) * whole_us + (rest > 0 ? last_us : 0); }
};

/// The smallest depth that one SM takes when several SMs share a tile's depth.
constexpr double kLeastDepth = 128;

Waves waves_of(const Machine& machine, int tile_m, int tile_n, const GemmShape& problem, int sms) {
  const Size tiles = ceil_div(problem.m, Size{tile_m}) * ceil_div(problem.n, Size{tile_n});
  const double tflops = gemm_sustained_tflops(machine, problem.tflop(), problem.element_bytes);
  const double flop_per_us = tflops * 1e6 / machine.gpu.sm_count * tile_efficiency(machine.gemm, tile_m, tile_n);
  const double arithmetic_us = 2.0 * tile_m * tile_n * static_cast<double>(problem.k) / flop_per_us;
  Waves waves{.whole = tiles / sms, .rest = tiles % sms, .whole_us = arithmetic_us + machine.gemm.tile_overhead_us};
  waves.last_us = waves.whole_us;
  waves.streaming = waves.whole > 0 ? sms : static_cast<double>(waves.rest);
  if (waves.rest == 0 || problem.k == 0) return waves;
  const double share =
      std::max(static_cast<double>(waves.rest) / sms, std::min(1.0, kLeastDepth / static_cast<double>(problem.k)));
  const double shared_us = arithmetic_us * share + machine.gemm.tile_overhead_us + machine.gemm.split_us;
  if (shared_us >= waves.whole_us) return waves;
  waves.last_us = shared_us;
  if (waves.whole == 0) waves.streaming = static_cast<double>(waves.rest) / share;
  return waves;
}

/// Returns the time to read the operands from memory. A is read once, B in each pass that does not find it in the
/// cache. Passes whose tiles run in one wave share their reads of B.
double memory_us(const Machine& machine, const GemmShape& problem, const Waves& waves) {
  const auto m = static_cast<double>(problem.m);
  const auto n = static_cast<double>(problem.n);
  const auto k = static_cast<double>(problem.k);
  const double gbps = std::min(machine.gemm.memory_gbps, waves.streaming * machine.gemm.sm_memory_gbps);
  if (problem.groups > 1) return (m * k + problem.groups * k * n + m * n) * problem.element_bytes / (gbps * 1e3);
  const bool stays_in_cache = k * n * problem.element_bytes <= machine.gpu.l2_mb * 1e6;
  const Size reads_of_b = stays_in_cache ? 1 : std::min(Size{problem.passes}, std::max(Size{1}, waves.count()));
  return (m * k + static_cast<double>(reads_of_b) * k * n + m * n) * problem.element_bytes / (gbps * 1e3);
}

/// The factor by which the total grows when arithmetic and memory overlap and take about the same time.
double slowdown(double arithmetic_us, double memory_us) {
  constexpr double kPower = 4;
  return std::pow(1 + std::pow(memory_us / arithmetic_us, kPower), 1 / kPower);
}

/// Returns the time of all tiles.
double tiles_us(const Machine& machine, int tile_m, int tile_n, const GemmShape& problem, int sms) {
  const Waves waves = waves_of(machine, tile_m, tile_n, problem, sms);
  return waves.us() * slowdown(waves.us(), memory_us(machine, problem, waves));
}

}  // namespace

double gemm_sustained_tflops(const Machine& machine, double tflop, int element_bytes) {
  return machine.gemm.sustained_tflops.at(tflop) * rate_factor(machine.gemm, element_bytes);
}

GemmTileTimes gemm_tile_times(const Machine& machine, int tile_m, int tile_n, const GemmShape& problem, int sms) {
  check(machine, tile_m, tile_n, problem, sms);
  const Waves waves = waves_of(machine, tile_m, tile_n, problem, sms);
  const double factor = slowdown(waves.us(), memory_us(machine, problem, waves));
  return {waves.whole_us * factor, waves.last_us * factor};
}

Machine::Gemm::Tile best_gemm_tile(const Machine& machine, const GemmShape& problem, int sms) {
  Machine::Gemm::Tile best;
  double best_us = 0;
  for (const Machine::Gemm::Tile& tile : machine.gemm.tiles) {
    check(machine, tile.m, tile.n, problem, sms);
    const double us = tiles_us(machine, tile.m, tile.n, problem, sms);
    if (best.m > 0 && us >= best_us) continue;
    best = tile;
    best_us = us;
  }
  return best;
}

double gemm_alone_us(const Machine& machine, Size m, Size n, Size k, int element_bytes, int sms) {
  if (m == 0 || n == 0) return 0;
  const GemmShape problem{m, n, k, element_bytes};
  const Machine::Gemm::Tile tile = best_gemm_tile(machine, problem, sms);
  return machine.gemm.launch_us + tiles_us(machine, tile.m, tile.n, problem, sms);
}

}  // namespace tandem
