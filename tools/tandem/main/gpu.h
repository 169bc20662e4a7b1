#pragma once
/// The tool's functions on real GPUs. A build without the CUDA backend has them, too; they report what is missing.

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/tandem/bench/bench_options.h"
#include "tools/tandem/calibrate/calibrate.h"
#include "tools/tandem/doctor/doctor.h"
#include "tools/tandem/layer/layer_run.h"
#include "tools/tandem/run/run_operator.h"
#include "tools/tandem/run/run_options.h"
#include "tools/tandem/tune/tune.h"
#include "tools/tandem/tune/tune_options.h"

namespace tandem::cli {

/// Returns the text for `tandem --version`: "with CUDA for sm_90a", "without CUDA".
std::string cuda_build();

/// Returns the number of this machine's GPUs; 0 in a build without CUDA.
int count_gpus();

/// `tandem run` and `tandem bench` with --backend cuda. They throw Unsupported if this build or this machine cannot.
int run_on_gpus(const RunOptions& arguments);
int bench_on_gpus(const BenchOptions& arguments);

/// `tandem tune` with --backend cuda: all sweeps, with the source for their table. Returns none in a process that does
/// not write the table.
std::vector<Sweep> tune_on_gpus(const TuneOptions& arguments);

/// Runs a call of include/tandem/layer at some sizes for `tandem tune` with --backend cuda. It calls `show` with each
/// result in the process that writes the table.
void layer_tune_on_gpus(const TuneOptions& arguments, const LayerRun& run, const std::vector<Size>& sizes,
                        const std::function<void(Size, const Result&)>& show);

/// Returns the trials of an operator by `tandem tune` with --backend cuda.
OperatorTuneSetup operator_tune_on_gpus(const TuneOptions& arguments, const OperatorRun& run);

/// The GPU part of `tandem doctor`: keys `build`, `cuda_driver`, `gpus`, `links`. It never throws for missing features.
nlohmann::ordered_json inspect_gpus(std::vector<Finding>& findings);

/// The measurements of `tandem calibrate`. Throws Unsupported if this build or this machine cannot.
Calibration measure_gpus();

}  // namespace tandem::cli
