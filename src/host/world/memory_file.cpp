#include "host/world/memory_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>

namespace tandem::host {

namespace {

using bootstrap::Fd;

/// One line of /proc/self/maps.
struct Mapping {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  Size offset = 0;  ///< of `begin` in the file
  dev_t device = 0;
  ino_t inode = 0;
};

std::optional<Mapping> shared_mapping_at(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0, offset = 0, inode = 0;
    unsigned major = 0, minor = 0;
    char access[5] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s %lx %x:%x %lu", &begin, &end, access, &offset, &major, &minor, &inode) !=
        7)
      continue;
    if (at < begin || at >= end) continue;
    if (std::string(access).substr(0, 2) != "rw" || access[3] != 's') break;
    return Mapping{begin, end, static_cast<Size>(offset), makedev(major, minor), inode};
  }
  return std::nullopt;
}

bool is_open_file_of(const Mapping& mapping, int descriptor, struct stat& about) {
  return ::fstat(descriptor, &about) == 0 && about.st_dev == mapping.device && about.st_ino == mapping.inode &&
         (::fcntl(descriptor, F_GETFL) & O_ACCMODE) == O_RDWR;
}

/// Returns a copy of the program's own descriptor, if it has one.
Fd file_of(const Mapping& mapping, struct stat& about) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const std::string name = entry.path().filename();
    int descriptor = -1;
    std::from_chars(name.data(), name.data() + name.size(), descriptor);
    if (is_open_file_of(mapping, descriptor, about)) return Fd(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  }
  return {};
}

bool seal_against_shrinking(const Fd& file) {
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  return seals >= 0 && ((seals & F_SEAL_SHRINK) != 0 || ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK) == 0);
}

}  // namespace

MemoryFile memory_file_at(const void* address) {
  MemoryFile found;
  const auto mapping = shared_mapping_at(address);
  if (!mapping) {
    found.problem = "it is not from a symmetric heap, and not in a shared mapping of a memory file (memfd_create)";
    return found;
  }
  struct stat about {};
  found.file = file_of(*mapping, about);
  found.bytes = about.st_size;
  found.base = reinterpret_cast<std::byte*>(mapping->begin);
  const Size page = ::sysconf(_SC_PAGESIZE);
  if (!found.file)
    found.problem = "no descriptor of its file is open for reading and writing";
  else if (found.bytes % page != 0)
    found.problem = fmt::format("its file has {} bytes, allowed are multiples of {}", found.bytes, page);
  else if (mapping->offset != 0 || static_cast<Size>(mapping->end - mapping->begin) != found.bytes)
    found.problem = "its file is not mapped as a whole at one address";
  else if (!seal_against_shrinking(found.file))
    found.problem = "its file cannot be sealed against shrinking (memfd_create with MFD_ALLOW_SEALING)";
  return found;
}

}  // namespace tandem::host
