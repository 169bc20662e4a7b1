/// The cost of a fiber switch: real time of one `resume` and the `suspend` that answers it, which are two switches.

#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "base/fiber/fiber.h"

namespace {

using tandem::Fiber;
using tandem::StackPool;

void forever(void*) {
  for (;;) Fiber::suspend();
}

/// All fibers in turn, as in a machine whose blocks advance side by side.
void round_robin(benchmark::State& state) {
  StackPool pool;
  std::vector<std::unique_ptr<Fiber>> fibers(static_cast<std::size_t>(state.range(0)));
  for (auto& fiber : fibers) {
    fiber = std::make_unique<Fiber>();
    fiber->start(pool, forever, nullptr);
    fiber->resume();
  }
  for (auto _ : state) {
    for (auto& fiber : fibers) fiber->resume();
  }
  state.counters["per_switch"] =
      benchmark::Counter(static_cast<double>(2 * state.range(0)),
                         benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(round_robin)->Arg(1)->Arg(1'056)->Arg(135'168)->Unit(benchmark::kMicrosecond);

/// A fiber's whole life on a warm pool.
void start_and_finish(benchmark::State& state) {
  StackPool pool;
  Fiber fiber;
  for (auto _ : state) {
    fiber.start(
        pool, [](void*) {}, nullptr);
    fiber.resume();
  }
}
BENCHMARK(start_and_finish);

}  // namespace

BENCHMARK_MAIN();
