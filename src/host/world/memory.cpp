#include "host/world/memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "bootstrap/protocol/fd.h"
#include "host/world/available_memory.h"
#include "host/world/memory_file.h"
#include "tandem/error.h"

namespace tandem::host {

namespace {

using bootstrap::Fd;
using world::Chunk;
using world::Handles;
using world::Holder;
using world::MemoryHandle;

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr int kNoMemory = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

int descriptor_of(MemoryHandle handle) { return static_cast<int>(handle); }
MemoryHandle handle_of(Fd fd) { return static_cast<MemoryHandle>(fd.release()); }

Fd copy_of(int descriptor) {
  Fd copy(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  if (!copy) throw RuntimeFailure(fmt::format("shared memory of the host: {}", std::strerror(errno)));
  return copy;
}

/// The holder of an address in a memory file of the program's own.
Holder holder_in_file(std::byte* at) {
  MemoryFile own = memory_file_at(at);
  Holder holder;
  holder.problem = std::move(own.problem);
  if (!holder.problem.empty()) return holder;
  holder.chunk = {handle_of(std::move(own.file)), own.bytes};
  holder.base = own.base;
  holder.is_retained = true;
  return holder;
}

/// A larger file would end the process by a signal.
void check_file_size(Size bytes) {
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  if (limit.rlim_cur != RLIM_INFINITY && static_cast<rlim_t>(bytes) > limit.rlim_cur)
    throw OutOfMemory(
        fmt::format("symmetric heap: {} bytes asked for, files of this process have at most {} (ulimit -f)", bytes,
                    limit.rlim_cur));
}

/// Bytes of a range that have memory, in whole pages.
Size resident(std::byte* at, Size bytes) {
  const Size page = ::sysconf(_SC_PAGESIZE);
  auto* const begin = at - reinterpret_cast<std::uintptr_t>(at) % static_cast<std::uintptr_t>(page);
  const Size whole = at + bytes - begin;
  std::vector<unsigned char> pages(static_cast<std::size_t>(ceil_div(whole, page)));
  if (::mincore(begin, static_cast<std::size_t>(whole), pages.data()) != 0) return 0;
  Size there = 0;
  for (const unsigned char one : pages) there += (one & 1) * page;
  return there;
}

}  // namespace

/// As on GPUs, so that heaps have the same sizes.
Size HostMemory::granularity(int, Handles) { return Size{2} << 20; }

MemoryHandle HostMemory::create(int, Handles, Size bytes) {
  check_file_size(bytes);
  // It keeps its size: a process that maps a file that shrinks dies of SIGBUS.
  Fd memory(::memfd_create("tandem heap", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory || ::ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(memory.get(), F_ADD_SEALS, kSeals) != 0)
    throw OutOfMemory(fmt::format("symmetric heap: {} bytes of shared memory asked for: {}", bytes,
                                  errno == EMFILE ? "too many open files (ulimit -n)" : std::strerror(errno)));
  return handle_of(std::move(memory));
}

void HostMemory::release(MemoryHandle handle) noexcept { ::close(descriptor_of(handle)); }

std::byte* HostMemory::reserve(Size bytes) {
  void* const range = ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_NONE, kNoMemory, -1, 0);
  if (range == MAP_FAILED)
    throw OutOfMemory(
        fmt::format("symmetric heap: {} bytes of addresses asked for, for all PEs: {} (ulimit -v; heap_limit_bytes)",
                    bytes, std::strerror(errno)));
  return static_cast<std::byte*>(range);
}

void HostMemory::give_back(std::byte* addresses, Size bytes) noexcept {
  ::munmap(addresses, static_cast<std::size_t>(bytes));
}

void HostMemory::map(std::byte* at, const Chunk& chunk) {
  if (::mmap(at, static_cast<std::size_t>(chunk.bytes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
             descriptor_of(chunk.handle), 0) == MAP_FAILED)
    throw RuntimeFailure(fmt::format("mapping shared memory of the host: {}", std::strerror(errno)));
  const std::lock_guard lock(mutex_);
  mapped_[at] = chunk;
}

void HostMemory::unmap(std::byte* at, Size bytes) noexcept {
  static_cast<void>(::mmap(at, static_cast<std::size_t>(bytes), PROT_NONE, kNoMemory | MAP_FIXED, -1, 0));
  const std::lock_guard lock(mutex_);
  mapped_.erase(at);
}

void HostMemory::commit(std::byte* at, Size bytes) {
  const AvailableMemory left = available_memory();
  if (bytes <= left.bytes) return;
  if (const Size more = bytes - resident(at, bytes); more > left.bytes)
    throw OutOfMemory(
        fmt::format("symmetric heap: {} bytes of memory are needed, {} {} are left", more, left.bytes, left.limit));
}

std::string HostMemory::lacks(int, Handles handles) {
  return handles == Handles::kDescriptors ? "" : "memory of CPUs has none";
}

int HostMemory::export_descriptor(MemoryHandle handle) { return copy_of(descriptor_of(handle)).release(); }

MemoryHandle HostMemory::import_descriptor(int descriptor, Size bytes) {
  struct stat about {};
  if (::fstat(descriptor, &about) != 0)
    throw RuntimeFailure(fmt::format("another process's shared memory: {}", std::strerror(errno)));
  if (about.st_size != bytes)
    throw RuntimeFailure(
        fmt::format("another process's shared memory: {} bytes given, needed are {}", about.st_size, bytes));
  const int seals = ::fcntl(descriptor, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
    throw RuntimeFailure("another process's shared memory: it is not sealed against shrinking");
  return handle_of(copy_of(descriptor));
}

Bytes HostMemory::export_fabric(MemoryHandle) { throw Unsupported("fabric handles: memory of CPUs has none"); }
MemoryHandle HostMemory::import_fabric(View) { throw Unsupported("fabric handles: memory of CPUs has none"); }

Holder HostMemory::holder_of(void* address) {
  auto* const at = static_cast<std::byte*>(address);
  const std::lock_guard lock(mutex_);
  auto found = mapped_.upper_bound(at);
  if (found != mapped_.begin()) --found;
  if (found == mapped_.end() || at < found->first || at >= found->first + found->second.bytes)
    return holder_in_file(at);
  Holder holder;
  holder.chunk = {handle_of(copy_of(descriptor_of(found->second.handle))), found->second.bytes};
  holder.base = found->first;
  holder.is_retained = true;
  return holder;
}

}  // namespace tandem::host
