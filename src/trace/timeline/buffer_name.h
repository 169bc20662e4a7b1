#pragma once
/// Names of buffers, taken from descriptions of places in them.

#include <string>

namespace tandem::trace {

/// Returns "all_reduce ring arrived" for "all_reduce ring arrived[3] on PE 2" (HeapAllocator::describe). Returns other
/// texts unchanged, and "" for memory that was not allocated.
inline std::string buffer_name(const std::string& description) {
  if (description.starts_with("unallocated memory")) return {};
  const std::size_t bracket = description.rfind('[');
  return description.substr(0, bracket);
}

}  // namespace tandem::trace
