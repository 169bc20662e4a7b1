#pragma once
/// PEs on this machine's processors with as little around them as kernels need: threads that share one piece of memory,
/// streams that are threads, too. For tests of the host engine alone.

#include <functional>
#include <memory>
#include <string>

#include "host/grid.h"
#include "tandem/world.h"

namespace tandem::test {

struct HostOptions {
  double timeout_s = 20;
  double arrival_timeout_s = 40;
  bool has_multicast = false;
  int threads = 1;             ///< that run the blocks of a grid
  bool is_recorded = false;    ///< kernels run as for a timeline
  bool for_processes = false;  ///< its memory is shared with processes that are forked
};

/// The memory of all PEs, and where they meet.
class HostPes {
 public:
  explicit HostPes(int pes, const HostOptions& options = {});
  ~HostPes();
  HostPes(const HostPes&) = delete;
  HostPes& operator=(const HostPes&) = delete;

  /// Runs the program as each PE, on a thread each. Throws what left one first.
  void run(const std::function<void(World&)>& program);
  cuda::Context context(int pe) const;
  const cuda::WaitReport& report(int pe) const;

 private:
  class View;
  class HostStream;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem::test
