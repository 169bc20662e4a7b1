#pragma once
/// Signal words: who waits for which, and who wrote them.

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/engine/engine.h"
#include "sim/memory/cpu_names.h"
#include "sim/memory/memory.h"
#include "sim/run/observer.h"

namespace tandem::sim {

/// ">=".
const char* symbol(Cmp cmp);

/// Who changed a word, and when it was sent.
struct Cause {
  int pe = -1;
  Lane lane = kNoLane;
  Time time = 0;
};

/// Who writes a word (or packet) that nobody has written, by who writes the same one of other PEs: (PE of the word, its
/// writer). Two examples tell one writer of all from one neighbour of each; -1: they tell nothing.
int likely_writer(const std::vector<std::pair<int, int>>& examples, int pe, int pes);

/// Waits until `count` words, one every `stride`, compare true. `ready(argument)` is called once, from within `apply`.
struct SignalWait {
  const Signal* words = nullptr;
  Size count = 1;
  Size stride = 1;
  Cmp cmp = Cmp::kGe;
  Epoch value = 0;
  void (*ready)(void*) = nullptr;
  void* argument = nullptr;
  int pe = 0;
  Size next = 0;  ///< the first word not yet seen to compare true
  Cause released_by;

  /// Moves `next` on; true when all words compare true now.
  bool advance() {
    while (next < count && compare(words[next * stride].value, cmp, value)) ++next;
    return next == count;
  }
};

/// Waits until every packet of a range carries a flag.
struct PacketWait {
  const std::byte* packets = nullptr;
  Size count = 0;
  Size packet_bytes = 0;
  Size flag_offset = 0;
  int flag_bytes = 4;
  std::uint64_t flag = 0;
  void (*ready)(void*) = nullptr;
  void* argument = nullptr;
  int pe = 0;
  Size next = 0;
  Cause released_by;

  bool advance();
  const std::byte* end() const { return packets + count * packet_bytes; }
};

class SignalBoard {
 public:
  explicit SignalBoard(const Memory& memory) : memory_(memory) {}

  /// When a change of `word` by PE `pe` that would arrive at `time` does so: after that PE's earlier ones, as a memory
  /// system keeps the order of one writer's stores to one address.
  Time in_order(const Signal* word, int pe, Time time);
  /// When PE `pe`'s own changes of these words have arrived; 0 where it made none.
  Time own_changes(const Signal* words, Size n, Size stride, int pe) const;
  void apply(const SignalUpdate& update, const Cause& cause);
  /// After a word was changed by an atomic.
  void changed(const Signal* word, const Cause& cause);
  /// After packets were written at [begin, begin + bytes).
  void packets_arrived(const void* begin, Size bytes, const Cause& cause);

  /// The wait must stay where it is until it is ready. Not ready yet, or it need not be added.
  void add(SignalWait& wait);
  void add(PacketWait& wait);

  /// "waits for arrived[3] on PE 2 >= 5, found 4; PE 3 writes it".
  std::string describe(const SignalWait& wait) const;
  std::string describe(const PacketWait& wait) const;

 private:
  std::string describe_writer(const Signal* word) const;

  const Memory& memory_;
  std::unordered_map<const Signal*, std::vector<SignalWait*>> waits_;  // looked up, never iterated
  std::unordered_map<const Signal*, int> writers_;                     // last PE that wrote; likewise
  std::unordered_map<const Signal*, std::pair<int, Time>>
      under_way_;  // last change: by whom, when it arrives; likewise
  std::unordered_map<Size, std::vector<std::pair<int, int>>> examples_;  // offset -> (PE of a word, its first writer)
  std::unordered_map<int, std::vector<PacketWait*>> packet_waits_;       // by PE
};

}  // namespace tandem::sim
