#pragma once
/// The clocks of a world's hosts, which PE 0 compares with its own by words that it exchanges with a PE of each host.

#include <atomic>
#include <vector>

#include "trace/gpu/clock_alignment.h"
#include "world/pes/processes.h"

namespace tandem::world {

class HostClocks {
 public:
  /// `offset` is that of a signal's word in the memory of each PE. Nothing else uses the word.
  HostClocks(Processes& all, Size offset) : all_(all), offset_(offset) {}

  /// Returns, by PE, the clock of its host minus that of PE 0's; PE 0 gets the errors too. Collective; nothing else may
  /// run. Throws the reason of the world's end.
  std::vector<trace::ClockOffset> compare();

 private:
  trace::ClockOffset ask(int pe);
  void answer();
  void share(std::vector<trace::ClockOffset>& offsets);
  /// Sets the word of a PE of another host.
  void set(int pe, std::uint64_t value);
  /// Waits until this PE's word is not `before`, and returns it.
  std::uint64_t await_other_than(std::uint64_t before);
  std::atomic_ref<std::uint64_t> word() const;

  Processes& all_;
  const Size offset_;
  std::uint64_t asked_ = 0;  // questions to each host so far
};

}  // namespace tandem::world
