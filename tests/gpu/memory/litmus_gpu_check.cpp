// Litmus tests, on this machine's GPUs, of the orderings that the programming model promises. It also tests operations
// of the block whose results the host knows. It prints failures, and "N passed, N failed". The exit code is 1 if
// anything failed.
//
//   litmus_gpu_check [ROUNDS [PES]]    rounds of each litmus test (20000)

#include <cstdio>
#include <cstdlib>

#include "gpu/counted_check.h"
#include "gpu/graph.h"
#include "gpu/memory/litmus_device.h"
#include "gpu/memory/litmus_kernels.h"
#include "support/block_cases.h"

namespace tandem::test {

namespace {

constexpr int kBlocks = 8;
constexpr Size kWords = 20'000;  // of a block

LitmusArgs litmus_args(World& world, int rounds) {
  LitmusArgs args{};
  args.data = world.heap().allocate<std::uint32_t>(kBlocks * kWords, "data");
  const Size packets = 2 * kBlocks * packets_for<LLPacket>(kWords * 4);
  args.packets = world.heap().allocate<LLPacket>(packets, "packets");
  args.lines = world.heap().allocate<LL128Line>(2 * kBlocks * (packets_for<LL128Line>(kWords * 4) + 8), "lines");
  args.base = local_words(world, "base", base_words(0, kWords));  // the same on all PEs
  args.differences = local_words(world, "differences", Words(kBlocks * kWords));
  args.arrived = world.heap().signals(kBlocks, "arrived");
  args.released = world.heap().signals(kBlocks, "released");
  args.epochs = world.heap().epochs(kBlocks, "epochs");
  args.count = kWords;
  args.rounds = rounds;
  return args;
}

template <class Kernel>
void litmus(const char* what, int pes, int rounds) {
  check(what, pes, [=](World& world) {
    const LitmusArgs args = litmus_args(world, rounds / 10);
    Stream stream = world.make_stream("main");
    world.barrier();
    for (int i = 0; i < 10; ++i) stream.launch<Kernel>({kBlocks, 512}, args);
    stream.synchronize();
    return count_wrong(world, args.differences, kBlocks * kWords);
  });
}

/// A copy and a signal by copy engine, in one captured graph that is replayed; read by loads or by the tensor-memory
/// engine.
void litmus_copy(bool by_tma, int pes, int rounds) {
  check(by_tma ? "copy engine and signal, consume_token, then TMA" : "copy engine and signal", pes, [=](World& world) {
    LitmusArgs args = litmus_args(world, 1);
    if (by_tma) args.count = 8000;
    Stream stream = world.make_stream("main");
    Stream copies = world.make_stream("copies");
    const int next = (world.pe() + 1) % world.num_pes();
    std::uint32_t* const outgoing = PutSignal::scratch(args, 0);
    constexpr int kCalls = 10;
    Graph graph(static_cast<cudaStream_t>(stream.native()), [&] {
      for (int i = 0; i < kCalls; ++i) {
        stream.launch<FillForCopy>({1, 512}, args);
        copies.wait_for(stream);
        copies.copy_async(args.data.on(next), outgoing, args.count * 4);
        copies.write_signal_from(args.arrived.on(next), args.epochs.words);
        if (by_tma)
          launch_tma_reader(static_cast<cudaStream_t>(stream.native()), args.arrived.local(), args.epochs.words,
                            args.data.local(), args.base, args.differences, static_cast<int>(args.count));
        else
          stream.launch<Copied>({8, 512}, args);
        stream.wait_for(copies);
      }
    });
    world.barrier();
    for (int i = 0; i < rounds / 10 / kCalls; ++i) graph.launch();
    stream.synchronize();
    return count_wrong(world, args.differences, args.count);
  });
}

/// The cases that the simulator runs too.
void check_block(int pes) {
  check("block: sums, packets passed on, scalars, also by roles", pes, [](World& world) {
    Size wrong = 0;
    each_block_case([&](auto type) {
      using Case = typename decltype(type)::type;
      const Size wrong_here = Case::wrong(world);
      if (wrong_here > 0)
        std::printf("block: PE %d: %s: %lld words wrong\n", world.pe(), std::string(type_name<Case>()).c_str(),
                    static_cast<long long>(wrong_here));
      wrong += wrong_here;
    });
    return wrong;
  });
}

int check_all(int rounds, int pes) {
  if (cuda_devices() == 0) {
    std::printf("no GPU\n");
    return 2;
  }
  if (pes == 0) pes = cuda_devices();
  register_litmus_kernels();
  litmus<StoreNotify>("stores, notify; wait, loads", pes, rounds);
  litmus<StoreFenceSignal>("stores, fence, signal; signal_test, loads", pes, rounds);
  litmus<PutSignal>("put_signal; signal_wait_until, loads", pes, rounds);
  litmus<Packets<LLPacket>>("LL packets", pes, rounds);
  litmus<Packets<LL128Line>>("LL128 lines", pes, rounds);
  if (pes > 2) litmus<Transitive>("stores, notify, through a third PE", pes, rounds);
  check_block(pes);
  if (pes <= cuda_devices()) {
    litmus_copy(false, pes, rounds);
    litmus_copy(true, pes, rounds);
  }
  return finish();
}

}  // namespace

}  // namespace tandem::test

int main(int argc, char** argv) {
  const auto number = [&](int i, int otherwise) { return argc > i ? std::atoi(argv[i]) : otherwise; };
  return tandem::test::check_all(number(1, 20'000), number(2, 0));
}
