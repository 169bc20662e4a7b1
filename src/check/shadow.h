#pragma once
/// Shadow memory: the last reads and writes of all bytes, by intervals.

#include <iterator>
#include <map>
#include <memory>
#include <vector>

#include "check/clock.h"
#include "tandem/range.h"
#include "tandem/signal.h"

namespace tandem::checker {

/// The kind of an access, which decides on conflicts.
enum class Role : std::uint8_t {
  kRead,
  kWrite,
  kAtomicRead,
  kAtomicWrite,
  kReduction,  // a write that has no conflict with others of its kind
};

inline bool is_write(Role role) {
  return role == Role::kWrite || role == Role::kAtomicWrite || role == Role::kReduction;
}

/// One access in shadow memory.
struct Record {
  Stamp stamp;
  std::uint32_t info = 0;  // number of its description
  Role role = Role::kRead;
  bool packet = false;           // packets carry their own flags
  bool transfer = false;         // a put or get that runs concurrently with its issuer
  Scope scope = Scope::kSystem;  // of an atomic
  std::uint8_t word_bytes = 0;   // the size of an atomic
  std::uint8_t word_offset = 0;  // the offset at which an atomic starts, modulo 8
  std::uint16_t occurrence = 0;  // of the operation that `info` describes
};

/// The accesses that are over, as far as a sender knows. A packet, or a signal after reads, leaves after the loads on
/// whose values the sender branched. It also leaves after kernels that ended before the sender's own started.
struct Sent {
  Clock reads;
  Clock packets_read;
  Clock writes;  // no later write precedes them, though a reader may not see them yet

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

/// An access about to be recorded, with the clock of everything that happens before it.
struct NewAccess {
  Record record;
  const Clock* after = nullptr;
  /// The accesses that are over, though their effects may not be visible here; null if there are none.
  const Sent* over = nullptr;
  /// Whether it runs concurrently with its thread. Then a successor of it need not follow the thread's earlier
  /// accesses.
  bool beside = false;
};

/// Bytes with the same accesses.
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

/// Returns whether two atomics cover the same bytes: PTX has no order between atomics that overlap in part.
inline bool same_word(const Record& a, const Record& b) {
  return a.word_bytes == b.word_bytes && a.word_offset == b.word_offset;
}

/// The shadow of one PE's memory, by offset.
class Shadow {
 public:
  /// The most intervals of all shadows together. Each takes about 150 bytes, and 24 more for each reader.
  static constexpr Size kMostCells = Size{1} << 20;

  /// Appends the conflicts of the access, and records it. Atomics conflict with all accesses, except that two of system
  /// scope on one word have no conflict. Throws OutOfMemory beyond kMostCells.
  void access(Range bytes, const NewAccess& access, std::vector<Conflict>& conflicts, Size& cells);
  /// Calls visit(cell) for the cells that lie in a range, or around one of its ends.
  template <class Visit>
  void visit(Range bytes, Visit visit) const {
    auto at = cells_.upper_bound(bytes.begin);
    if (at != cells_.begin() && std::prev(at)->second.end > bytes.begin) --at;
    for (; at != cells_.end() && at->first < bytes.end; ++at) visit(at->second);
  }
  /// Calls visit(range) for each unwritten part of the range.
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
  /// Sets the accesses that were over when packets were written there.
  void set_sent(Range bytes, const std::shared_ptr<const Sent>& sent);

 private:
  using Cells = std::map<Size, Cell>;  // by first byte

  /// Returns the first cell that starts at `at` or after. A cell around `at` is cut there.
  Cells::iterator split(Size at, Size& cells);
  Cells::iterator add(Cells::iterator before, Size begin, Cell cell, Size& cells);
  static void update(Cell& cell, const NewAccess& access);

  Cells cells_;
};

}  // namespace tandem::checker
