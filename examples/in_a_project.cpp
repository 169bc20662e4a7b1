#include <cstdio>
#include <vector>

#include "tandem/collectives.h"
#include "tandem/operators.h"
#include "tandem/simulation.h"

using namespace tandem;

void program(World& world) {  // runs on every PE
  Stream stream = world.make_stream("main");

  // A collective: a plan, made once by all PEs, run any number of times.
  const Size count = 1 << 20;
  const auto x = world.heap().allocate<float>(count, "x");
  std::vector<float> values(count, 1);
  world.copy_in(x.local(), values.data(), count * sizeof(float));
  const auto all_reduce = make_collective(world, Collective::kAllReduce, {.max_count = count});
  all_reduce->run(stream, x.as<std::byte>(), x.as<std::byte>(), count);  // in place
  stream.synchronize();
  world.copy_out(values.data(), x.local(), count * sizeof(float));
  std::printf("PE %d: %g\n", world.pe(), static_cast<double>(values[0]));

  // AllGather+GEMM: each PE holds m / pes rows of A, and gets n / pes columns of the result.
  const Size m = 512, n = 1024, k = 256, pes = world.num_pes();
  const auto layer = make_operator(world, Operator::kAllGatherGemm, {.m = m, .n = n, .k = k});
  bf16* const a = world.heap().allocate_local<bf16>(m / pes * k, "a");  // copy_in fills them
  bf16* const b = world.heap().allocate_local<bf16>(n / pes * k, "b");
  bf16* const c = world.heap().allocate_local<bf16>(m * n / pes, "c");
  layer->run(stream, a, b, c);
  stream.synchronize();
}

int main() {
  Simulation simulation(load_machine("h200x4"), 4);
  simulation.run(program);
  std::printf("%.1f us on the model\n", simulation.time_us());
}
