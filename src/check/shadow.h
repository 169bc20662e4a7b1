#pragma once
/// Shadow memory: who read and wrote which bytes last, by intervals.

#include <iterator>
#include <map>
#include <memory>
#include <vector>

#include "check/clock.h"
#include "tandem/range.h"
#include "tandem/signal.h"

namespace tandem::checker {

/// What an access is, as far as conflicts go.
enum class Role : std::uint8_t {
  kRead,
  kWrite,
  kAtomicRead,
  kAtomicWrite,
  kReduction,  // a write that has no conflict with others of its kind
};

/// One access in shadow memory.
struct Record {
  Stamp stamp;
  std::uint32_t info = 0;  // number of what is told of it
  Role role = Role::kRead;
  bool packet = false;           // packets carry their own flags
  bool transfer = false;         // a put or get beside its issuer
  Scope scope = Scope::kSystem;  // of an atomic
  std::uint8_t word_bytes = 0;   // the size of an atomic
  std::uint8_t word_offset = 0;  // the offset at which an atomic begins, modulo 8
  std::uint16_t occurrence = 0;  // of what `info` stands for
};

/// Accesses that are over, as far as a sender knows. Packets, and signals that tell of reads, leave after the loads
/// whose values the sender branched on, and after kernels that ended before its own began.
struct Sent {
  Clock reads;
  Clock packets_read;
  Clock writes;  // no later write comes before them, though a reader may not see them yet

  void join(const Sent& other) {
    reads.join(other.reads);
    packets_read.join(other.packets_read);
    writes.join(other.writes);
  }
  void meet(const Sent& other) {
    reads.meet(other.reads);
    packets_read.meet(other.packets_read);
    writes.meet(other.writes);
  }
};

/// An access about to be recorded, with what it is ordered after.
struct NewAccess {
  Record record;
  const Clock* after = nullptr;
  /// Accesses that are over, though their effects may not be visible here. Null: none.
  const Sent* over = nullptr;
  /// It goes on beside its thread: what comes after it need not come after what the thread did before.
  bool beside = false;
};

/// Bytes that were accessed alike.
struct Cell {
  Size end = 0;
  Record write;  // tick 0: none
  std::vector<Record> others;
  std::shared_ptr<const Sent> sent;  // with packets

  bool is_written() const;
};

struct Conflict {
  Record first;
  Range bytes;
};

/// Whether two atomics cover the same bytes: PTX has no order between atomics that overlap in part.
inline bool same_word(const Record& a, const Record& b) {
  return a.word_bytes == b.word_bytes && a.word_offset == b.word_offset;
}

/// One PE's memory, by offset.
class Shadow {
 public:
  /// Intervals of all shadows together. Each takes about 150 bytes, and 24 more for each reader.
  static constexpr Size kMostCells = Size{1} << 20;

  /// Appends what the access conflicts with, and records it. Atomics conflict with all others, but for two of system
  /// scope on one word.
  /// Throws OutOfMemory beyond kMostCells.
  void access(Range bytes, const NewAccess& access, std::vector<Conflict>& conflicts, Size& cells);
  /// Calls visit(cell) for the cells that lie in a range, or around one of its ends.
  template <class Visit>
  void visit(Range bytes, Visit visit) const {
    auto at = cells_.upper_bound(bytes.begin);
    if (at != cells_.begin() && std::prev(at)->second.end > bytes.begin) --at;
    for (; at != cells_.end() && at->first < bytes.end; ++at) visit(at->second);
  }
  /// Calls visit(range) for each part of the range that nobody has written.
  template <class Visit>
  void visit_unwritten(Range bytes, Visit visit) const {
    auto at = cells_.upper_bound(bytes.begin);
    if (at != cells_.begin() && std::prev(at)->second.end > bytes.begin) --at;
    for (Size begin = bytes.begin; begin < bytes.end; ++at) {
      const bool is_last = at == cells_.end() || at->first >= bytes.end;
      if (const Size end = is_last ? bytes.end : at->first; end > begin) visit(Range{begin, end});
      if (is_last) return;
      const Range cell{max(begin, at->first), min(bytes.end, at->second.end)};
      if (!at->second.is_written()) visit(cell);
      begin = cell.end;
    }
  }
  /// After packets were written there.
  void set_sent(Range bytes, const std::shared_ptr<const Sent>& sent);

 private:
  using Cells = std::map<Size, Cell>;  // by begin

  /// The first cell that begins at `at` or after; a cell around `at` is cut there.
  Cells::iterator split(Size at, Size& cells);
  Cells::iterator add(Cells::iterator before, Size begin, Cell cell, Size& cells);
  static void update(Cell& cell, const NewAccess& access);

  Cells cells_;
};

}  // namespace tandem::checker
