// The cost of a check: processor time of one run under the detector and a random schedule, relative to the plain
// simulator. It uses small programs, as checks do, and prints a table.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "base/mapping_pool.h"
#include "tandem/check.h"
#include "tandem/collectives.h"
#include "tandem/operators.h"
#include "tandem/simulation.h"

using namespace tandem;

namespace {

constexpr int kCalls = 4;
constexpr int kRuns = 10;
constexpr int kRepeats = 3;

struct Case {
  std::string name;
  int pes;
  std::function<void(World&)> program;
};

Case collective(Collective op, const std::string& algorithm, int pes, Size count) {
  return {fmt::format("{} {}, {} PEs, {} elements", name(op), algorithm, pes, count), pes, [=](World& world) {
            CollectiveOptions options;
            options.algorithm = algorithm;
            options.max_count = count;
            options.blocks = 2;
            const auto in = world.heap().allocate<std::byte>(pes * count * 4, "in");
            const auto out = world.heap().allocate<std::byte>(pes * count * 4, "out");
            const auto plan = make_collective(world, op, options);
            Stream stream = world.make_stream("main");
            for (int call = 0; call < kCalls; ++call) plan->run(stream, in, out, count);
            stream.synchronize();
          }};
}

Case gemm(Operator op, CopyBy by, int pes) {
  OperatorOptions options;
  options.m = 32 * pes;
  options.n = 16 * pes;
  options.k = 8 * pes;
  options.tile_m = 8;
  options.tile_n = 16;
  options.splits = 2;
  options.copy_by = by;
  options.communication_sms = 2;
  return {fmt::format("{} by {}, {} PEs", name(op), by == CopyBy::kSm ? "SMs" : "copy engines", pes), pes,
          [=](World& world) {
            auto& heap = world.heap();
            const Size most = options.m * options.n * 2;
            auto* const a = heap.allocate_local<std::byte>(most, "a");
            auto* const b = heap.allocate_local<std::byte>(most, "b");
            auto* const c = heap.allocate_local<std::byte>(most, "c");
            const auto plan = make_operator(world, op, options);
            Stream stream = world.make_stream("main");
            for (int call = 0; call < kCalls; ++call) plan->run(stream, a, b, c);
            stream.synchronize();
          }};
}

/// Milliseconds of processor time of one of kRuns runs, the best of kRepeats times.
double best(const std::function<void()>& runs) {
  double least = 1e9;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const std::clock_t begin = std::clock();
    runs();
    least = std::min(least, static_cast<double>(std::clock() - begin) * 1e3 / CLOCKS_PER_SEC / kRuns);
  }
  return least;
}

void compare(const Case& one) {
  const Machine machine = load_machine(one.pes <= 4 ? "h200x4" : "h200x8");
  const double plain = best([&] {
    const MappingPool pool;  // as a check does
    for (int run = 0; run < kRuns; ++run) {
      SimOptions options;
      options.heap_bytes = Size{1} << 30;
      Simulation(machine, one.pes, options).run(one.program);
    }
  });
  const double checked = best([&] {
    CheckOptions options;
    options.machine = machine;
    options.pes = one.pes;
    options.schedules = kRuns;
    options.check_determinism = false;
    check(one.program, options);
  });
  fmt::print("{:<52} {:>10.2f} {:>10.2f} {:>8.1f}\n", one.name, plain, checked, checked / plain);
  std::fflush(stdout);
}

}  // namespace

int main() {
  fmt::print("{:<52} {:>10} {:>10} {:>8}\n", fmt::format("{} calls", kCalls), "plain ms", "checked ms", "times");
  for (const Size count : {Size{44}, Size{4} << 10}) {
    compare(collective(Collective::kAllReduce, "ring", 4, count));
    compare(collective(Collective::kAllReduce, "two_shot", 4, count));
    compare(collective(Collective::kAllReduce, "one_shot_ll", 4, count));
    compare(collective(Collective::kAllReduce, "copy_engine", 4, count));
    compare(collective(Collective::kAllGather, "push", 4, count));
    compare(collective(Collective::kAllToAll, "push", 8, count));
  }
  for (const int pes : {4, 8}) {
    compare(gemm(Operator::kAllGatherGemm, CopyBy::kCopyEngine, pes));
    compare(gemm(Operator::kGemmReduceScatter, CopyBy::kSm, pes));
  }
}
