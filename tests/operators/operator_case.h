#pragma once
/// Runs an operator on a simulated machine with exact data (small integers) and counts the elements that differ from a
/// reference in f64.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "support/in_threads.h"
#include "support/kept_memory.h"
#include "tandem/block.h"
#include "tandem/operators.h"
#include "tandem/simulation.h"

namespace tandem::test {

/// PEs and how they are joined.
struct Place {
  const char* machine = "h200x8";
  int pes = 4;
  int pes_per_node = 0;  // 0: as the machine is
};

inline std::ostream& operator<<(std::ostream& out, const Place& place) {
  return out << place.machine << " pes=" << place.pes << " pes_per_node=" << place.pes_per_node;
}

struct OperatorCase {
  Place place;
  Operator op = Operator::kAllGatherGemm;
  OperatorOptions options;
  std::uint64_t seed = 1;
  int runs = 3;
  bool stragglers = false;
  bool crowded = false;     // another stream takes all SMs of a PE while its GEMM runs: what follows comes late
  bool fewer_rows = false;  // every other run has fewer rows than the plan
  bool gathered = false;    // all_gather_gemm: whether runs also return the gathered A

  OperatorOptions options_of(int run) const {
    OperatorOptions o = options;
    if (fewer_rows && run % 2 == 1) o.m = o.m * (run % 3) / 3;
    return o;
  }
};

inline std::ostream& operator<<(std::ostream& out, const OperatorCase& c) {
  const OperatorOptions& o = c.options;
  return out << name(c.op) << " on " << c.place << " " << o.m << "x" << o.n << "x" << o.k << " shots=" << o.shots << " "
             << name(o.type) << " " << name(o.form) << (o.copy_by == CopyBy::kSm ? " sm" : " copy_engine")
             << (o.direction == Direction::kPull ? " pull" : " push") << " splits=" << o.splits << " order=" << o.order
             << " communication_sms=" << o.communication_sms << " seed=" << c.seed;
}

struct Outcome {
  Size checked = 0;
  Size wrong = 0;
  double us = 0;  // of the last run, slowest PE
  std::uint64_t trace_hash = 0;
};

/// Keeps a stream busy for a while.
struct Dawdle {
  struct Args {
    const float* memory;
    Size count;
    int rounds;
  };
  template <class Block>
  static void run(Block& block, const Args& a) {
    for (int i = 0; i < a.rounds; ++i) {
      for (const Range tile : block.template tiles<float>({0, a.count})) block.template load<float>(a.memory, tile);
      block.sync();
    }
  }
};

/// Small integers that depend on the place and on the run, so that a stale or misplaced row is seen.
inline int element(Size run, Size matrix, Size row, Size col) {
  std::uint64_t x = static_cast<std::uint64_t>(((run * 2 + matrix) * 4099 + row) * 65537 + col + 1);
  x *= 0x9E3779B97F4A7C15ULL;
  x ^= x >> 29;
  x *= 0xBF58476D1CE4E5B9ULL;
  return static_cast<int>((x >> 33) % (matrix == 0 ? 5 : 3)) - (matrix == 0 ? 2 : 1);
}

/// Returns the expected result of all runs of a case: [run][m x n]. It is computed row by row of B in f32, which is
/// fast, and exact for sums below 2^24.
inline std::vector<std::vector<double>> reference(const OperatorOptions& o, int runs) {
  std::vector<std::vector<double>> results;
  const auto n = static_cast<std::size_t>(o.n);
  std::vector<float> b(static_cast<std::size_t>(o.k) * n);  // k x n
  for (int run = 0; run < runs; ++run) {
    in_threads({0, o.k}, o.n, [&](Range depth) {
      float* next = b.data() + static_cast<std::size_t>(depth.begin) * n;
      for (Size l = depth.begin; l < depth.end; ++l)
        for (Size j = 0; j < o.n; ++j) *next++ = static_cast<float>(element(run, 1, j, l));
    });
    std::vector<double>& c = results.emplace_back(static_cast<std::size_t>(o.m) * n);
    in_threads({0, o.m}, o.k * o.n / 8, [&](Range rows) {
      std::vector<float> sums(n);
      for (Size i = rows.begin; i < rows.end; ++i) {
        sums.assign(n, 0);
        for (Size l = 0; l < o.k; ++l) {
          const auto factor = static_cast<float>(element(run, 0, i, l));
          const float* const row = b.data() + static_cast<std::size_t>(l) * n;
          for (std::size_t j = 0; j < n; ++j) sums[j] += factor * row[j];
        }
        std::copy(sums.begin(), sums.end(), c.begin() + i * o.n);
      }
    });
  }
  return results;
}

/// One PE's view of the global matrices.
struct Shards {
  Range a_rows, a_cols, b_rows, b_cols, c_rows, c_cols;

  Shards(Operator op, const OperatorOptions& o, int pe, int pes) {
    const Range m{0, o.m};
    const Range n{0, o.n};
    const Range k{0, o.k};
    const bool gather = op == Operator::kAllGatherGemm;
    a_rows = gather ? split(m, pes)[pe] : m;
    a_cols = b_cols = gather ? k : split(k, pes)[pe];
    b_rows = gather ? split(n, pes)[pe] : n;
    c_rows = op == Operator::kGemmReduceScatter ? split(m, pes)[pe] : m;
    c_cols = gather ? split(n, pes)[pe] : n;
  }
  Size a_size() const { return a_rows.size() * a_cols.size(); }
  Size b_size() const { return b_rows.size() * b_cols.size(); }
  Size c_size() const { return c_rows.size() * c_cols.size(); }
};

template <class T>
void fill(T* to, int run, int matrix, Range rows, Range cols) {
  in_threads(rows, cols.size(), [&](Range some) {
    T* next = to + (some.begin - rows.begin) * cols.size();
    for (Size i = some.begin; i < some.end; ++i)
      for (Size j = cols.begin; j < cols.end; ++j) *next++ = convert<T>(static_cast<float>(element(run, matrix, i, j)));
  });
}

template <class T>
Outcome run_typed(const OperatorCase& test) {
  keep_memory();
  const OperatorOptions& o = test.options;
  SimOptions sim;
  sim.seed = test.seed;
  sim.pes_per_node = test.place.pes_per_node;
  sim.heap_bytes = Size{256} << 20;
  Simulation simulation(load_machine(test.place.machine), test.place.pes, sim);
  const auto expected = reference(o, test.runs);
  const bool meaningful = o.form != Form::kComputeOnly && o.form != Form::kCommunicationOnly;
  Outcome outcome;
  simulation.run([&](World& world) {
    const Shards largest(test.op, o, world.pe(), world.num_pes());
    T* const a = world.heap().allocate_local<T>(largest.a_size(), "a");
    T* const b = world.heap().allocate_local<T>(largest.b_size(), "b");
    T* const c = world.heap().allocate_local<T>(largest.c_size(), "c");
    T* const whole = test.gathered ? world.heap().allocate_local<T>(o.m * o.k, "gathered") : nullptr;
    constexpr Size kIdle = 1 << 16;
    float* const idle = world.heap().allocate_local<float>(kIdle, "idle");
    std::fill_n(idle, kIdle, 0.0F);
    auto plan = make_operator(world, test.op, o);
    Stream stream = world.make_stream("main");
    Stream crowd = world.make_stream("crowd");
    for (int run = 0; run < test.runs; ++run) {
      const OperatorOptions now = test.options_of(run);
      const Shards shards(test.op, now, world.pe(), world.num_pes());
      fill(a, run, 0, shards.a_rows, shards.a_cols);
      fill(b, run, 1, shards.b_rows, shards.b_cols);
      for (Size i = 0; i < largest.c_size(); ++i) c[i] = convert<T>(77.0F);
      const int late = (run * 3 + world.pe()) % world.num_pes();
      if (test.stragglers && late < 2) stream.launch<Dawdle>({1, 128}, {idle, kIdle, 20 * (2 - late)});
      const double begin = world.time_us();
      const void* const b_of_run = b;
      void* const c_of_run = c;
      plan->run(stream, {.m = now.m, .a = a, .b = {&b_of_run, 1}, .c = {&c_of_run, 1}, .gathered = whole});
      if (test.crowded && late == 0)
        for (const int blocks : {1, 2 * world.machine().gpu.sm_count})
          crowd.launch<Dawdle>({blocks, blocks == 1 ? 32 : 1024}, {idle, 1024, blocks == 1 ? 1 : 40});
      stream.synchronize();  // no barrier: peers may still be in this run when the inputs change
      outcome.us = std::max(run == 0 ? 0 : outcome.us, world.time_us() - begin);
      if (!meaningful) continue;
      for (Size i = 0; test.gathered && i < now.m * o.k; ++i)
        outcome.wrong += convert<float>(whole[i]) != static_cast<float>(element(run, 0, i / o.k, i % o.k));
      for (Size i = 0; i < shards.c_rows.size(); ++i)
        for (Size j = 0; j < shards.c_cols.size(); ++j) {
          const Size at = (shards.c_rows.begin + i) * o.n + shards.c_cols.begin + j;
          const double want = expected[static_cast<std::size_t>(run)][static_cast<std::size_t>(at)];
          ++outcome.checked;
          outcome.wrong += static_cast<double>(convert<float>(c[i * shards.c_cols.size() + j])) != want;
        }
      for (Size i = shards.c_size(); i < largest.c_size(); ++i) outcome.wrong += convert<float>(c[i]) != 77.0F;
    }
  });
  outcome.trace_hash = simulation.trace_hash();
  return outcome;
}

inline Outcome run(const OperatorCase& test) {
  if (test.options.type == DType::kF32) return run_typed<float>(test);
  if (test.options.type == DType::kF16) return run_typed<f16>(test);
  return run_typed<bf16>(test);
}

/// Time of one warm run without data.
inline double phantom_us(const Place& place, Operator op, const OperatorOptions& options) {
  keep_memory();
  SimOptions sim;
  sim.phantom = true;
  sim.pes_per_node = place.pes_per_node;
  sim.heap_bytes = Size{64} << 30;
  Simulation simulation(load_machine(place.machine), place.pes, sim);
  double us = 0;
  simulation.run([&](World& world) {
    const Shards shards(op, options, world.pe(), world.num_pes());
    const Size element = size_of(options.type);
    auto* const a = world.heap().allocate_local<std::byte>(shards.a_size() * element, "a");
    auto* const b = world.heap().allocate_local<std::byte>(shards.b_size() * element, "b");
    auto* const c = world.heap().allocate_local<std::byte>(shards.c_size() * element, "c");
    auto plan = make_operator(world, op, options);
    Stream stream = world.make_stream("main");
    world.barrier();
    const double begin = world.time_us();
    plan->run(stream, a, b, c);
    stream.synchronize();
    us = std::max(us, world.time_us() - begin);
  });
  return us;
}

}  // namespace tandem::test
