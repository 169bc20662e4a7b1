#pragma once
/// Memory files that a program has made and mapped itself (memfd_create), which it may register with a world.

#include <string>

#include "bootstrap/protocol/fd.h"
#include "tandem/range.h"

namespace tandem::host {

struct MemoryFile {
  bootstrap::Fd file;
  Size bytes = 0;             ///< its size
  std::byte* base = nullptr;  ///< the address at which the program has mapped the whole file
  std::string problem;        ///< why other processes cannot map it; empty: they can
};

/// Finds the memory file that is mapped at the address, and seals it against shrinking. A process that reads beyond the
/// end of a file dies of SIGBUS.
MemoryFile memory_file_at(const void* address);

}  // namespace tandem::host
