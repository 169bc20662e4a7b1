#pragma once
/// The files of a run's timelines: trace, report, picture.

#include <optional>
#include <string>
#include <vector>

#include "tandem/machine.h"
#include "tandem/timeline.h"
#include "tools/tandem/run/measure.h"
#include "tools/tandem/run/result.h"
#include "tools/tandem/run/run_options.h"

namespace tandem::cli {

class Pictures {
 public:
  /// Writes no files.
  Pictures() = default;
  /// Throws InvalidArgument if a file could not be written, or if two names are one file.
  explicit Pictures(const RunOptions& options);

  /// Records timelines without a file, too.
  void keep() { keeps_ = true; }
  /// Returns whether timelines have to be recorded.
  bool wanted() const { return keeps_ || !trace_.empty() || wants_report(); }
  /// Returns whether baselines are shown, too.
  bool wants_report() const { return !report_.empty() || !svg_.empty(); }
  /// Adds the part of a timeline in the call's `window`, named `title`. The first one is the run itself.
  void add(const std::string& title, const trace::Timeline& timeline, const CallWindow& window);
  /// Adds a whole timeline.
  void add(const std::string& title, trace::Timeline timeline);
  /// Shows the run's bandwidth beside the machine's links and NICs, and its FLOP/s beside the machine's GEMM rate.
  void compare_with(const Machine& machine);
  /// Returns the added timelines, until they are written.
  const std::vector<trace::Timeline>& timelines() const { return timelines_; }
  /// Writes the files, each completely or not at all. Returns their paths.
  std::vector<std::string> write(const Result& result);

 private:
  bool keeps_ = false;
  std::string trace_, report_, svg_;
  std::vector<trace::Timeline> timelines_;
  std::optional<Machine> machine_;
};

}  // namespace tandem::cli
