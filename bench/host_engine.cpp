/// The cost of kernels on this machine's processors. It has bytes that a block moves, converts and reduces beside a
/// plain memcpy, launches, and signals between PEs. `--benchmark_format=json` gives JSON in place of the table.

#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <cstring>
#include <thread>
#include <vector>

#include "host/grid.h"

namespace {

using namespace tandem;

constexpr Size kPart = Size{256} << 20;
constexpr Size kSignals = 4096;  // offset of signal words, behind the wait words
constexpr Size kData = Size{1} << 20;

/// PEs that are threads of this process.
class Pes {
 public:
  explicit Pes(int pes) : pes_(pes), reports_(static_cast<std::size_t>(pes)) {
    memory_ = static_cast<std::byte*>(
        mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  }
  ~Pes() { munmap(memory_, bytes()); }
  Pes(const Pes&) = delete;
  Pes& operator=(const Pes&) = delete;

  template <class T>
  Symm<T> symm(Size offset, int pe) const {
    return {reinterpret_cast<T*>(memory_ + offset), kPart, pe};
  }
  void run(int pe, int blocks, const std::function<void(cpu::Block&)>& body) {
    constexpr std::uint64_t kMinute = 60'000'000'000;
    host::GridRequest request;
    request.name = "bench";
    request.blocks = blocks;
    cuda::Context& context = request.context;
    context.team = {0, 1, pes_, pe, pes_};
    context.abort_on_pe0 = reinterpret_cast<std::uint32_t*>(memory_);
    context.abort_stride = kPart;
    context.abort = reinterpret_cast<std::uint32_t*>(memory_ + pe * kPart);
    context.world_pes = pes_;
    context.world_pe = pe;
    context.report = &reports_[static_cast<std::size_t>(pe)];
    context.timeout_ns = context.arrival_timeout_ns = kMinute;
    request.body = body;
    host::run_grid(request);
  }

 private:
  std::size_t bytes() const { return static_cast<std::size_t>(pes_ * kPart); }

  int pes_;
  std::byte* memory_ = nullptr;
  std::vector<cuda::WaitReport> reports_;
};

void count_bytes(benchmark::State& state, Size bytes) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * bytes);
}

/// Runs one block of PE 0 of `pes` over buffers of as many bytes as the benchmark's argument.
template <class Body>
void by_one_block(benchmark::State& state, int pes, const Body& body) {
  Pes all(pes);
  const Size bytes = state.range(0);
  for (int pe = 0; pe < pes; ++pe)
    std::memset(all.symm<std::byte>(kData, 0).on(pe), 0, static_cast<std::size_t>(2 * bytes));
  all.run(0, 1, [&](cpu::Block& block) {
    for (auto _ : state) {
      body(block, all, bytes);
      benchmark::ClobberMemory();
    }
  });
  count_bytes(state, bytes);
}

void plain_memcpy(benchmark::State& state) {
  by_one_block(state, 2, [](cpu::Block&, const Pes& all, Size bytes) {
    std::memcpy(all.symm<std::byte>(kData, 0).on(1), all.symm<std::byte>(kData, 0).on(0),
                static_cast<std::size_t>(bytes));
  });
}

void put(benchmark::State& state) {
  by_one_block(state, 2, [](cpu::Block& block, const Pes& all, Size bytes) {
    const auto data = all.symm<std::byte>(kData, 0);
    block.put(data, data.local(), bytes, 1);
  });
}

/// Loads `from` and stores `to`, in fragments.
template <class From, class To, class A>
void load_store(benchmark::State& state) {
  by_one_block(state, 2, [](cpu::Block& block, const Pes& all, Size bytes) {
    const auto from = all.symm<From>(kData, 0);
    const auto to = all.symm<To>(kData, 0);
    for (const Range tile : block.tiles<From>({0, bytes / Size{sizeof(From)}}))
      block.store(to.on(1), tile, block.load<A>(from.on(0), tile));
  });
}

/// Counts the bytes of the result: each of the PEs' copies is read once.
template <class T, int kPes>
void load_reduce(benchmark::State& state) {
  by_one_block(state, kPes, [](cpu::Block& block, const Pes& all, Size bytes) {
    const auto data = all.symm<T>(kData, 0);
    for (const Range tile : block.tiles<T>({0, bytes / Size{sizeof(T)}}))
      block.store(data.on(0) + bytes / Size{sizeof(T)}, tile,
                  block.load_reduce<Accumulator<T>>(data, tile, ReduceOp::kSum));
  });
}

template <class P>
void packets(benchmark::State& state) {
  Epoch epoch = 0;
  by_one_block(state, 1, [&epoch](cpu::Block& block, const Pes& all, Size bytes) {
    const auto from = all.symm<std::uint32_t>(kData, 0);
    const auto via = all.symm<P>(kData + 2 * bytes, 0);
    const Size count = bytes / 4;
    ++epoch;
    block.ll_put(via, from.local(), count, epoch, 0);
    Size at = 0;
    for (const Range tile : block.tiles<std::uint32_t>({0, count})) {
      block.store(from.local() + count, tile,
                  block.ll_get<std::uint32_t, std::uint32_t>(via.local() + at, tile.size(), epoch));
      at += packets_for<P>(tile.size() * 4);
    }
  });
}

void empty_launch(benchmark::State& state) {
  Pes all(1);
  for (auto _ : state) all.run(0, static_cast<int>(state.range(0)), [](cpu::Block&) {});
}

/// Sends a word there and a word back, between two PEs that run at the same time.
void ping_pong(benchmark::State& state) {
  Pes all(2);
  constexpr Epoch kEnd = ~Epoch{0};
  std::thread other([&] {
    all.run(1, 1, [&](cpu::Block& block) {
      const auto words = all.symm<Signal>(kSignals, 1);
      for (Epoch e = 1;; ++e) {
        block.wait(words, 1, e);
        if (words.local()->value == kEnd) return;
        block.notify(words, e, 0);
      }
    });
  });
  all.run(0, 1, [&](cpu::Block& block) {
    const auto words = all.symm<Signal>(kSignals, 0);
    Epoch e = 0;
    for (auto _ : state) {
      block.notify(words, ++e, 1);
      block.wait(words, 1, e);
    }
    block.notify(words, kEnd, 1);
  });
  other.join();
}

/// Measures rounds, in each of which all blocks of all PEs notify each other and wait.
void rounds_of_blocks(benchmark::State& state) {
  const int pes = static_cast<int>(state.range(0));
  const int blocks = static_cast<int>(state.range(1));
  constexpr Epoch kRounds = 100;
  Pes all(pes);
  Epoch first = 0;
  for (auto _ : state) {
    std::vector<std::thread> threads;
    threads.reserve(static_cast<std::size_t>(pes));
    for (int pe = 0; pe < pes; ++pe)
      threads.emplace_back([&, pe] {
        all.run(pe, blocks, [&](cpu::Block& block) {
          const auto words = all.symm<Signal>(kSignals, block.pe());
          for (Epoch e = first + 1; e <= first + kRounds; ++e) {
            block.notify_all(words, e);
            block.wait_all(words, e);
          }
        });
      });
    for (std::thread& thread : threads) thread.join();
    first += kRounds;
  }
  state.counters["per_round"] = benchmark::Counter(
      static_cast<double>(kRounds), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

constexpr Size kSmall = Size{64} << 10, kLarge = Size{16} << 20;

BENCHMARK(plain_memcpy)->Arg(kSmall)->Arg(kLarge);
BENCHMARK(put)->Arg(kSmall)->Arg(kLarge);
BENCHMARK(load_store<float, float, float>)->Arg(kSmall)->Arg(kLarge);
BENCHMARK(load_store<bf16, bf16, float>)->Arg(kSmall)->Arg(kLarge);
BENCHMARK(load_store<fp8_e4m3, fp8_e4m3, float>)->Arg(kSmall)->Arg(kLarge);
BENCHMARK(load_reduce<float, 2>)->Arg(kSmall)->Arg(kLarge);
BENCHMARK(load_reduce<float, 4>)->Arg(kSmall)->Arg(kLarge);
BENCHMARK(load_reduce<bf16, 4>)->Arg(kSmall)->Arg(kLarge);
BENCHMARK(packets<LLPacket>)->Arg(4096)->Arg(kSmall);
BENCHMARK(packets<LL128Line>)->Arg(4096)->Arg(kSmall);
BENCHMARK(empty_launch)->Arg(1)->Arg(32);
BENCHMARK(ping_pong)->UseRealTime();
BENCHMARK(rounds_of_blocks)->Args({2, 1})->Args({2, 32})->Args({8, 32})->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
