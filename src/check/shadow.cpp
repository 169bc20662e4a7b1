#include "check/shadow.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "tandem/error.h"

namespace tandem::checker {

namespace {

bool writes(Role role) { return role == Role::kWrite || role == Role::kAtomicWrite || role == Role::kReduction; }

bool conflict(const Record& first, const Record& second) {
  if (first.role == Role::kReduction && second.role == Role::kReduction) return false;
  // Only atomics of system scope are settled here: the caller knows more about other scopes.
  const auto atomic = [](const Record& record) {
    return (record.role == Role::kAtomicRead || record.role == Role::kAtomicWrite) && record.scope == Scope::kSystem;
  };
  return (writes(first.role) || writes(second.role)) && !(atomic(first) && atomic(second) && same_word(first, second));
}

bool in_order(const Record& first, const NewAccess& second) {
  if (second.after->covers(first.stamp)) return true;
  if (first.role == Role::kRead)
    return second.over != nullptr &&
           (first.packet ? second.over->packets_read : second.over->reads).covers(first.stamp);
  if (second.over != nullptr && writes(second.record.role) && second.over->writes.covers(first.stamp)) return true;
  // A read of packets has seen the write of their flags, which is their signal.
  return first.packet && second.record.packet && second.record.role == Role::kRead;
}

}  // namespace

bool Cell::is_written() const {
  return write.stamp.tick > 0 || std::any_of(others.begin(), others.end(), [](const Record& other) {
           return other.role == Role::kAtomicWrite || other.role == Role::kReduction;
         });
}

Shadow::Cells::iterator Shadow::add(Cells::iterator before, Size begin, Cell cell, Size& cells) {
  if (++cells > kMostCells)
    throw OutOfMemory(
        fmt::format("the race detector: more than {} intervals of memory; a smaller problem needs less", kMostCells));
  return cells_.emplace_hint(before, begin, std::move(cell));
}

Shadow::Cells::iterator Shadow::split(Size at, Size& cells) {
  auto next = cells_.lower_bound(at);
  if (next == cells_.begin() || (next != cells_.end() && next->first == at)) return next;
  const auto before = std::prev(next);
  if (before->second.end <= at) return next;
  Cell right = before->second;
  before->second.end = at;
  return add(next, at, std::move(right), cells);
}

void Shadow::update(Cell& cell, const NewAccess& access) {
  const Record& record = access.record;
  if (record.role == Role::kWrite) {
    cell.write = record;
    cell.others.clear();
    cell.sent = nullptr;
    return;
  }
  // An access that is ordered after this one is also ordered after its predecessors.
  std::erase_if(cell.others, [&](const Record& other) {
    return (!access.beside || other.stamp.slot == record.stamp.slot) && other.role == record.role &&
           other.packet == record.packet && access.after->covers(other.stamp);
  });
  cell.others.push_back(record);
}

void Shadow::access(Range bytes, const NewAccess& access, std::vector<Conflict>& conflicts, Size& cells) {
  auto at = split(bytes.begin, cells);
  for (Size begin = bytes.begin; begin < bytes.end;) {
    if (at == cells_.end() || at->first > begin) {
      const Size end = at == cells_.end() ? bytes.end : std::min(bytes.end, at->first);
      at = add(at, begin, Cell{}, cells);
      at->second.end = end;
    } else if (at->second.end > bytes.end) {
      at = std::prev(split(bytes.end, cells));
    }
    Cell& cell = at->second;
    const Range here{begin, cell.end};
    const auto check = [&](const Record& first) {
      if (first.stamp.tick == 0 || !conflict(first, access.record) || in_order(first, access)) return;
      conflicts.push_back({first, here});
    };
    check(cell.write);
    for (const Record& other : cell.others) check(other);
    update(cell, access);
    begin = cell.end;
    ++at;
  }
}

void Shadow::set_sent(Range bytes, const std::shared_ptr<const Sent>& sent) {
  for (auto at = cells_.lower_bound(bytes.begin); at != cells_.end() && at->first < bytes.end; ++at)
    at->second.sent = sent;
}

}  // namespace tandem::checker
