#include "runtime/heap_allocator.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "tandem/error.h"

namespace tandem {

namespace {

constexpr Size kAlignment = 256;
constexpr Size kNoRoom = -1;
constexpr Size kFreed = -1;
constexpr Size kReclaim = -2;

using Holes = std::map<Size, Size>;

constexpr Size kMostBytes = Size{1} << 47;  // the address space of a process

void check_size(const std::string& name, Size bytes) {
  if (bytes < 0 || bytes > kMostBytes)
    throw InvalidArgument(fmt::format("allocation '{}': {} bytes given, allowed are 0 to {}", name, bytes, kMostBytes));
}

Size checked(const char* option, Size bytes) {
  if (bytes < 0 || bytes > kMostBytes)
    throw InvalidArgument(fmt::format("{}: {} given, allowed are 0 to {}", option, bytes, kMostBytes));
  return bytes;
}

/// Returns the lowest hole of that size, or kNoRoom.
Size find_hole(const Holes& holes, Size bytes) {
  const auto found = std::find_if(holes.begin(), holes.end(), [&](const auto& hole) { return hole.second >= bytes; });
  return found == holes.end() ? kNoRoom : found->first;
}

void take_hole(Holes& holes, Size offset, Size bytes) {
  const auto found = holes.find(offset);
  const Size rest = found->second - bytes;
  holes.erase(found);
  if (rest > 0) holes[offset + bytes] = rest;
}

/// Adds a hole, merges it with its neighbours, and returns its offset.
Size add_hole(Holes& holes, Size offset, Size bytes) {
  const auto after = holes.lower_bound(offset);
  if (after != holes.end() && after->first == offset + bytes) {
    bytes += after->second;
    holes.erase(after);
  }
  const auto next = holes.lower_bound(offset);
  if (next != holes.begin() && std::prev(next)->first + std::prev(next)->second == offset) {
    std::prev(next)->second += bytes;
    return std::prev(next)->first;
  }
  holes[offset] = bytes;
  return offset;
}

}  // namespace

HeapAllocator::HeapAllocator(int pes, Size data_bytes, Size limit_bytes, bool guarded, Size control_bytes)
    : pes_(pes),
      control_bytes_(control_bytes),
      data_bytes_(round_up(checked("heap_bytes", data_bytes), limit_bytes > data_bytes ? kGrain : 4096)),
      limit_bytes_(max(data_bytes_, round_up(checked("heap_limit_bytes", limit_bytes), kGrain))),
      grown_bottom_(range_bytes()),
      grown_end_(range_bytes()),
      next_request_(static_cast<std::size_t>(pes)),
      guarded_(guarded),
      local_(static_cast<std::size_t>(pes)),
      freed_local_(static_cast<std::size_t>(pes)),
      released_(static_cast<std::size_t>(pes)) {
  part(MemoryKind::kControl).top = control_bytes_;
  part(MemoryKind::kData).bottom = control_bytes_;
  part(MemoryKind::kData).top = range_bytes();
  for (Part& each : parts_) {
    each.local_top.assign(static_cast<std::size_t>(pes), each.top);
    each.local_holes.resize(static_cast<std::size_t>(pes));
  }
}

Size HeapAllocator::reserved_for(Size bytes) const {
  return round_up(max(bytes, 1), kAlignment) + (guarded_ ? kGuardBytes : 0);
}

void HeapAllocator::exhausted(MemoryKind kind, int pe, const std::string& name, Size bytes, Size left) const {
  throw OutOfMemory(
      fmt::format("PE {}: no room for '{}': {} bytes asked, {} of {} bytes of {} memory left{}", pe, name, bytes, left,
                  capacity(kind), kind == MemoryKind::kControl ? "control" : "data",
                  kind == MemoryKind::kData && can_grow() ? fmt::format(", which may grow to {}", limit_bytes_) : ""));
}

Size HeapAllocator::largest(MemoryKind kind, Size main_left) const {
  Size most = min(left(kind), main_left);
  for (const auto& [offset, bytes] : part(kind).holes) most = max(most, bytes);
  return kind == MemoryKind::kData ? max(most, most_bytes() - grown_bottom_) : most;
}

bool HeapAllocator::has_room(MemoryKind kind, Size reserved, Size main_left) const {
  return find_hole(part(kind).holes, reserved) != kNoRoom || reserved <= min(left(kind), main_left) ||
         (kind == MemoryKind::kData && grown_bottom_ + reserved <= grown_end_);
}

/// Returns the offset for a symmetric buffer: in a hole, in the initial part, or in the grown part.
Size HeapAllocator::take_symmetric(MemoryKind kind, Size reserved, Size main_left) {
  Part& in = part(kind);
  Size offset = find_hole(in.holes, reserved);
  if (offset != kNoRoom) {
    take_hole(in.holes, offset, reserved);
  } else if (reserved <= min(left(kind), main_left)) {
    offset = in.bottom;
    in.bottom += reserved;
  } else if (kind == MemoryKind::kData && grown_bottom_ + reserved <= grown_end_) {
    offset = grown_bottom_;
    grown_bottom_ += reserved;
  }
  return offset;
}

Size HeapAllocator::growth_for(int pe, Size bytes, Size main_left) const {
  if (bytes < 0 || bytes > kMostBytes) return 0;  // the allocation rejects it
  const Size reserved = reserved_for(bytes);
  if (next_request_[static_cast<std::size_t>(pe)] < requests_.size()) return 0;
  if (find_hole(part(MemoryKind::kData).holes, reserved) != kNoRoom) return 0;
  if (reserved <= min(left(MemoryKind::kData), main_left)) return 0;
  const Size needed = round_up(grown_bottom_ + reserved - grown_end_, kGrain);
  if (needed <= 0 || grown_end_ + needed > most_bytes()) return 0;
  return min(max(needed, data_bytes_), most_bytes() - grown_end_);
}

/// Returns the n-th request of this PE: the one that another PE has made, or `asked`.
HeapAllocator::Request& HeapAllocator::next_request(int pe, const Request& asked) {
  std::size_t& next = next_request_[static_cast<std::size_t>(pe)];
  if (next == requests_.size()) requests_.push_back(asked);
  Request& request = requests_[next++];
  const bool is_same_place = asked.bytes != kFreed || request.offset == asked.offset;
  if (request.kind == asked.kind && request.bytes == asked.bytes && request.name == asked.name && is_same_place)
    return request;
  const auto text = [](const Request& one) {
    if (one.bytes == kReclaim) return std::string("for more than is left");
    return one.bytes == kFreed ? fmt::format("to free '{}'", one.name)
                               : fmt::format("for '{}' of {} bytes", one.name, one.bytes);
  };
  throw InvalidArgument(fmt::format(
      "symmetric allocation number {}: PE {} asks {}, another PE asked {}; all PEs must allocate the same in "
      "the same order",
      next, pe, text(asked), text(request)));
}

Size HeapAllocator::allocate_symmetric(int pe, MemoryKind kind, Size bytes, const std::string& name, Size element_bytes,
                                       Size main_left) {
  check_size(name, bytes);
  const bool is_first = next_request_[static_cast<std::size_t>(pe)] == requests_.size();
  if (is_first && !has_room(kind, reserved_for(bytes), main_left)) use_freed_again();
  Request& request = next_request(pe, {kind, bytes, name, kNoRoom, largest(kind, main_left)});
  if (is_first) {
    // A failed request is remembered, too: all PEs must get the same answer, whatever is allocated in between.
    request.offset = take_symmetric(kind, reserved_for(bytes), main_left);
    if (request.offset != kNoRoom) symmetric_[request.offset] = {name, bytes, element_bytes};
  }
  if (request.offset == kNoRoom) exhausted(kind, pe, name, bytes, request.left);
  return request.offset;
}

Size HeapAllocator::allocate_local(int pe, MemoryKind kind, Size bytes, const std::string& name, Size element_bytes) {
  check_size(name, bytes);
  const Size reserved = reserved_for(bytes);
  Size offset = take_local(kind, pe, reserved);
  if (offset == kNoRoom) {
    use_freed_again(pe);
    offset = take_local(kind, pe, reserved);
  }
  const Part& in = part(kind);
  if (offset == kNoRoom) exhausted(kind, pe, name, bytes, in.local_top[static_cast<std::size_t>(pe)] - in.bottom);
  local_[static_cast<std::size_t>(pe)][offset] = {name, bytes, element_bytes};
  return offset;
}

/// Returns the offset for a buffer of one PE, or kNoRoom.
Size HeapAllocator::take_local(MemoryKind kind, int pe, Size reserved) {
  Part& in = part(kind);
  Size& top = in.local_top[static_cast<std::size_t>(pe)];
  Holes& holes = in.local_holes[static_cast<std::size_t>(pe)];
  if (const Size offset = find_hole(holes, reserved); offset != kNoRoom) {
    take_hole(holes, offset, reserved);
    return offset;
  }
  if (top - reserved < in.bottom) return kNoRoom;
  top -= reserved;
  in.top = min(in.top, top);
  return top;
}

const std::string& HeapAllocator::name_at(Size offset) const {
  const auto found = symmetric_.find(offset);
  if (found == symmetric_.end())
    throw InvalidArgument(fmt::format("free: no symmetric buffer begins at offset {} of the heap", offset));
  return found->second.name;
}

void HeapAllocator::free_symmetric(int pe, Size offset) {
  if (next_request_[static_cast<std::size_t>(pe)] < requests_.size()) {
    const Request& made = requests_[next_request_[static_cast<std::size_t>(pe)]];
    const bool is_same = made.bytes == kFreed && made.offset == offset;
    next_request(pe, {kind_at(offset), kFreed, is_same ? made.name : name_at(offset), offset, 0});
    return;
  }
  next_request(pe, {kind_at(offset), kFreed, name_at(offset), offset, 0});
  give_back(offset);
}

void HeapAllocator::give_back(Size offset) {
  for (std::set<Size>& released : released_) released.erase(offset);
  auto freed = symmetric_.extract(offset);
  if (guarded_)
    freed_symmetric_.insert(std::move(freed));
  else
    make_hole(offset, reserved_for(freed.mapped().bytes));
}

void HeapAllocator::use_freed_again() {
  for (const auto& [offset, buffer] : std::exchange(freed_symmetric_, {}))
    make_hole(offset, reserved_for(buffer.bytes));
}

void HeapAllocator::use_freed_again(int pe) {
  for (const auto& [offset, buffer] : std::exchange(freed_local_[static_cast<std::size_t>(pe)], {}))
    make_local_hole(pe, offset, reserved_for(buffer.bytes));
}

void HeapAllocator::make_hole(Size offset, Size reserved) {
  Part& in = part(kind_at(offset));
  const Size begin = add_hole(in.holes, offset, reserved);
  // Free space at an end of the part is not a hole; the end moves instead.
  for (Size* const bottom : {&in.bottom, &grown_bottom_})
    if (begin + in.holes[begin] == *bottom && (bottom == &in.bottom || begin >= grown_begin())) {
      *bottom = begin;
      in.holes.erase(begin);
      return;
    }
}

void HeapAllocator::release_symmetric(int pe, Size offset) {
  name_at(offset);
  released_[static_cast<std::size_t>(pe)].insert(offset);
}

void HeapAllocator::reclaim() {
  std::set<Size> by_all = released_.front();
  for (const std::set<Size>& released : released_)
    std::erase_if(by_all, [&](Size offset) { return !released.contains(offset); });
  reclaim(by_all);
}

void HeapAllocator::reclaim(const std::set<Size>& offsets) {
  for (const Size offset : offsets) give_back(offset);
}

bool HeapAllocator::needs_barrier(int pe, MemoryKind kind, Size bytes) {
  if (bytes < 0 || bytes > kMostBytes) return false;  // the allocation rejects it
  std::size_t& next = next_request_[static_cast<std::size_t>(pe)];
  if (next == requests_.size()) {
    if (has_room(kind, reserved_for(bytes), kAnySize)) return false;
    requests_.push_back({kind, kReclaim, "", kNoRoom, 0});
  }
  if (requests_[next].bytes != kReclaim) return false;
  ++next;
  return true;
}

void HeapAllocator::free_local(int pe, Size offset) {
  Buffers& buffers = local_[static_cast<std::size_t>(pe)];
  const auto found = buffers.find(offset);
  if (found == buffers.end())
    throw InvalidArgument(fmt::format("free: no local buffer of PE {} begins at offset {} of its heap", pe, offset));
  auto freed = buffers.extract(found);
  if (guarded_)
    freed_local_[static_cast<std::size_t>(pe)].insert(std::move(freed));
  else
    make_local_hole(pe, offset, reserved_for(freed.mapped().bytes));
}

void HeapAllocator::make_local_hole(int pe, Size offset, Size reserved) {
  Part& in = part(kind_at(offset));
  Holes& holes = in.local_holes[static_cast<std::size_t>(pe)];
  Size& top = in.local_top[static_cast<std::size_t>(pe)];
  const Size begin = add_hole(holes, offset, reserved);
  if (begin != top) return;
  top += holes[begin];
  holes.erase(begin);
  in.top = *std::min_element(in.local_top.begin(), in.local_top.end());
}

}  // namespace tandem
