/// Two PEs in two threads send data and a signal to each other, again and again. ThreadSanitizer reports a race if an
/// order is missing. The argument names the missing order:
///
///   order_program none|release|acquire|fence

#include <string>

#include "host/shared_pes.h"

namespace {

using namespace tandem;

using Pes = test::SharedPes<2>;

constexpr Size kCount = 1000;
constexpr Epoch kRounds = 50;

/// The contents of each PE's part behind its wait words.
struct Part {
  Signal arrived, released;
  std::uint32_t data[kCount];
};

template <class T>
Symm<T> symm(const Pes& pes, std::size_t offset, int pe) {
  return pes.symm<T>(Pes::kWaitWordsBytes + static_cast<Size>(offset), pe);
}

struct Program {
  Pes& pes;
  std::string left_out;

  void send(cpu::Block& block, Epoch e, int to) const {
    const auto data = symm<std::uint32_t>(pes, offsetof(Part, data), block.pe());
    const auto arrived = symm<Signal>(pes, offsetof(Part, arrived), block.pe());
    for (const Range tile : block.tiles<std::uint32_t>({0, kCount}))
      block.store(data.on(to), tile, cpu::Fragment<std::uint32_t>::filled(tile.size(), static_cast<std::uint32_t>(e)));
    if (e % 2 == 0 && left_out != "fence") block.fence();
    if (e % 2 == 0 || left_out == "release")
      block.signal(arrived, e, to);
    else
      block.notify(arrived, e, to);
  }
  std::uint32_t receive(cpu::Block& block, Epoch e) const {
    const auto data = symm<std::uint32_t>(pes, offsetof(Part, data), block.pe());
    const auto arrived = symm<Signal>(pes, offsetof(Part, arrived), block.pe());
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
    std::uint32_t wrong = 0;
    pes.run_grid(pe, 1, [&](cpu::Block& block) {
      const auto released = symm<Signal>(pes, offsetof(Part, released), pe);
      for (Epoch e = 1; e <= kRounds; ++e) {
        block.wait(released, 1, e - 1);
        send(block, e, 1 - pe);
        wrong += receive(block, e);
        block.signal_after_reads(released, e, 1 - pe);
      }
    });
    if (wrong != 0 || pes.gave_up(pe)) std::printf("PE %d: %u words wrong\n", pe, wrong);
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  Pes pes;
  const Program program{pes, argv[1]};
  Pes::on_all([&](int pe) { program.run(pe); });
  std::puts("done");
  return 0;
}
