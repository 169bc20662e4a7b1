#pragma once
/// The memory of all PEs of a world on one host, at a constant stride, through the same exchange of descriptors that
/// the memory of GPUs takes.

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "bootstrap/fd_exchange.h"

namespace tandem::bootstrap::testing {

class SharedMemory {
 public:
  SharedMemory(FdExchange& exchange, const Team& team, std::size_t bytes) : team_(team), bytes_(bytes) {
    const Fd own(::memfd_create("tandem test", MFD_CLOEXEC));
    if (::ftruncate(own.get(), static_cast<off_t>(bytes)) != 0) throw std::runtime_error("ftruncate");
    std::vector<std::vector<Fd>> others = exchange.exchange({own.get()}, team);
    void* const range = ::mmap(nullptr, all(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) throw std::runtime_error("mmap");
    base_ = static_cast<std::byte*>(range);
    for (int i = 0; i < team.size; ++i) {
      const int fd = i == team.me ? own.get() : others[static_cast<std::size_t>(i)].at(0).get();
      if (::mmap(on(i), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
        throw std::runtime_error("mmap of a member's memory");
    }
  }
  ~SharedMemory() { ::munmap(base_, all()); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::uint64_t* on(int member) const {
    return reinterpret_cast<std::uint64_t*>(base_ + static_cast<std::size_t>(member) * bytes_);
  }

 private:
  std::size_t all() const { return bytes_ * static_cast<std::size_t>(team_.size); }

  Team team_;
  std::size_t bytes_;
  std::byte* base_ = nullptr;
};

/// Every member writes into everybody's memory, and everybody finds what all wrote, in its own and in the others'.
inline void share(Session& session, FdExchange& exchange, const Team& team) {
  constexpr std::size_t words = 512;
  const auto value = [](int from, int to, std::size_t word) {
    return std::uint64_t{1000003} * static_cast<std::uint64_t>(from * 64 + to) + word;
  };
  const auto members = static_cast<std::size_t>(team.size);
  const SharedMemory memory(exchange, team, members * words * sizeof(std::uint64_t));
  const auto slot = [&](int from, int to) { return memory.on(to) + static_cast<std::size_t>(from) * words; };
  for (int to = 0; to < team.size; ++to)
    for (std::size_t word = 0; word < words; ++word) slot(team.me, to)[word] = value(team.me, to, word);
  session.barrier("written", team);
  for (int to = 0; to < team.size; ++to)
    for (int from = 0; from < team.size; ++from)
      for (std::size_t word = 0; word < words; ++word)
        if (slot(from, to)[word] != value(from, to, word)) throw std::runtime_error("another value than was written");
  session.barrier("read", team);
}

}  // namespace tandem::bootstrap::testing
