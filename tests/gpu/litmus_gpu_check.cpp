// Litmus tests of the orderings that the programming model promises, and a stress test of the collectives, on the GPUs
// that it finds. Prints what fails, and "N passed, N failed"; exit code 1 if anything failed.
//
//   litmus_gpu_check [ROUNDS [CALLS [PES]]]    rounds of each litmus test (20000); calls of each algorithm (2000)

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gpu/graph.h"
#include "gpu/litmus_device.h"
#include "gpu/litmus_kernels.h"
#include "gpu/stress_kernels.h"
#include "support/collective_values.h"
#include "tandem/collectives.h"
#include "tandem/cuda.h"
#include "tandem/error.h"

namespace tandem::test {

namespace {

int passed = 0;
int failed = 0;

using Words = std::vector<std::uint32_t>;

/// Runs `program` on every PE, with its count of wrong words as the result.
void check(const std::string& what, int pes, const std::function<Size(World&)>& program) {
  std::string problem;
  std::atomic<Size> wrong{0};
  try {
    CudaOptions options;
    options.heap_bytes = Size{512} << 20;
    options.timeout_s = 10;
    CudaThreads threads(pes, options);
    threads.run([&](World& world) { wrong += program(world); });
    if (wrong > 0) problem = fmt::format("{} words wrong", wrong.load());
  } catch (const std::exception& error) {
    problem = error.what();
  }
  ++(problem.empty() ? passed : failed);
  std::printf("%s %s, %d PEs%s%s\n", problem.empty() ? "ok    " : "FAILED", what.c_str(), pes,
              problem.empty() ? "" : ": ", problem.c_str());
  std::fflush(stdout);
}

std::uint32_t base_word(int pe, Size i) { return static_cast<std::uint32_t>(mix(7, 8, pe, i)); }

Words base_words(int pe, Size count) {
  Words words(static_cast<std::size_t>(count));
  for (Size i = 0; i < count; ++i) words[static_cast<std::size_t>(i)] = base_word(pe, i);
  return words;
}

std::uint32_t* local_words(World& world, const char* name, const Words& contents) {
  const auto count = static_cast<Size>(contents.size());
  auto* const words = world.heap().allocate_local<std::uint32_t>(count, name);
  world.copy_in(words, contents.data(), count * 4);
  return words;
}

Size count_wrong(World& world, const std::uint32_t* differences, Size count) {
  Words words(static_cast<std::size_t>(count));
  world.copy_out(words.data(), differences, count * 4);
  return static_cast<Size>(std::count_if(words.begin(), words.end(), [](std::uint32_t word) { return word != 0; }));
}

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

/// What PE `me` must have at index i of its result in call 0, and what every further call adds.
struct Expected {
  Collective collective;
  Size count;
  int pes;

  std::uint32_t at(int me, Size i) const {
    const auto sum = [&](Size index) {
      std::uint32_t total = 0;
      for (int pe = 0; pe < pes; ++pe) total += base_word(pe, index);
      return total;
    };
    switch (collective) {
      case Collective::kAllReduce:
      case Collective::kReduce:
        return sum(i);
      case Collective::kReduceScatter:
        return sum(me * count + i);
      case Collective::kAllGather:
      case Collective::kGather:
        return base_word(static_cast<int>(i / count), i % count);
      case Collective::kAllToAll:
        return base_word(static_cast<int>(i / count), me * count + i % count);
      case Collective::kBroadcast:
        return base_word(0, i);
      case Collective::kScatter:
        return base_word(0, me * count + i);
      case Collective::kSendRecv:
        return base_word((me + pes - 1) % pes, i);
      default:
        return base_word((me ^ 1) < pes ? me ^ 1 : me, i);
    }
  }
};

/// Calls back to back in a replayed graph: sizes alternate, inputs change on the device with every call, and random PEs
/// are late.
class Stress {
 public:
  Stress(World& world, const AlgorithmInfo& info, int calls)
      : world_(world), collective_(info.collective), calls_(calls), stream_(world.make_stream("main")) {
    CollectiveOptions options;
    options.type = DType::kU32;
    options.max_count = kCounts[0];
    options.algorithm = info.name;
    options.blocks = info.name == "grouped" ? 0 : 4;
    plan_ = make_collective(world, collective_, options);
    const Size most = kCounts[0] * world.num_pes();
    in_ = world.heap().allocate<std::uint32_t>(most, "in");
    out_ = world.heap().allocate<std::uint32_t>(most, "out");
    base_ = local_words(world, "base", base_words(world.pe(), most));
    differences_ = local_words(world, "differences", Words(static_cast<std::size_t>(most)));
    for (const Size count : kCounts) want_.push_back(local_words(world, "want", want(count)));
    fill_epochs_ = world.heap().epochs(kBlocks, "fill epochs");
    check_epochs_ = world.heap().epochs(kBlocks, "check epochs");
    delays_ = world.heap().epochs(2, "delays");
  }

  Size run() {
    Graph graph(native(), [&] {
      for (int i = 0; i < kCalls; ++i) call(static_cast<std::size_t>(i) % std::size(kCounts));
    });
    world_.barrier();
    for (int i = 0; i < calls_ / kCalls; ++i) graph.launch();
    stream_.synchronize();
    return count_wrong(world_, differences_, kCounts[0] * world_.num_pes());
  }

 private:
  static constexpr Size kCounts[] = {5003, 64, 1000};
  static constexpr int kCalls = 12;
  static constexpr double kMostDelayUs = 15;

  cudaStream_t native() const { return static_cast<cudaStream_t>(stream_.native()); }
  Size outputs(Size count) const { return output_elements(collective_, count, world_.num_pes(), world_.pe(), 0); }
  Words want(Size count) const {
    Words words(static_cast<std::size_t>(outputs(count)));
    const Expected expected{collective_, count, world_.num_pes()};
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = expected.at(world_.pe(), static_cast<Size>(i));
    return words;
  }

  void call(std::size_t size) {
    const Size count = kCounts[size];
    const Size inputs = input_elements(collective_, count, world_.num_pes(), world_.pe(), 0);
    const Grid grid{2, 512};
    stream_.launch<StressFill>(grid, {base_, in_.local(), inputs, fill_epochs_});
    launch_delay(native(), delays_.words, static_cast<std::uint64_t>(world_.pe()), kMostDelayUs);
    plan_->run(stream_, Symm<const std::uint32_t>(in_).as<const std::byte>(), out_.as<std::byte>(), count);
    launch_delay(native(), delays_.words + 1, static_cast<std::uint64_t>(world_.pe() + 100), kMostDelayUs);
    const std::uint32_t factor = reduces(collective_) ? static_cast<std::uint32_t>(world_.num_pes()) : 1U;
    stream_.launch<StressCheck>(grid, {want_[size], out_.local(), differences_, outputs(count), factor, check_epochs_});
  }

  World& world_;
  Collective collective_;
  int calls_;
  Stream stream_;
  std::unique_ptr<CollectivePlan> plan_;
  Symm<std::uint32_t> in_, out_;
  std::uint32_t* base_ = nullptr;
  std::uint32_t* differences_ = nullptr;
  std::vector<std::uint32_t*> want_;
  Epochs fill_epochs_, check_epochs_, delays_;
};

int check_all(int rounds, int calls, int pes) {
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
  if (pes <= cuda_devices()) {
    litmus_copy(false, pes, rounds);
    litmus_copy(true, pes, rounds);
  }
  for (const AlgorithmInfo& info : collective_algorithms()) {
    const bool by_copy_engine = info.name.find("copy_engine") != std::string::npos;
    // PEs that share a GPU share its queues: nothing promises that their copies run side by side.
    if (info.name == "multimem" || (by_copy_engine && pes > cuda_devices())) continue;
    check(fmt::format("{} {}, {} calls with delays", name(info.collective), info.name, calls), pes,
          [&](World& world) { return Stress(world, info, calls).run(); });
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace

}  // namespace tandem::test

int main(int argc, char** argv) {
  const auto number = [&](int i, int otherwise) { return argc > i ? std::atoi(argv[i]) : otherwise; };
  return tandem::test::check_all(number(1, 20'000), number(2, 2000), number(3, 0));
}
