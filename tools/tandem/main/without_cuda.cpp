// A tool that was built without the CUDA backend.
#include <nlohmann/json.hpp>

#include "tandem/error.h"
#include "tools/tandem/main/gpu.h"

namespace tandem::cli {

namespace {

constexpr const char* kAdvice = "this build has no CUDA backend: configure with -DTANDEM_CUDA=ON";

[[noreturn]] void refuse() { throw Unsupported(std::string("--backend: 'cuda' given, but ") + kAdvice); }

}  // namespace

std::string cuda_build() { return "without CUDA"; }

int count_gpus() { return 0; }

int run_on_gpus(const RunOptions&) { refuse(); }
int bench_on_gpus(const BenchOptions&) { refuse(); }
OperatorTuneSetup operator_tune_on_gpus(const TuneOptions&, const OperatorRun&) { refuse(); }
std::vector<Sweep> tune_on_gpus(const TuneOptions&) { refuse(); }
void layer_tune_on_gpus(const TuneOptions&, const LayerRun&, const std::vector<Size>&,
                        const std::function<void(Size, const Result&)>&) {
  refuse();
}
Calibration measure_gpus() { throw Unsupported(std::string("calibrate: ") + kAdvice); }

nlohmann::ordered_json inspect_gpus(std::vector<Finding>& findings) {
  findings.push_back({true, "this build has no CUDA backend: the simulator works, --backend cuda does not",
                      "configure with -DTANDEM_CUDA=ON"});
  return {{"build", cuda_build()},
          {"cuda_driver", nullptr},
          {"gpus", nlohmann::ordered_json::array()},
          {"links", nlohmann::ordered_json::array()}};
}

}  // namespace tandem::cli
