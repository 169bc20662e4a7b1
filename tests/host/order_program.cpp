/// Data and a signal from one PE to another and back, over and over, on PEs in two threads: built with ThreadSanitizer,
/// which reports a race where an order is missing. The argument names the order that is left out:
///
///   order_program none|release|acquire|fence

#include <sys/mman.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include "host/grid.h"

namespace {

using namespace tandem;

constexpr int kPes = 2;
constexpr Size kPart = Size{1} << 20;
constexpr Size kCount = 1000;
constexpr Epoch kRounds = 50;

/// Of each PE's part: the wait words, then this.
struct Part {
  Signal arrived, released;
  std::uint32_t data[kCount];
};
constexpr Size kPartBegin = 4096;

struct Program {
  std::byte* memory;
  std::string left_out;

  template <class T>
  Symm<T> symm(std::size_t offset, int pe) const {
    return {reinterpret_cast<T*>(memory + kPartBegin + offset), kPart, pe};
  }
  cuda::Context context(int pe, cuda::WaitReport& report) const {
    cuda::Context context;
    context.team = {0, 1, kPes, pe, kPes};
    context.abort_on_pe0 = reinterpret_cast<std::uint32_t*>(memory);
    context.abort_stride = kPart;
    context.abort = reinterpret_cast<std::uint32_t*>(memory + pe * kPart);
    context.world_pes = kPes;
    context.world_pe = pe;
    context.report = &report;
    context.timeout_ns = context.arrival_timeout_ns = 60'000'000'000;
    return context;
  }

  void send(cpu::Block& block, Epoch e, int to) const {
    const auto data = symm<std::uint32_t>(offsetof(Part, data), block.pe());
    const auto arrived = symm<Signal>(offsetof(Part, arrived), block.pe());
    for (const Range tile : block.tiles<std::uint32_t>({0, kCount}))
      block.store(data.on(to), tile, cpu::Fragment<std::uint32_t>::filled(tile.size(), static_cast<std::uint32_t>(e)));
    if (e % 2 == 0 && left_out != "fence") block.fence();
    if (e % 2 == 0 || left_out == "release")
      block.signal(arrived, e, to);
    else
      block.notify(arrived, e, to);
  }
  std::uint32_t receive(cpu::Block& block, Epoch e) const {
    const auto data = symm<std::uint32_t>(offsetof(Part, data), block.pe());
    const auto arrived = symm<Signal>(offsetof(Part, arrived), block.pe());
    if (left_out == "acquire") {
      while (block.load_scalar(&arrived.local()->value) < e) {
      }
    } else {
      block.wait(arrived, 1, e);
    }
    std::uint32_t wrong = 0;
    for (const Range tile : block.tiles<std::uint32_t>({0, kCount}))
      wrong += block.sum(
          block.load<std::uint32_t>(data.local(), tile).map([e](std::uint32_t x) { return x == e ? 0U : 1U; }));
    return wrong;
  }

  void run(int pe) const {
    cuda::WaitReport report{};
    host::GridRequest request;
    request.name = "order";
    request.context = context(pe, report);
    std::uint32_t wrong = 0;
    request.body = [&](cpu::Block& block) {
      const auto released = symm<Signal>(offsetof(Part, released), pe);
      for (Epoch e = 1; e <= kRounds; ++e) {
        block.wait(released, 1, e - 1);
        send(block, e, 1 - pe);
        wrong += receive(block, e);
        block.signal_after_reads(released, e, 1 - pe);
      }
    };
    host::run_grid(request);
    if (wrong != 0 || report.set != 0) std::printf("PE %d: %u words wrong\n", pe, wrong);
  }
};

}  // namespace

int main(int argc, char** argv) {
  void* const memory = mmap(nullptr, kPes * kPart, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || argc != 2) return 2;
  const Program program{static_cast<std::byte*>(memory), argv[1]};
  std::thread other([&] { program.run(1); });
  program.run(0);
  other.join();
  std::puts("done");
  return 0;
}
