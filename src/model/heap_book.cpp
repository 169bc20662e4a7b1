#include "model/heap_book.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "tandem/error.h"

namespace tandem {

namespace {

constexpr Size kAlignment = 256;
constexpr Size kNoRoom = -1;

void check_size(const std::string& name, Size bytes) {
  if (bytes < 0)
    throw InvalidArgument(fmt::format("allocation '{}': size is {} bytes, must not be negative", name, bytes));
}

}  // namespace

HeapBook::HeapBook(int pes, Size data_bytes)
    : pes_(pes),
      data_bytes_(round_up(data_bytes, 4096)),
      next_request_(static_cast<std::size_t>(pes)),
      local_(static_cast<std::size_t>(pes)) {
  for (const MemoryKind kind : {MemoryKind::kControl, MemoryKind::kData}) {
    const int k = static_cast<int>(kind);
    parts_[k] = {0, capacity(kind)};
    local_top_[k].assign(static_cast<std::size_t>(pes), capacity(kind));
  }
}

void HeapBook::exhausted(MemoryKind kind, int pe, const std::string& name, Size bytes, Size left) const {
  throw OutOfMemory(fmt::format("PE {}: no room for '{}': {} bytes asked, {} of {} bytes of {} memory left", pe, name,
                                bytes, left, capacity(kind), kind == MemoryKind::kControl ? "control" : "data"));
}

Size HeapBook::allocate_symmetric(int pe, MemoryKind kind, Size bytes, const std::string& name, Size element_bytes) {
  check_size(name, bytes);
  std::size_t& next = next_request_[static_cast<std::size_t>(pe)];
  if (next == requests_.size()) {
    Part& part = parts_[static_cast<int>(kind)];
    const Size reserved = round_up(max(bytes, 1), kAlignment);
    const Size left = part.top - part.bottom;
    const Size offset = reserved <= left ? begin_of(kind) + part.bottom : kNoRoom;
    // What does not fit is remembered too: all PEs must see the same, whatever is allocated meanwhile.
    requests_.push_back({kind, bytes, name, offset, left});
    if (offset != kNoRoom) {
      part.bottom += reserved;
      symmetric_[offset] = {name, bytes, element_bytes};
    }
  }
  const Request& request = requests_[next++];
  if (request.kind != kind || request.bytes != bytes || request.name != name)
    throw InvalidArgument(
        fmt::format("symmetric allocation number {}: PE {} asks for '{}' of {} bytes, another PE asked for '{}' of {} "
                    "bytes; all PEs must allocate the same in the same order",
                    next, pe, name, bytes, request.name, request.bytes));
  if (request.offset == kNoRoom) exhausted(kind, pe, name, bytes, request.left);
  return request.offset;
}

Size HeapBook::allocate_local(int pe, MemoryKind kind, Size bytes, const std::string& name, Size element_bytes) {
  check_size(name, bytes);
  Part& part = parts_[static_cast<int>(kind)];
  Size& top = local_top_[static_cast<int>(kind)][static_cast<std::size_t>(pe)];
  const Size reserved = round_up(max(bytes, 1), kAlignment);
  if (top - reserved < part.bottom) exhausted(kind, pe, name, bytes, top - part.bottom);
  top -= reserved;
  part.top = min(part.top, top);
  const Size offset = begin_of(kind) + top;
  local_[static_cast<std::size_t>(pe)][offset] = {name, bytes, element_bytes};
  return offset;
}

std::string HeapBook::describe(int pe, Size offset) const { return describe_range(pe, offset, 0); }

std::string HeapBook::describe_range(int pe, Size offset, Size bytes) const {
  for (const Buffers* buffers : {&symmetric_, &local_[static_cast<std::size_t>(pe)]}) {
    const auto after = buffers->upper_bound(offset);
    if (after == buffers->begin()) continue;
    const auto& [begin, buffer] = *std::prev(after);
    if (offset >= begin + max(buffer.bytes, 1)) continue;
    const Size first = (offset - begin) / buffer.element_bytes;
    const Size last = (offset - begin + max(bytes, 1) - 1) / buffer.element_bytes;
    if (first == last) return fmt::format("{}[{}] on PE {}", buffer.name, first, pe);
    return fmt::format("{}[{}, {}) on PE {}", buffer.name, first, last + 1, pe);
  }
  return fmt::format("unallocated memory at offset {} on PE {}", offset, pe);
}

}  // namespace tandem
