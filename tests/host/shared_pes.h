#pragma once
/// PEs as threads that share one piece of memory, with nothing around the host engine. For programs that are compiled
/// with ThreadSanitizer from a few sources.

#include <sys/mman.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "host/grid.h"

namespace tandem::test {

template <int kPes>
class SharedPes {
 public:
  static constexpr Size kPartBytes = Size{16} << 20;
  static constexpr Size kWaitWordsBytes = 4096;

  SharedPes()
      : memory_(static_cast<std::byte*>(mmap(nullptr, kPes * kPartBytes, PROT_READ | PROT_WRITE,
                                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
    if (memory_ != MAP_FAILED) return;
    std::perror("memory of the PEs");
    std::exit(2);
  }
  ~SharedPes() { munmap(memory_, kPes * kPartBytes); }
  SharedPes(const SharedPes&) = delete;
  SharedPes& operator=(const SharedPes&) = delete;

  /// Returns the buffer at `offset` of each PE's part; the wait words come first.
  template <class T>
  Symm<T> symm(Size offset, int pe) const {
    return {reinterpret_cast<T*>(memory_ + offset), kPartBytes, pe};
  }
  Team team(int pe) const { return {0, 1, kPes, pe, kPes}; }
  cuda::Context context(int pe) {
    cuda::Context context;
    context.team = team(pe);
    context.abort_on_pe0 = reinterpret_cast<std::uint32_t*>(memory_);
    context.abort_stride = kPartBytes;
    context.abort = reinterpret_cast<std::uint32_t*>(memory_ + pe * kPartBytes);
    context.world_pes = kPes;
    context.world_pe = pe;
    context.report = &reports_[static_cast<std::size_t>(pe)];
    context.timeout_ns = context.arrival_timeout_ns = 60'000'000'000;
    return context;
  }
  /// A grid may be recorded, with a list for each block.
  void run_grid(int pe, int blocks, const std::function<void(cpu::Block&)>& body,
                host::GridRecords* records = nullptr) {
    host::GridRequest request;
    request.name = "grid";
    request.blocks = blocks;
    request.context = context(pe);
    request.body = body;
    request.has_multicast = true;
    request.records = records;
    host::run_grid(request);
  }
  bool gave_up(int pe) const { return reports_[static_cast<std::size_t>(pe)].set != 0; }

  /// Runs the program as each PE, on a thread each.
  template <class Program>
  static void on_all(const Program& program) {
    std::vector<std::thread> threads;
    threads.reserve(kPes);
    for (int pe = 0; pe < kPes; ++pe) threads.emplace_back([&program, pe] { program(pe); });
    for (std::thread& thread : threads) thread.join();
  }

 private:
  std::byte* memory_;
  std::array<cuda::WaitReport, kPes> reports_{};
};

}  // namespace tandem::test
