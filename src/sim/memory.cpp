#include "sim/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tandem/error.h"

namespace tandem::sim {

namespace {
constexpr Size kAlignment = 256;
constexpr Size kPage = 4096;
}  // namespace

Memory::Memory(int pes, bool phantom, Size data_bytes)
    : pes_(pes), phantom_(phantom), data_bytes_(round_up(data_bytes, kPage)), stride_(kControlBytes + data_bytes_) {
  const auto total = static_cast<std::size_t>(stride_) * static_cast<std::size_t>(pes_);
  void* const memory = mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw OutOfMemory(fmt::format("simulated memory: no address range of {} bytes for {} PEs with {} bytes each: {}",
                                  total, pes_, stride_, std::strerror(errno)));
  base_ = static_cast<std::byte*>(memory);
  for (int pe = 0; pe < pes_; ++pe)
    mprotect(base_ + pe * stride_, static_cast<std::size_t>(phantom_ ? kControlBytes : stride_), PROT_READ | PROT_WRITE);
  clear();
}

Memory::~Memory() { munmap(base_, static_cast<std::size_t>(stride_) * static_cast<std::size_t>(pes_)); }

void Memory::clear() {
  for (const MemoryKind kind : {MemoryKind::kControl, MemoryKind::kData}) {
    const int k = static_cast<int>(kind);
    parts_[k] = {0, capacity(kind)};
    local_top_[k].assign(static_cast<std::size_t>(pes_), capacity(kind));
  }
  requests_.clear();
  next_request_.assign(static_cast<std::size_t>(pes_), 0);
  symmetric_.clear();
  local_.assign(static_cast<std::size_t>(pes_), {});
}

void Memory::exhausted(MemoryKind kind, int pe, const std::string& name, Size bytes, Size left) const {
  throw OutOfMemory(fmt::format("PE {}: no room for '{}': {} bytes asked, {} of {} bytes of {} memory left", pe, name,
                                bytes, left, capacity(kind), kind == MemoryKind::kControl ? "control" : "data"));
}

void Memory::fill(int pe, MemoryKind kind, Size offset, Size bytes) const {
  if (kind == MemoryKind::kData && phantom_) return;
  std::memset(base_ + pe * stride_ + offset, kind == MemoryKind::kControl ? 0 : 0xFF, static_cast<std::size_t>(bytes));
}

std::byte* Memory::allocate_symmetric(int pe, MemoryKind kind, Size bytes, const std::string& name,
                                      Size element_bytes) {
  if (bytes < 0)
    throw InvalidArgument(fmt::format("allocation '{}': size is {} bytes, must not be negative", name, bytes));
  std::size_t& next = next_request_[static_cast<std::size_t>(pe)];
  if (next == requests_.size()) {
    Part& part = parts_[static_cast<int>(kind)];
    const Size reserved = round_up(std::max<Size>(bytes, 1), kAlignment);
    if (part.bottom + reserved > part.top) exhausted(kind, pe, name, bytes, part.top - part.bottom);
    const Size offset = base_of(kind) + part.bottom;
    part.bottom += reserved;
    requests_.push_back({kind, bytes, name, offset});
    symmetric_[offset] = {name, offset, bytes, element_bytes};
  }
  const Request& request = requests_[next++];
  if (request.kind != kind || request.bytes != bytes || request.name != name)
    throw InvalidArgument(
        fmt::format("symmetric allocation number {}: PE {} asks for '{}' of {} bytes, another PE asked for '{}' of {} "
                    "bytes; all PEs must allocate the same in the same order",
                    next, pe, name, bytes, request.name, request.bytes));
  fill(pe, kind, request.offset, bytes);
  return base_ + request.offset;
}

std::byte* Memory::allocate_local(int pe, MemoryKind kind, Size bytes, const std::string& name, Size element_bytes) {
  if (bytes < 0)
    throw InvalidArgument(fmt::format("allocation '{}': size is {} bytes, must not be negative", name, bytes));
  Part& part = parts_[static_cast<int>(kind)];
  Size& top = local_top_[static_cast<int>(kind)][static_cast<std::size_t>(pe)];
  const Size reserved = round_up(std::max<Size>(bytes, 1), kAlignment);
  if (top - reserved < part.bottom) exhausted(kind, pe, name, bytes, top - part.bottom);
  top -= reserved;
  part.top = std::min(part.top, top);
  const Size offset = base_of(kind) + top;
  local_[static_cast<std::size_t>(pe)][offset] = {name, offset, bytes, element_bytes};
  fill(pe, kind, offset, bytes);
  return base_ + pe * stride_ + offset;
}

bool Memory::owns(const void* address) const {
  return as_byte(address) >= base_ && as_byte(address) < base_ + stride_ * pes_;
}

Memory::Buffer Memory::buffer_of(const void* address) const {
  if (!owns(address)) return {};
  const int pe = pe_of(address);
  const Size offset = as_byte(address) - base_ - pe * stride_;
  for (const auto* buffers : {&symmetric_, &local_[static_cast<std::size_t>(pe)]}) {
    auto after = buffers->upper_bound(offset);
    if (after == buffers->begin()) continue;
    const Buffer& buffer = std::prev(after)->second;
    if (offset < buffer.offset + std::max<Size>(buffer.bytes, 1)) return buffer;
  }
  return {};
}

std::string Memory::describe(const void* address) const {
  if (!owns(address)) return "memory outside of the simulated PEs";
  const Buffer buffer = buffer_of(address);
  const int pe = pe_of(address);
  const Size offset = as_byte(address) - base_ - pe * stride_;
  if (buffer.name.empty()) return fmt::format("unallocated memory at offset {} on PE {}", offset, pe);
  return fmt::format("{}[{}] on PE {}", buffer.name, (offset - buffer.offset) / buffer.element_bytes, pe);
}

}  // namespace tandem::sim
