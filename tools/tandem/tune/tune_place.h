#pragma once
/// The backend on which `tandem tune` runs calls of include/tandem/layer.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/tandem/host/host_job.h"
#include "tools/tandem/layer/layer_run.h"
#include "tools/tandem/main/setup.h"
#include "tools/tandem/tune/tune_options.h"

namespace tandem::cli {

/// Returns the run of a call, with the calls that tuning times.
LayerRun tuned_layer_run(const TuneOptions& arguments, const std::string& name, const LayerSubject& subject);

class TunePlace {
 public:
  using Show = std::function<void(Size, const Result&)>;

  /// `arguments` outlive it.
  explicit TunePlace(const TuneOptions& arguments);

  /// Runs a call at some sizes. Throws CheckFailed where an element is wrong.
  void run(const LayerRun& run, const std::vector<Size>& sizes, const Show& show) const;
  /// Returns the most blocks that are worth a trial.
  int most_blocks() const;

 private:
  Result simulate(const LayerRun& run, Size size) const;

  const TuneOptions& a_;
  std::optional<HostJob> host_;
  std::optional<Setup> simulated_;
};

}  // namespace tandem::cli
