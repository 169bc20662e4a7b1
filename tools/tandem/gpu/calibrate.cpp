// Measurements for a machine model.
#include <algorithm>

#include "cuda/driver/error.h"
#include "tandem/error.h"
#include "tools/tandem/gpu/measure/probe.h"
#include "tools/tandem/main/gpu.h"

namespace tandem::cli {

namespace {

constexpr Size kMib = Size{1} << 20;
constexpr Size kLarge = 256 * kMib;

/// Large enough that the bytes dominate the time, and small enough for a single block.
Size bytes_for(int blocks) { return std::min<Size>(kLarge, blocks * 16 * kMib); }

/// A bandwidth that falls with more blocks is noise, because the model's curve only rises.
void add_rising(std::vector<std::pair<int, double>>& curve, int blocks, double gbps) {
  curve.emplace_back(blocks, curve.empty() ? gbps : std::max(gbps, curve.back().second));
}

}  // namespace

Calibration measure_gpus() {
  const Probe probe;
  if (probe.gpus() < 2) throw Unsupported("calibrate: this machine has one GPU, a model of links needs two");
  if (!probe.reaches(0, 1)) throw Unsupported("calibrate: GPU 0 does not reach GPU 1; see tandem doctor");
  cudaDeviceProp properties{};
  cuda::check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  Calibration c;
  c.gpu_name = properties.name;
  c.gpus = probe.gpus();
  c.sm_count = properties.multiProcessorCount;
  c.max_blocks_per_sm = properties.maxBlocksPerMultiProcessor;
  c.max_threads_per_sm = properties.maxThreadsPerMultiProcessor;
  for (const int blocks : {1, 2, 4, 8, 16, 32, 64, c.sm_count}) {
    add_rising(c.block_hbm_gbps, blocks, probe.local_gbps(0, blocks, bytes_for(blocks)));
    add_rising(c.store_gbps, blocks, probe.store_gbps(0, 1, blocks, bytes_for(blocks)));
    add_rising(c.load_gbps, blocks, probe.load_gbps(0, 1, blocks, bytes_for(blocks)));
  }
  c.hbm_gbps = std::max(c.block_hbm_gbps.back().second, probe.local_gbps(0, 4 * c.sm_count, kLarge));
  c.local_latency_us = probe.load_us(0, 0);
  c.local_flag_us = probe.local_one_way_us(0);
  c.copy_engine_startup_us = probe.copy_startup_us(0, 1);
  c.copy_engine_gbps = probe.copy_gbps(0, 1, Probe::kBytes);
  c.copy_engine_local_gbps = probe.copy_gbps(0, 0, Probe::kBytes);
  c.launch_us = probe.launch_us();
  c.graph_node_us = probe.graph_node_us(true);
  c.port_gbps = std::max({c.copy_engine_gbps, c.store_gbps.back().second, c.load_gbps.back().second});
  c.latency_us = probe.one_way_us(0, 1, false);
  c.flag_us = probe.one_way_us(0, 1, true);
  c.load_latency_us = probe.load_us(0, 1);
  constexpr int kBlocks = 64;
  c.all_to_all_efficiency =
      std::min(1.0, probe.store_all_to_all_gbps(kBlocks, kLarge) / probe.store_gbps(0, 1, kBlocks, kLarge));
  if (c.latency_us == 0 || c.flag_us == 0)
    throw RuntimeFailure("calibrate: GPU 1 does not answer GPU 0; another program may hold it");
  return c;
}

}  // namespace tandem::cli
