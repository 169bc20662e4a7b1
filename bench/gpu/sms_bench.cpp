// Times of collectives with 1, 2, 4, ... 128 blocks, each of which takes an SM: the curve of bandwidth against SMs.
// There is a PE on each GPU, all threads of this process; bf16, 64 MiB as in nccl-tests, CUDA graphs.
//
//   sms_bench [--out FILE]

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>

#include "gpu/normal_data.h"
#include "gpu/timed_graph.h"
#include "tandem/collectives.h"
#include "tandem/cuda.h"
#include "tandem/error.h"

namespace tandem::bench {

namespace {

constexpr Size kBytes = Size{64} << 20;
constexpr int kBlocks[] = {1, 2, 4, 8, 16, 32, 64, 128};
constexpr int kCalls = 5;
constexpr int kRounds = 4;  // the first does not count

struct Curve {
  Collective collective;
  const char* algorithm;
};
constexpr Curve kCurves[] = {
    {Collective::kAllReduce, "two_shot"}, {Collective::kAllGather, "push"},   {Collective::kReduceScatter, "pull"},
    {Collective::kAllToAll, "push"},      {Collective::kBroadcast, "direct"}, {Collective::kSendRecv, "ring"},
};

/// Microseconds of a call on this PE.
double measure(World& world, Stream& stream, const Curve& curve, int blocks, Symm<std::byte> in, Symm<std::byte> out) {
  CollectiveOptions options;
  options.type = DType::kBF16;
  options.algorithm = curve.algorithm;
  options.blocks = blocks;
  const Size parts = std::max(input_elements(curve.collective, 1, world.num_pes(), 0, 0),
                              output_elements(curve.collective, 1, world.num_pes(), 0, 0));
  options.max_count = kBytes / size_of(options.type) / parts;
  const auto plan = make_collective(world, curve.collective, options);
  TimedGraph graph(stream, kCalls, [&] { plan->run(stream, in, out, options.max_count); });
  for (int round = 0; round < kRounds; ++round) {
    world.barrier();
    graph.replay();
  }
  std::sort(graph.us.begin() + 1, graph.us.end());
  return graph.us[1 + (kRounds - 1) / 2];
}

nlohmann::ordered_json row_of(const Curve& curve, int blocks, int pes, double us) {
  nlohmann::ordered_json row;
  row["op"] = name(curve.collective);
  row["bytes"] = kBytes;
  row["pes"] = pes;
  row["dtype"] = "bf16";
  row["algorithm"] = curve.algorithm;
  row["blocks"] = blocks;
  row["in_place"] = false;
  row["graph"] = true;
  row["buffers"] = "heap";
  row["by"] = "threads";
  row["selected"] = false;
  row["tandem_us"] = std::round(us * 1000) / 1000;
  row["peers"] = nlohmann::ordered_json::object();
  row["wrong"] = nullptr;  // not compared here
  return row;
}

nlohmann::ordered_json run_curve(const Curve& curve, int pes) {
  CudaOptions options;
  options.heap_bytes = Size{4} << 30;
  CudaThreads threads(pes, options);
  std::vector<double> slowest(std::size(kBlocks));
  std::mutex mutex;
  threads.run([&](World& world) {
    const auto in = world.heap().allocate<std::byte>(kBytes, "in");
    const auto out = world.heap().allocate<std::byte>(kBytes, "out");
    NormalData(world.pe()).fill(world, in.local(), 0, kBytes / 2);
    Stream stream = world.make_stream("main");
    for (std::size_t i = 0; i < std::size(kBlocks); ++i) {
      const double us = measure(world, stream, curve, kBlocks[i], in, out);
      const std::lock_guard lock(mutex);
      slowest[i] = std::max(slowest[i], us);
    }
  });
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < std::size(kBlocks); ++i) rows.push_back(row_of(curve, kBlocks[i], pes, slowest[i]));
  return rows;
}

int run_bench(const std::string& file) {
  const int pes = cuda_devices();
  if (pes == 0) throw Unsupported("no GPU");
  cudaDeviceProp properties{};
  test::cuda_check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  char today[16];
  const std::time_t now = std::time(nullptr);
  std::strftime(today, sizeof today, "%Y-%m-%d", std::gmtime(&now));
  nlohmann::ordered_json json;
  json["machine"] = fmt::format("{} x{}", properties.name, pes);
  json["date"] = today;
  json["command"] = "sms_bench";
  json["rows"] = nlohmann::ordered_json::array();
  for (const Curve& curve : kCurves) {
    std::string line = fmt::format("{:<16}{:<10}", name(curve.collective), curve.algorithm);
    for (auto& row : run_curve(curve, pes)) {
      line += fmt::format(" {:>9.1f}", row["tandem_us"].get<double>());
      json["rows"].push_back(std::move(row));
    }
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  }
  if (!file.empty()) std::ofstream(file) << json.dump(1) << '\n';
  std::printf("%zu measured, 64 MiB, microseconds by blocks 1 to 128\n", json["rows"].size());
  return 0;
}

}  // namespace

}  // namespace tandem::bench

int main(int argc, char** argv) {
  try {
    if (argc == 1) return tandem::bench::run_bench("");
    if (argc == 3 && std::string(argv[1]) == "--out") return tandem::bench::run_bench(argv[2]);
    std::fprintf(stderr, "usage: sms_bench [--out FILE]\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sms_bench: %s\n", error.what());
    return 1;
  }
  return 2;
}
