/// The machine model of the measured host against what was measured there: AllGather+GEMM and GEMM+ReduceScatter of the layers in
/// bench/measured/gemm_overlap_h200x4.csv, as ratios to the GEMM alone.
///
///   model_vs_measured [--json FILE]
///
/// Sequential: NCCL's measured time for the collective (ordinary buffers) plus the model's GEMM. Overlapped: the operator itself in
/// the simulator, without data, the best of a few configurations.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tandem/error.h"
#include "tandem/operators.h"
#include "tandem/simulation.h"

namespace {

using namespace tandem;

constexpr int kPes = 4;
constexpr int kElementBytes = 2;  // bf16

std::vector<std::vector<std::string>> read_csv(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw InvalidArgument("cannot read " + path.string());
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::string>& row = rows.emplace_back();
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ',');) row.push_back(cell);
  }
  rows.erase(rows.begin());  // the header
  return rows;
}

/// One layer with what was measured for it.
struct Layer {
  Operator op;
  std::string name;
  Size m, n, k;
  std::map<std::string, double> ratios;  // by peer
};

std::vector<Layer> read_layers(const std::filesystem::path& folder) {
  std::vector<Layer> layers;
  for (const auto& row : read_csv(folder / "gemm_overlap_h200x4.csv")) {
    if (row[0] != name(Operator::kAllGatherGemm) && row[0] != name(Operator::kGemmReduceScatter)) continue;
    const Operator op = row[0] == name(Operator::kAllGatherGemm) ? Operator::kAllGatherGemm : Operator::kGemmReduceScatter;
    const auto is_it = [&](const Layer& layer) { return layer.op == op && layer.name == row[1]; };
    auto found = std::find_if(layers.begin(), layers.end(), is_it);
    if (found == layers.end())
      found = layers.insert(layers.end(), {op, row[1], std::stoll(row[2]), std::stoll(row[3]), std::stoll(row[4]), {}});
    found->ratios[row[5]] = std::stod(row[6]);
  }
  return layers;
}

/// NCCL's time by bytes, ordinary buffers, the better of the two measured versions; linear between the measured sizes.
Curve nccl_curve(const std::filesystem::path& folder, const std::string& collective) {
  std::map<double, double> best;
  for (const auto& row : read_csv(folder / "collectives_h200x4.csv")) {
    if (row[0] != collective || (row[2] != "nccl-2.28.9" && row[2] != "nccl-2.32.3")) continue;
    const auto [at, is_new] = best.try_emplace(std::stod(row[1]), std::stod(row[3]));
    if (!is_new) at->second = std::min(at->second, std::stod(row[3]));
  }
  return {{best.begin(), best.end()}};
}

double simulate_us(const Machine& machine, Operator op, const OperatorOptions& options) {
  SimOptions sim;
  sim.phantom = true;
  sim.heap_bytes = Size{64} << 30;
  Simulation simulation(machine, kPes, sim);
  double us = 0;
  simulation.run([&](World& world) {
    // Upper bounds of every PE's matrices: nothing is stored.
    std::byte* const a = world.heap().allocate_local<std::byte>(options.m * options.k * kElementBytes, "a");
    std::byte* const b = world.heap().allocate_local<std::byte>(options.n * options.k * kElementBytes, "b");
    std::byte* const c = world.heap().allocate_local<std::byte>(options.m * options.n * kElementBytes, "c");
    auto plan = make_operator(world, op, options);
    Stream stream = world.make_stream("main");
    world.barrier();
    const double begin = world.time_us();
    plan->run(stream, a, b, c);
    stream.synchronize();
    us = std::max(us, world.time_us() - begin);
  });
  return us;
}

struct Best {
  double us = 0;
  std::string configuration;
};

/// The best of transports, splits and tiles.
Best best_overlapped(const Machine& machine, const Layer& layer) {
  Best best;
  for (const CopyBy copy_by : {CopyBy::kCopyEngine, CopyBy::kSm})
    for (const int splits : {1, 4})
      for (const Machine::Gemm::Tile& tile : machine.gemm.tiles) {
        if (tile.efficiency < 0.95) continue;
        const OperatorOptions options{.m = layer.m, .n = layer.n, .k = layer.k, .copy_by = copy_by, .splits = splits,
                                      .tile_m = tile.m, .tile_n = tile.n};
        const double us = simulate_us(machine, layer.op, options);
        if (best.us > 0 && us >= best.us) continue;
        best = {us, fmt::format("{} x{} {}x{}", copy_by == CopyBy::kCopyEngine ? "ce" : "sm", splits, tile.m, tile.n)};
      }
  return best;
}

double gemm_us(const Machine& machine, const Layer& layer) {
  const bool gather = layer.op == Operator::kAllGatherGemm;
  return gemm_alone_us(machine, layer.m, gather ? layer.n / kPes : layer.n, gather ? layer.k : layer.k / kPes,
                       kElementBytes, machine.gpu.sm_count);
}

}  // namespace

int main(int argc, char** argv) {
  const auto folder = std::filesystem::path(__FILE__).parent_path() / "measured";
  const Machine machine = load_machine("h200x4");
  const Curve gather = nccl_curve(folder, "all_gather"), scatter = nccl_curve(folder, "reduce_scatter");
  (void)argc; (void)argv;
  for (const Layer& layer : read_layers(folder)) {
    const bool is_gather = layer.op == Operator::kAllGatherGemm;
    const double bytes = double(layer.m) * double(is_gather ? layer.k : layer.n) * 2;
    const double g = gemm_us(machine, layer), c = (is_gather ? gather : scatter).at(bytes);
    const Best b = best_overlapped(machine, layer);
    std::cout << fmt::format("{} {} gemm {:.1f} coll {:.1f} seq {:.3f} meas {:.2f} ({:+.1f}%)  over {:.3f} [{}]", name(layer.op), layer.name, g, c, (g+c)/g, layer.ratios.at(is_gather ? "nccl+cublas" : "cublas+nccl"), 100*((g+c)/g/layer.ratios.at(is_gather ? "nccl+cublas" : "cublas+nccl")-1), b.us/g, b.configuration);
    for (auto& [p, r] : layer.ratios) std::cout << " " << p << "=" << r;
    std::cout << "\n";
  }
}
