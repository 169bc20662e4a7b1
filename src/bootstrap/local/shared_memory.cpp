#include "bootstrap/local/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bootstrap/protocol/socket.h"
#include "tandem/error.h"

namespace tandem::bootstrap {

namespace {

std::size_t whole_pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

/// Memory of a fixed size. A process that maps a file which shrinks would die of SIGBUS.
Fd make_memory(std::size_t bytes) {
  Fd memory(::memfd_create("tandem", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory || ::ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    throw_errno("shared memory of the host");
  return memory;
}

void check_memory(const Fd& memory, std::size_t bytes, int pe) {
  struct stat about {};
  if (::fstat(memory.get(), &about) != 0) throw_errno(fmt::format("PE {}'s shared memory", pe));
  if (static_cast<std::size_t>(about.st_size) != bytes)
    throw RuntimeFailure(fmt::format("PE {}'s shared memory: {} bytes given, needed are {}", pe, about.st_size, bytes));
  const int seals = ::fcntl(memory.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
    throw RuntimeFailure(fmt::format("PE {}'s shared memory: it is not sealed against shrinking", pe));
}

}  // namespace

SharedMemory::SharedMemory(FdExchange& exchange, const Team& team, std::size_t bytes)
    : members_(team.size), stride_(whole_pages(bytes)) {
  const Fd own = make_memory(stride_);
  const std::vector<std::vector<Fd>> others = exchange.exchange({own.get()}, team);
  for (int i = 0; i < members_; ++i)
    if (i != team.me) check_memory(others[static_cast<std::size_t>(i)].at(0), stride_, team.world_pe(i));
  void* const range = ::mmap(nullptr, all(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) throw_errno("shared memory of the host");
  base_ = static_cast<std::byte*>(range);
  for (int i = 0; i < members_; ++i) {
    const int fd = i == team.me ? own.get() : others[static_cast<std::size_t>(i)].at(0).get();
    if (::mmap(on(i), stride_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED) continue;
    const int why = errno;
    ::munmap(base_, all());
    errno = why;
    throw_errno("shared memory of another process");
  }
}

SharedMemory::~SharedMemory() { ::munmap(base_, all()); }

}  // namespace tandem::bootstrap
