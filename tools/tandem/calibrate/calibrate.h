#pragma once
/// `tandem calibrate`: a machine model from measurements of this machine.

#include <string>
#include <utility>
#include <vector>

namespace tandem::cli {

/// Measurements, named like the figures of a machine model (docs/reference/machines.md).
struct Calibration {
  std::string gpu_name;
  int gpus = 0;
  int sm_count = 0, max_blocks_per_sm = 0, max_threads_per_sm = 0;
  double hbm_gbps = 0, local_latency_us = 0, local_flag_us = 0;
  double copy_engine_startup_us = 0, copy_engine_gbps = 0, copy_engine_local_gbps = 0;
  double launch_us = 0, graph_node_us = 0;
  double port_gbps = 0, latency_us = 0, load_latency_us = 0, flag_us = 0, all_to_all_efficiency = 0;
  std::vector<std::pair<int, double>> block_hbm_gbps, store_gbps, load_gbps;  ///< by blocks
};

/// Returns the text of a machine model named `name`: `base` (a name or a file) with all measured figures replaced.
/// `source` describes the measurement. Throws InvalidArgument for an invalid base, and if the measurements make no
/// valid model.
std::string calibrated_model(const Calibration& calibration, const std::string& base, const std::string& name,
                             const std::string& source);

}  // namespace tandem::cli
