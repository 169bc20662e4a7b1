#include "tools/tandem/tune/tune_place.h"

#include <fmt/format.h>

#include <limits>

#include "tandem/error.h"
#include "tools/tandem/host/commands.h"
#include "tools/tandem/main/gpu.h"

namespace tandem::cli {

LayerRun tuned_layer_run(const TuneOptions& a, const std::string& name, const LayerSubject& subject) {
  constexpr int kTuneCalls = 5;
  Arguments one = a;
  one.subject = name;
  if (a.in_real_time() && !a.iterations) one.iterations = kTuneCalls;
  return subject.make(one);
}

TunePlace::TunePlace(const TuneOptions& a) : a_(a) {
  if (a.on_host()) host_ = make_host_job(a);
  if (a.in_real_time()) return;
  simulated_ = make_setup(a);
  simulated_->options.phantom = true;  // Times do not depend on data.
}

void TunePlace::run(const LayerRun& run, const std::vector<Size>& sizes, const Show& show) const {
  const auto check_and_show = [&](Size size, const Result& result) {
    if (result.check && !result.check->correct())
      throw CheckFailed(
          fmt::format("{} {} of {}: {} wrong elements", result.op, result.algorithm, size, result.check->wrong));
    show(size, result);
  };
  if (a_.on_gpus()) return layer_tune_on_gpus(a_, run, sizes, check_and_show);
  for (const Size size : sizes)
    check_and_show(size, simulated_ ? simulate(run, size) : run_layer_on_host(run, size, *host_));
}

int TunePlace::most_blocks() const { return host_ ? most_tuned_blocks(host_->pes) : std::numeric_limits<int>::max(); }

Result TunePlace::simulate(const LayerRun& run, Size size) const {
  Pictures none;
  Progress progress(parts_of(run));
  return run_layer(run, size, *simulated_, none, progress);
}

}  // namespace tandem::cli
