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
};

/// An access about to be recorded, with what it is ordered after.
struct NewAccess {
  Record record;
  const Clock* after = nullptr;
  /// Reads (and reads of packets) that these cover are over, too.
  const Clock* reads_over = nullptr;
  const Clock* packets_read = nullptr;
  /// It goes on beside its thread: what comes after it need not come after what the thread did before.
  bool beside = false;
};

/// What the sender of packets had read before: packets leave after the loads whose flags the sender branched on, and
/// after kernels that ended before its own began.
struct Sent {
  Clock reads_over;
  Clock packets_read;

  void join(const Sent& other) {
    reads_over.join(other.reads_over);
    packets_read.join(other.packets_read);
  }
  void meet(const Sent& other) {
    reads_over.meet(other.reads_over);
    packets_read.meet(other.packets_read);
  }
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

/// One PE's memory, by offset.
class Shadow {
 public:
  /// Intervals of all shadows together. Each takes about 150 bytes, and 24 more for each reader.
  static constexpr Size kMostCells = Size{1} << 20;

  /// Appends what the access conflicts with (atomics with all others, unless both are of system scope), and records it.
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
