#pragma once
/// What the tool does on real GPUs. A build without the CUDA backend has these functions too: they say what is missing.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tools/tandem/calibrate/calibrate.h"
#include "tools/tandem/doctor/doctor.h"
#include "tools/tandem/options/arguments.h"
#include "tools/tandem/run/run_operator.h"
#include "tools/tandem/tune/tune.h"

namespace tandem::cli {

/// For `tandem --version`: "with CUDA for sm_90a", "without CUDA".
std::string cuda_build();

/// `tandem run` and `tandem bench` with --backend cuda. Throw Unsupported where this build or this machine cannot.
int run_on_gpus(const Arguments& arguments);
int bench_on_gpus(const Arguments& arguments);

/// `tandem tune` with --backend cuda: all sweeps, with what their table says of where they come from; none in a process
/// that leaves the table to another one.
std::vector<Sweep> tune_on_gpus(const Arguments& arguments);

/// How `tandem tune` tries an operator with --backend cuda.
OperatorTuneSetup operator_tune_on_gpus(const Arguments& arguments, const OperatorRun& run);

/// Of `tandem doctor`: keys `build`, `cuda_driver`, `gpus`, `links`. Never throws for what a machine lacks.
nlohmann::ordered_json inspect_gpus(std::vector<Finding>& findings);

/// Of `tandem calibrate`. Throws Unsupported where this build or this machine cannot.
Calibration measure_gpus();

}  // namespace tandem::cli
