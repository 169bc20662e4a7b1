/// Tests of the default choices of operators between nodes, by the time that the simulator predicts for it.

#include <gtest/gtest.h>

#include <algorithm>

#include "tandem/operators.h"
#include "tandem/simulation.h"

namespace tandem {
namespace {

double operator_us(Operator op, int nodes, const OperatorOptions& options) {
  const Machine machine = load_machine("h100x8-rail");
  SimOptions sim;
  sim.phantom = true;
  Simulation simulation(machine, nodes * machine.pes_per_node, sim);
  double us = 0;
  simulation.run([&](World& world) {
    bf16* const a = world.heap().allocate_local<bf16>(options.m * options.k, "a");
    bf16* const b = world.heap().allocate_local<bf16>(options.n * options.k, "b");
    bf16* const c = world.heap().allocate_local<bf16>(options.m * options.n, "c");
    const auto plan = make_operator(world, op, options);
    Stream stream = world.make_stream("main");
    plan->run(stream, a, b, c);
    stream.synchronize();
    world.barrier();
    const double begin = world.time_us();
    plan->run(stream, a, b, c);
    stream.synchronize();
    us = std::max(us, world.time_us() - begin);
  });
  return us;
}

/// The time of the default over that with `form`, moved by copy engines unless `form` is the default one.
double ratio_to(Operator op, int nodes, OperatorOptions options, Form form) {
  const double us = operator_us(op, nodes, options);
  options.form = form;
  if (form == Form::kOverlapped) options.copy_by = CopyBy::kCopyEngine;
  return us / operator_us(op, nodes, options);
}

TEST(OperatorsBetweenNodes, DoNotWaitForStartsOfCopies) {
  const OperatorOptions square{.m = 1024, .n = 8192, .k = 8192};
  EXPECT_LT(ratio_to(Operator::kGemmReduceScatter, 2, square, Form::kOverlapped), 0.85);
  EXPECT_LT(ratio_to(Operator::kGemmReduceScatter, 4, square, Form::kOverlapped), 0.85);
  EXPECT_LT(ratio_to(Operator::kAllGatherGemm, 2, square, Form::kOverlapped), 0.85);
  EXPECT_LT(ratio_to(Operator::kAllGatherGemm, 4, square, Form::kOverlapped), 0.85);
}

TEST(OperatorsBetweenNodes, FewerRowsThanPesNeedFewCopies) {
  const OperatorOptions one_row{.m = 1, .n = 8192, .k = 28672};
  EXPECT_LT(ratio_to(Operator::kGemmReduceScatter, 4, one_row, Form::kOverlapped), 0.85);
}

TEST(OperatorsBetweenNodes, TakeTheSequentialFormWhereShardsDoNotFillTiles) {
  constexpr double limit = 1.02;
  EXPECT_LE(ratio_to(Operator::kAllGatherGemm, 4, {.m = 1024, .n = 28672, .k = 4096}, Form::kSequential), limit);
  EXPECT_LE(ratio_to(Operator::kGemmReduceScatter, 4, {.m = 1024, .n = 8192, .k = 8192}, Form::kSequential), limit);
  EXPECT_LE(ratio_to(Operator::kGemmAllReduce, 2, {.m = 16, .n = 8192, .k = 28672}, Form::kSequential), limit);
}

}  // namespace
}  // namespace tandem
