#pragma once
/// Signal words: the waits for them, and their writers.

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/engine/engine.h"
#include "sim/memory/cpu_names.h"
#include "sim/memory/memory.h"
#include "sim/memory/word_states.h"
#include "sim/run/observer.h"

namespace tandem::sim {

/// Returns the symbol of a comparison, such as ">=".
const char* symbol(Cmp cmp);

/// The PE and lane that changed a word, and the time when the change was sent.
struct Cause {
  int pe = -1;
  Lane lane = kNoLane;
  Time time = 0;
};

/// Guesses the writer of an unwritten word (or packet) from examples (PE of the word, its writer) of the same word on
/// other PEs. Two examples distinguish one writer for all PEs from a neighbour of each PE. Returns -1 if they show
/// neither.
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
  SignalWait* after = nullptr;  ///< the next wait for the same word, in a ring

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

  /// Returns the arrival of a change of `word` by PE `pe` that could arrive at `time`. It follows that PE's earlier
  /// changes, as a memory system keeps the order of one writer's stores to one address.
  Time in_order(const Signal* word, int pe, Time time);
  /// Returns the time when all changes of these words by PE `pe` have arrived; 0 if it made none.
  Time own_changes(const Signal* words, Size n, Size stride, int pe) const;
  void apply(const SignalUpdate& update, const Cause& cause);
  /// Called after an atomic has changed a word.
  void changed(const Signal* word, const Cause& cause);
  /// Called after packets were written at [begin, begin + bytes).
  void packets_arrived(const void* begin, Size bytes, const Cause& cause);

  /// Adds a wait that is not ready yet. Its address must stay valid until it is ready.
  void add(SignalWait& wait);
  void add(PacketWait& wait);

  /// Returns a text such as "waits for arrived[3] on PE 2 >= 5, found 4; PE 3 writes it".
  std::string describe(const SignalWait& wait) const;
  std::string describe(const PacketWait& wait) const;

 private:
  std::string describe_writer(const Signal* word) const;
  /// Returns the copies of a symmetric word that were written: (PE of the copy, its last writer).
  std::vector<std::pair<int, int>> examples_of(const Signal* word) const;

  const Memory& memory_;
  WordStates words_;
  std::unordered_map<int, std::vector<PacketWait*>> packet_waits_;  // by PE; looked up, never iterated
};

}  // namespace tandem::sim
