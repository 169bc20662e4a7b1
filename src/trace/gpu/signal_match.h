#pragma once
/// Which signal ended which wait: by word and value, since signals only grow.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tandem/signal.h"
#include "tandem/timeline.h"
#include "trace/gpu/gpu_recording.h"

namespace tandem::trace {

/// A change of a signal word, or packets.
struct Sent {
  GpuPlace at;
  Epoch value = 0;  ///< or the packets' flag
  SignalOp op = SignalOp::kSet;
  Size bytes = 0;  ///< of packets with their flags; a signal's word otherwise
  std::uint32_t lane = 0;
  Time time = 0;  ///< when it was on its way
  /// Whether `time` was recorded, and not concluded from the waits for it, as a copy's is.
  bool is_recorded = true;
};

/// A wait for words that lie one after the other, or for packets.
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
  /// After the last `add`, before the first question.
  void sort();

  /// What a wait for signals went on after: of the changes that made each of its words right, the last one. A word that
  /// is set is right from its first change to a value that compares true; of one that is added to, the last change
  /// before the wait's end counts. Nothing where a word's change was not recorded.
  std::optional<Sent> released_by(const Awaited& wait) const;
  /// The packets of one wait: the last ones that were sent.
  std::optional<Sent> brought_by(const Awaited& wait) const;

 private:
  using Word = std::pair<int, Size>;
  std::map<Word, std::vector<Sent>> signals_;                   // by time
  std::map<std::pair<int, Epoch>, std::vector<Sent>> packets_;  // of a PE and flag, by offset
  Size longest_ = 0;                                            // of all packets, bytes
};

}  // namespace tandem::trace
