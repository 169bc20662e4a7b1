// Plans give their part of the heap back.

#include <gtest/gtest.h>

#include "tandem/collectives.h"
#include "tandem/error.h"
#include "tandem/operators.h"
#include "tandem/simulation.h"

namespace tandem {

namespace {

constexpr int kPes = 3;

OperatorOptions layer(Size rows) {
  OperatorOptions options;
  options.m = rows;
  options.n = 64;
  options.k = 16 * kPes;
  options.type = DType::kF32;
  options.form = Form::kOverlapped;
  options.reduction = Reduction::kOwner;
  return options;
}

/// A world with room for two plans of 2,048 rows, but not for three.
void run(const std::function<void(World&)>& program) {
  SimOptions options;
  options.heap_bytes = Size{5} << 18;
  Simulation simulation(load_machine("h200x4"), kPes, options);
  simulation.run(program);
}

TEST(PlanMemory, OfAPlanThatIsGoneIsUsedAgain) {
  run([](World& world) {
    Stream stream = world.make_stream("main");
    float* const a = world.heap().allocate_local<float>(2048 * 16, "a");
    float* const b = world.heap().allocate_local<float>(64 * 16, "b");
    float* const c = world.heap().allocate_local<float>(683 * 64, "c");
    for (int i = 0; i < 20; ++i) {
      const auto plan = make_operator(world, Operator::kGemmReduceScatter, layer(2048));
      plan->run(stream, a, b, c);
      stream.synchronize();
    }
  });
}

TEST(PlanMemory, IsThereUntilAllPesAreThroughWithThePlan) {
  run([](World& world) {
    auto first = make_operator(world, Operator::kGemmReduceScatter, layer(2048));
    auto second = make_operator(world, Operator::kGemmReduceScatter, layer(2048));
    if (world.pe() != 1) first.reset();
    EXPECT_THROW(make_operator(world, Operator::kGemmReduceScatter, layer(2048)), OutOfMemory);
    first.reset();
    EXPECT_NO_THROW(make_operator(world, Operator::kGemmReduceScatter, layer(2048)));
  });
}

/// Only symmetric buffers make the heap grow, so all large buffers of a plan are symmetric.
TEST(PlanMemory, OfNormsMakesTheHeapGrow) {
  SimOptions options;
  options.heap_bytes = Size{1} << 20;
  options.heap_limit_bytes = Size{1} << 26;
  Simulation(load_machine("h200x4"), kPes, options).run([](World& world) {
    world.heap().allocate<std::byte>(Size{1000} << 10, "others");
    OperatorOptions wanted = layer(96);
    wanted.norm.norm = Norm::kRms;
    wanted.norm.residual = true;
    wanted.k = 16 << 10;
    EXPECT_NO_THROW(make_operator(world, Operator::kAllGatherGemm, wanted));
    wanted = layer(96);
    wanted.type = DType::kBF16;
    wanted.n = 16 << 10;
    wanted.norm.norm = Norm::kRms;
    wanted.norm.quantisation = Quantisation::kRow;
    EXPECT_NO_THROW(make_operator(world, Operator::kGemmReduceScatter, wanted));
  });
}

TEST(PlanMemory, OfAPlanThatCouldNotBeMadeIsFree) {
  run([](World& world) {
    for (int i = 0; i < 20; ++i)
      EXPECT_THROW(make_operator(world, Operator::kGemmAllReduce, layer(16384)), OutOfMemory) << i;
    EXPECT_NO_THROW(make_operator(world, Operator::kGemmReduceScatter, layer(2048)));
    CollectiveOptions options;
    options.algorithm = "two_shot_ll128";
    options.max_count = Size{1} << 20;
    for (int i = 0; i < 20; ++i) EXPECT_NO_THROW(make_collective(world, Collective::kAllReduce, options)) << i;
  });
}

TEST(PlanMemory, APlanMayLiveLongerThanItsWorld) {
  std::unique_ptr<CollectivePlan> plan;
  {
    Simulation simulation(load_machine("h200x4"), 1);
    simulation.run([&](World& world) { plan = make_collective(world, Collective::kAllReduce, {.max_count = 1000}); });
  }
  plan.reset();
}

}  // namespace

}  // namespace tandem
