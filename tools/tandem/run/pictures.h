#pragma once
/// The files with timelines: trace, report, picture.

#include <optional>
#include <string>
#include <vector>

#include "tandem/machine.h"
#include "tandem/timeline.h"
#include "tools/tandem/options/arguments.h"
#include "tools/tandem/run/measure.h"
#include "tools/tandem/run/result.h"

namespace tandem::cli {

class Pictures {
 public:
  /// No files.
  Pictures() = default;
  /// Throws InvalidArgument where a file could not be written, or two would be one.
  explicit Pictures(const Arguments& arguments);

  /// Has timelines recorded without a file, too.
  void keep() { keeps_ = true; }
  /// Whether timelines have to be recorded.
  bool wanted() const { return keeps_ || !trace_.empty() || wants_report(); }
  /// Whether baselines are shown as well.
  bool wants_report() const { return !report_.empty() || !svg_.empty(); }
  /// Adds the part of a timeline that the call `window` takes, named `title`; the first one is the run itself.
  void add(const std::string& title, const trace::Timeline& timeline, const CallWindow& window);
  /// The same with a whole timeline.
  void add(const std::string& title, trace::Timeline timeline);
  /// Shows the run's bandwidth beside what this machine's links and NICs give, and its FLOP/s beside its GEMM's.
  void compare_with(const Machine& machine);
  /// The timelines that were added, until they are written.
  const std::vector<trace::Timeline>& timelines() const { return timelines_; }
  /// Writes the files, each whole or not at all. Returns their paths.
  std::vector<std::string> write(const Result& result);

 private:
  bool keeps_ = false;
  std::string trace_, report_, svg_;
  std::vector<trace::Timeline> timelines_;
  std::optional<Machine> machine_;
};

}  // namespace tandem::cli
