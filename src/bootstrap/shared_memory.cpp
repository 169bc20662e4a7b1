#include "bootstrap/shared_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include "bootstrap/socket.h"

namespace tandem::bootstrap {

namespace {

std::size_t whole_pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

}  // namespace

SharedMemory::SharedMemory(FdExchange& exchange, const Team& team, std::size_t bytes)
    : members_(team.size), stride_(whole_pages(bytes)) {
  const Fd own(::memfd_create("tandem", MFD_CLOEXEC));
  if (!own) throw_errno("memfd_create");
  if (::ftruncate(own.get(), static_cast<off_t>(stride_)) != 0) throw_errno("shared memory of the host");
  const std::vector<std::vector<Fd>> others = exchange.exchange({own.get()}, team);
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
