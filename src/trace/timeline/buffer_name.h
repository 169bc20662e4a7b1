#pragma once
/// Names of buffers, from descriptions of places in them.

#include <string>

namespace tandem::trace {

/// "all_reduce ring arrived" of "all_reduce ring arrived[3] on PE 2" (HeapBook::describe); other texts as they are, and
/// nothing of memory that was not allocated.
inline std::string buffer_name(const std::string& description) {
  if (description.starts_with("unallocated memory")) return {};
  const std::size_t bracket = description.rfind('[');
  return description.substr(0, bracket);
}

}  // namespace tandem::trace
