// Tutorial 04: five faults in the kernel of tutorial 02, and the findings. docs/tutorials/04_checker.md explains them.

#include <cstdio>
#include <exception>
#include <vector>

#include "tandem/check.h"

using namespace tandem;

enum class Fault { kNone, kNoReady, kPlainSignal, kNoWait, kNoSignal, kOutOfBounds };

// listing: kernel
template <Fault kFault>
struct Shift {
  struct Args {
    Symm<float> from, to;
    Signals ready, arrived;
    Epochs epochs;
    Size count;
    float* sum;  // of what this PE received
  };

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const int n = block.num_pes();
    const int next = (block.pe() + 1) % n;
    const Epoch epoch = block.next_epoch(a.epochs);
    const Size count = kFault == Fault::kOutOfBounds ? a.count + 1 : a.count;

    block.notify(a.ready, epoch, (block.pe() + n - 1) % n);
    if constexpr (kFault != Fault::kNoReady) block.wait(a.ready, 1, epoch);
    block.put(a.to, a.from.local(), count, next);
    if constexpr (kFault == Fault::kPlainSignal) block.signal(a.arrived, epoch, next);
    if constexpr (kFault != Fault::kPlainSignal && kFault != Fault::kNoSignal) block.notify(a.arrived, epoch, next);
    if constexpr (kFault != Fault::kNoWait) block.wait(a.arrived, 1, epoch);
    block.store_scalar(a.sum, block.sum(block.template load<float>(a.to.local(), Range{0, a.count})));
  }
};
// end of listing

// listing: check
constexpr Size kCount = 16;

template <Fault kFault>
CheckResult check_shift() {
  const auto setup = [](World& world) {
    SymmetricHeap& heap = world.heap();
    const typename Shift<kFault>::Args args{
        heap.allocate<float>(kCount, "from"), heap.allocate<float>(kCount, "to"), heap.signals(1, "ready"),
        heap.signals(1, "arrived"),           heap.epochs(1, "epochs"),           kCount,
        heap.allocate_local<float>(1, "sum")};
    const std::vector<float> ones(kCount, 1.0F);
    world.copy_in(args.from.local(), ones.data(), kCount * sizeof(float));
    return args;
  };
  return check_kernel<Shift<kFault>>({.blocks = 1}, setup, {.pes = 3, .schedules = 20, .stop_at_first = true});
}
// end of listing

/// Prints the kind of each finding and the buffer or signal where it was.
template <Fault kFault>
void print(const char* what) {
  const CheckResult result = check_shift<kFault>();
  std::printf("%s:%s\n", what, result.clean() ? " clean" : "");
  for (const Finding& finding : result.findings)
    std::printf("  %s: %s\n", finding.kind.c_str(), (finding.buffer.empty() ? finding.signal : finding.buffer).c_str());
}

int main() try {
  print<Fault::kNone>("no fault");
  print<Fault::kNoReady>("no wait for ready");
  print<Fault::kPlainSignal>("a plain signal after the put");
  print<Fault::kNoWait>("no wait for arrived");
  print<Fault::kNoSignal>("no signal after the put");
  print<Fault::kOutOfBounds>("one element too many");
  std::printf("\nthe finding of the plain signal, in full:\n%s", check_shift<Fault::kPlainSignal>().text().c_str());
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
