/// Descriptions of addresses by the buffer that contains them.

#include <fmt/format.h>

#include <initializer_list>
#include <iterator>

#include "runtime/heap_allocator.h"

namespace tandem {

std::string HeapAllocator::describe(int pe, Size offset) const { return describe_range(pe, offset, 0); }

namespace {

using Buffers = HeapAllocator::Buffers;

/// Returns the buffer of `buffers` that contains the byte, or null.
const Buffers::value_type* find_at(std::initializer_list<const Buffers*> all, Size offset) {
  for (const Buffers* buffers : all) {
    const auto after = buffers->upper_bound(offset);
    if (after == buffers->begin()) continue;
    const auto& found = *std::prev(after);
    if (offset < found.first + max(found.second.bytes, 1)) return &found;
  }
  return nullptr;
}

}  // namespace

const Buffers::value_type* HeapAllocator::buffer_at(int pe, Size offset) const {
  return find_at({&symmetric_, &local_[static_cast<std::size_t>(pe)]}, offset);
}

const Buffers::value_type* HeapAllocator::freed_at(int pe, Size offset) const {
  return find_at({&freed_symmetric_, &freed_local_[static_cast<std::size_t>(pe)]}, offset);
}

std::optional<Size> HeapAllocator::bytes_from(int pe, Size offset) const {
  const auto* const found = buffer_at(pe, offset);
  if (found == nullptr) return std::nullopt;
  return found->first + found->second.bytes - offset;
}

Range HeapAllocator::buffer_range(int pe, Size offset) const {
  const auto* const found = buffer_at(pe, offset);
  return found == nullptr ? Range{offset, offset} : Range{found->first, found->first + found->second.bytes};
}

std::string HeapAllocator::describe_beside(int pe, Size offset) const {
  Size nearest = kGuardBytes;
  std::string text = fmt::format("unallocated memory at offset {} on PE {}", offset, pe);
  for (const Buffers* buffers : {&symmetric_, &local_[static_cast<std::size_t>(pe)]}) {
    const auto next = buffers->upper_bound(offset);
    if (next != buffers->end() && next->first - offset < nearest) {
      nearest = next->first - offset;
      text = fmt::format("{} - {} bytes on PE {}", next->second.name, nearest, pe);
    }
    if (next == buffers->begin()) continue;
    const auto& [begin, buffer] = *std::prev(next);
    if (offset - begin - buffer.bytes >= nearest) continue;
    nearest = offset - begin - buffer.bytes;
    text = fmt::format("{} + {} of {} bytes on PE {}", buffer.name, offset - begin, buffer.bytes, pe);
  }
  return text;
}

std::string HeapAllocator::describe_range(int pe, Size offset, Size bytes) const {
  const auto* const held = buffer_at(pe, offset);
  const auto* const found = held != nullptr ? held : freed_at(pe, offset);
  if (found == nullptr) return describe_beside(pe, offset);
  const auto& [begin, buffer] = *found;
  const Size first = (offset - begin) / buffer.element_bytes;
  const Size last = (offset - begin + max(bytes, 1) - 1) / buffer.element_bytes;
  const char* const freed = held == nullptr ? ", which was freed" : "";
  if (first == last) return fmt::format("{}[{}] on PE {}{}", buffer.name, first, pe, freed);
  return fmt::format("{}[{}, {}) on PE {}{}", buffer.name, first, last + 1, pe, freed);
}

}  // namespace tandem
