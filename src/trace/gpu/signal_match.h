#pragma once
/// Matches waits with the signals that ended them, by word and value. This is possible because signals only grow.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tandem/signal.h"
#include "tandem/timeline.h"
#include "trace/gpu/gpu_profile.h"

namespace tandem::trace {

/// A change of a signal word, or a group of packets.
struct Sent {
  GpuPlace at;
  Epoch value = 0;  ///< or the packets' flag
  SignalOp op = SignalOp::kSet;
  Size bytes = 0;  ///< of packets with their flags, else of the signal's word
  std::uint32_t lane = 0;
  Time time = 0;  ///< the time at which it was sent
  /// Whether `time` was recorded. The time of a copy's signal is derived from waits instead.
  bool is_recorded = true;
};

/// A wait for consecutive words, or for packets.
struct Awaited {
  GpuPlace at;
  Size words = 1;
  Epoch value = 0;
  Cmp cmp = Cmp::kGe;
  Size bytes = 0;
  Time begin = 0;
  Time end = 0;
};

class SignalMatch {
 public:
  void add_signal(const Sent& signal) { signals_[{signal.at.pe, signal.at.offset}].push_back(signal); }
  void add_packets(const Sent& packets) { packets_[{packets.at.pe, packets.value}].push_back(packets); }
  /// Prepares the search. It is called after the last `add`.
  void sort();

  /// Returns the change that ended a wait for signals: the last of the changes that satisfied its words. A word that is
  /// set is satisfied by its first change to a matching value. For a word that is added to, the last change before the
  /// wait's end counts. Returns nothing if a word's change was not recorded.
  std::optional<Sent> released_by(const Awaited& wait) const;
  /// Returns the packets of one wait: the last ones that were sent.
  std::optional<Sent> brought_by(const Awaited& wait) const;

 private:
  using Word = std::pair<int, Size>;
  std::map<Word, std::vector<Sent>> signals_;                   // by time
  std::map<std::pair<int, Epoch>, std::vector<Sent>> packets_;  // by PE and flag, sorted by offset
  Size longest_ = 0;                                            // of all packets, bytes
};

}  // namespace tandem::trace
