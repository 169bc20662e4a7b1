#pragma once
/// The clocks of a world's hosts, which PE 0 compares with its own by meetings with a PE of each host.

#include <vector>

#include "trace/gpu/clock_alignment.h"
#include "world/pes/processes.h"

namespace tandem::world {

class HostClocks {
 public:
  explicit HostClocks(Processes& all) : all_(all) {}

  /// Returns, by PE, the clock of its host minus that of PE 0's; PE 0 gets the errors too. Collective; nothing else may
  /// run. Throws the reason of the world's end.
  std::vector<trace::ClockOffset> compare();

 private:
  trace::ClockOffset ask(int pe);
  void answer();
  std::int64_t meet(int pe, std::int64_t own);
  void share(std::vector<trace::ClockOffset>& offsets);

  Processes& all_;
};

}  // namespace tandem::world
