#pragma once
/// The observer that draws the timeline.

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "sim/run/observer.h"
#include "tandem/timeline.h"

namespace tandem::sim {

class TimelineProfiler : public Observer {
 public:
  Lane add_lane(int pe, LaneKind kind, const std::string& name) override;
  void on_operation(const Operation& operation) override;
  void on_start(Lane from, Time at, Lane to, Time begin) override;
  void on_kernel(Lane lane, const std::string& name, Time begin, Time end) override;

  trace::Timeline timeline;
  /// The most spans and arrows together, so that they take at most about 4 GB.
  std::size_t most_events = 50'000'000;
  /// Returns a name such as "x[3] on PE 2". The simulation sets it.
  std::function<std::string(const void*)> describe;

 private:
  /// Returns whether the timeline holds less than `most_events`. Throws OutOfMemory instead of the first false: what is
  /// reported while the run unwinds is dropped.
  bool has_room();

  bool was_full_ = false;
  std::uint32_t label_of(const Operation& operation, const char* what);

  std::map<std::pair<int, std::string>, Lane> lanes_;
};

}  // namespace tandem::sim
