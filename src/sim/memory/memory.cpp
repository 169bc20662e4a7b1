#include "sim/memory/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <limits>

#include "tandem/error.h"

namespace tandem::sim {

namespace {

/// Bytes of addresses that each PE may take.
Size share_of_addresses(int pes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::numeric_limits<Size>::max();
  return static_cast<Size>(limit.rlim_cur) / 2 / pes;
}

/// Packets that do not fit lie with the data on GPUs, which phantom runs do not have. So there the control part grows
/// with the number of PEs, within a limit for all of them. Pages that nobody touches take no memory.
Size control_bytes(int pes, bool phantom) {
  constexpr Size kPesOfNode = 8, kMostOfAll = Size{4} << 40;
  const Size parts = phantom ? min(ceil_div(pes, kPesOfNode), kMostOfAll / (HeapAllocator::kControlBytes * pes)) : 1;
  return HeapAllocator::kControlBytes * max(parts, 1);
}

HeapAllocator make_allocator(int pes, bool phantom, Size data_bytes, Size limit_bytes, bool guarded) {
  constexpr Size kPage = 4096;
  const Size share = share_of_addresses(pes) / HeapAllocator::kGrain * HeapAllocator::kGrain;
  const Size control = min(control_bytes(pes, phantom), max(share / 8 / kPage * kPage, kPage));
  const Size data = max(share - control, kPage);
  return {pes, min(data_bytes, data), min(limit_bytes, data), guarded, control};
}

}  // namespace

Memory::Memory(int pes, bool phantom, Size data_bytes, Size limit_bytes, bool guarded)
    : allocator_(make_allocator(pes, phantom, data_bytes, limit_bytes, guarded)),
      filled_pes_(pes),
      phantom_(phantom),
      stride_(allocator_.most_bytes()),
      there_(phantom ? allocator_.control_bytes() : allocator_.range_bytes()) {
  const auto total = static_cast<std::size_t>(stride_) * static_cast<std::size_t>(pes);
  // Memory that may grow has closed pages, so the pool does not pass it on.
  if (!can_grow()) base_ = MappingPool::take(use(), total);
  if (base_ != nullptr) return;
  void* const memory = mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw OutOfMemory(fmt::format("simulated memory: no address range of {} bytes for {} PEs with {} bytes each: {}",
                                  total, pes, stride_, std::strerror(errno)));
  base_ = static_cast<std::byte*>(memory);
  try {
    open(0, there_);
  } catch (...) {
    munmap(base_, total);
    throw;
  }
}

namespace {

/// Why a range cannot be opened; each PE's range is a mapping of its own, whose number the system limits.
std::string reason_for(int error) {
  const std::string reason = std::strerror(error);
  return error == ENOMEM ? reason + " (each PE takes two mappings; vm.max_map_count limits them)" : reason;
}

}  // namespace

/// Lets every PE's range be read and written there.
void Memory::open(Size offset, Size bytes) const {
  for (int pe = 0; pe < pes(); ++pe)
    if (mprotect(base_ + pe * stride_ + offset, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE) != 0)
      throw OutOfMemory(fmt::format("simulated memory: {} bytes of PE {}: {}", bytes, pe, reason_for(errno)));
}

Memory::~Memory() {
  const auto total = static_cast<std::size_t>(stride_) * static_cast<std::size_t>(pes());
  if (can_grow())
    munmap(base_, total);
  else
    MappingPool::give(use(), {base_, total});
}

/// Gives whole pages back, which are zeros when they are touched again. Many PEs have packets for each other, of which
/// they use few.
void Memory::clear(std::byte* begin, Size bytes) {
  constexpr Size kPage = 4096;
  std::byte* const end = begin + bytes;
  const auto up = [](std::byte* at) { return at + (kPage - reinterpret_cast<std::uintptr_t>(at) % kPage) % kPage; };
  std::byte* const first = up(begin);
  const Size whole = end > first ? (end - first) / kPage * kPage : 0;
  if (whole < kLeastGivenBack || madvise(first, static_cast<std::size_t>(whole), MADV_DONTNEED) != 0) {
    std::memset(begin, 0, static_cast<std::size_t>(bytes));
    return;
  }
  std::memset(begin, 0, static_cast<std::size_t>(first - begin));
  std::memset(first + whole, 0, static_cast<std::size_t>(end - first - whole));
}

void Memory::fill(int pe, MemoryKind kind, Size offset, Size bytes) const {
  if (on_fill) on_fill(base_ + pe * stride_ + offset, bytes);
  if (kind == MemoryKind::kData && phantom_) return;
  if (kind == MemoryKind::kControl)
    clear(base_ + pe * stride_ + offset, bytes);
  else
    std::memset(base_ + pe * stride_ + offset, 0xFF, static_cast<std::size_t>(bytes));
}

std::byte* Memory::allocate_symmetric(int pe, MemoryKind kind, Size bytes, const std::string& name,
                                      Size element_bytes) {
  if (const Size more = kind == MemoryKind::kData ? allocator_.growth_for(pe, bytes) : 0) {
    if (!phantom_) open(there_, more);
    there_ += more;
    allocator_.grow(more);
  }
  const std::size_t before = allocator_.symmetric_requests();
  const Size offset = allocator_.allocate_symmetric(pe, kind, bytes, name, element_bytes);
  // All copies are filled at once: a late PE must not overwrite data that others have sent to it.
  for (int each = 0; allocator_.symmetric_requests() > before && each < filled_pes_; ++each)
    fill(each, kind, offset, bytes);
  return base_ + offset;
}

std::byte* Memory::allocate_local(int pe, MemoryKind kind, Size bytes, const std::string& name, Size element_bytes) {
  const Size offset = allocator_.allocate_local(pe, kind, bytes, name, element_bytes);
  if (pe < filled_pes_) fill(pe, kind, offset, bytes);
  return base_ + pe * stride_ + offset;
}

Size Memory::own_offset(int pe, const void* memory) const {
  if (!owns(memory) || pe_of(memory) != pe)
    throw InvalidArgument(fmt::format("free: {} is not memory of PE {}", memory, pe));
  return offset_of(memory);
}

std::string Memory::describe_range(const void* address, Size bytes) const {
  return owns(address) ? allocator_.describe_range(pe_of(address), offset_of(address), bytes) : describe(address);
}

std::string Memory::describe_size(const void* address) const {
  const auto bytes = owns(address) ? allocator_.bytes_from(pe_of(address), offset_of(address)) : std::nullopt;
  return bytes ? fmt::format(" (the buffer has {} bytes from there)", *bytes) : "";
}

std::string Memory::describe(const void* address) const {
  return owns(address) ? allocator_.describe(pe_of(address), offset_of(address))
                       : "memory outside of the simulated PEs";
}

}  // namespace tandem::sim
