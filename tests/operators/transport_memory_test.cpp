// Plans of overlapped operators that share memory.
#include "tandem/advanced/transport_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "operators/operator_case.h"
#include "operators/plan/double_buffered_plan.h"
#include "tandem/check.h"
#include "tandem/error.h"
#include "tandem/simulation.h"
#include "tandem/worlds.h"

namespace tandem::transport_memory_test {

namespace {

struct Problem {
  Operator op;
  Size n, k;
};

/// Products of a layer of Llama-3 70B on two PEs, with sequence parallelism: forward, and gradients of their inputs.
constexpr Problem kLayer[] = {
    {Operator::kAllGatherGemm, 10240, 8192}, {Operator::kGemmReduceScatter, 8192, 8192},
    {Operator::kAllGatherGemm, 57344, 8192}, {Operator::kGemmReduceScatter, 8192, 28672},
    {Operator::kAllGatherGemm, 28672, 8192}, {Operator::kGemmReduceScatter, 8192, 57344},
    {Operator::kAllGatherGemm, 8192, 8192},  {Operator::kGemmReduceScatter, 8192, 10240},
};

/// As GPUs have them, where `double_buffered`: each of the plans is two that take turns.
std::unique_ptr<OperatorPlan> plan_of(World& world, Operator op, const OperatorOptions& options, bool double_buffered) {
  if (!double_buffered) return make_operator(world, op, options);
  ops::Settings settings(ops::resolve(world, op, options));
  settings.no_bias = world.heap().allocate<std::byte>(options.n * 4, "no bias").local();
  settings.double_buffered = true;
  settings.begin_share(0);
  return ops::make_double_buffered(
      world, settings, op == Operator::kAllGatherGemm ? ops::make_all_gather_gemm : ops::make_gemm_reduce_scatter_ring);
}

std::unique_ptr<OperatorPlan> plan_of(World& world, const Problem& problem, std::shared_ptr<TransportMemory> memory) {
  OperatorOptions options{.m = 8192, .n = problem.n, .k = problem.k, .form = Form::kOverlapped};
  options.memory = std::move(memory);
  options.copy_by = CopyBy::kCopyEngine;
  if (problem.op == Operator::kGemmReduceScatter) options.reduction = Reduction::kChain;
  return plan_of(world, problem.op, options, true);
}

void run_phantom(Size heap_bytes, const std::function<void(World&)>& program) {
  SimOptions options;
  options.phantom = true;
  options.heap_bytes = heap_bytes;
  Simulation(load_machine("h200x2"), 2, options).run(program);
}

TEST(TransportMemory, OfALayersPlansIsAtMostThatOfTheLargestTwo) {
  Size largest_two = 0;
  run_phantom(Size{4} << 30, [&](World& world) {
    std::vector<Size> alone;
    for (const Problem& problem : kLayer) {
      const auto memory = std::make_shared<TransportMemory>(world);
      const auto plan = plan_of(world, problem, memory);
      alone.push_back(memory->bytes());
    }
    std::sort(alone.rbegin(), alone.rend());
    if (world.pe() == 0) largest_two = alone[0] + alone[1];
    const auto memory = std::make_shared<TransportMemory>(world);
    std::vector<std::unique_ptr<OperatorPlan>> plans;
    for (const Problem& problem : kLayer) plans.push_back(plan_of(world, problem, memory));
    EXPECT_LE(memory->bytes(), alone[0] + alone[1]);
    EXPECT_EQ(memory->bytes(), Size{512} << 20);
  });
  EXPECT_EQ(largest_two, Size{1024} << 20);  // each: chain and partial sums of 128 MiB, twice
  // The heap itself, with 32 MiB for whatever plans do not share.
  run_phantom(largest_two + (Size{32} << 20), [&](World& world) {
    std::vector<std::unique_ptr<OperatorPlan>> plans;
    const auto memory = std::make_shared<TransportMemory>(world);
    for (const Problem& problem : kLayer) EXPECT_NO_THROW(plans.push_back(plan_of(world, problem, memory)));
  });
  run_phantom(largest_two + (Size{32} << 20), [&](World& world) {
    std::vector<std::unique_ptr<OperatorPlan>> plans;
    EXPECT_THROW(for (const Problem& problem : kLayer) plans.push_back(plan_of(world, problem, nullptr)), OutOfMemory);
  });
}

TEST(TransportMemory, LivesAsLongAsItsPlans) {
  run_phantom(Size{800} << 20, [](World& world) {
    for (int i = 0; i < 4; ++i) {
      auto memory = std::make_shared<TransportMemory>(world);
      const auto plan = plan_of(world, kLayer[1], memory);
      memory.reset();
      EXPECT_THROW(plan_of(world, kLayer[1], std::make_shared<TransportMemory>(world)), OutOfMemory);
      world.barrier();
    }
  });
}

TEST(TransportMemory, OfAnotherWorldIsRefused) {
  WorldOptions small;
  small.kind = DeviceKind::kHost;
  small.heap_bytes = Size{2} << 20;
  WorldThreads first(1, small), second(1, small);
  OperatorOptions options{.m = 64, .n = 64, .k = 64, .type = DType::kF32};
  first.run([&](World& world) {
    options.memory = std::make_shared<TransportMemory>(world);
    EXPECT_NO_THROW(make_operator(world, Operator::kAllGatherGemm, options));
  });
  second.run([&](World& world) {
    try {
      make_operator(world, Operator::kAllGatherGemm, options);
      ADD_FAILURE() << "no error";
    } catch (const InvalidArgument& error) {
      EXPECT_EQ(error.what(),
                std::string("memory: that of another world given, allowed is TransportMemory of the plan's own world"));
    }
  });
}

constexpr int kPes = 3;

/// Runs of two plans that alternate in two streams. Returns the number of wrong elements.
Size run_in_two_streams(World& world, bool ordered, bool double_buffered) {
  constexpr Operator kOps[] = {Operator::kAllGatherGemm, Operator::kGemmReduceScatter};
  // Gathered rows and sums are of the same size, so that they share buffers.
  OperatorOptions options{.m = 37, .n = 24, .k = 24, .type = DType::kF32, .form = Form::kOverlapped};
  options.copy_by = double_buffered ? CopyBy::kCopyEngine : CopyBy::kSm;
  options.tile_m = options.tile_n = 16;
  options.splits = 2;
  options.memory = std::make_shared<TransportMemory>(world);
  // Plans that alternate would never share a side.
  constexpr int kPlans[] = {0, 1, 1, 0, 1, 0, 0, 1};
  constexpr int kRuns = std::size(kPlans);
  const auto expected = test::reference(options, kRuns);
  std::unique_ptr<OperatorPlan> plans[2];
  for (int i = 0; i < 2; ++i) {
    if (i == 1) options.reduction = double_buffered ? Reduction::kChain : Reduction::kOwner;
    plans[i] = plan_of(world, kOps[i], options, double_buffered);
  }
  Stream streams[] = {world.make_stream("even"), world.make_stream("odd")};
  std::vector<float*> results;
  for (int run = 0; run < kRuns; ++run) {
    const test::Shards shards(kOps[kPlans[run]], options, world.pe(), kPes);
    const auto matrix = [&](Size size) { return world.heap().allocate_local<float>(size, "matrix"); };
    float *const a = matrix(shards.a_size()), *const b = matrix(shards.b_size());
    test::fill(a, run, 0, shards.a_rows, shards.a_cols);
    test::fill(b, run, 1, shards.b_rows, shards.b_cols);
    results.push_back(matrix(shards.c_size()));
    if (ordered && run > 0) streams[run % 2].wait(streams[1 - run % 2].record());
    plans[kPlans[run]]->run(streams[run % 2], a, b, results.back());
  }
  for (Stream& stream : streams) stream.synchronize();
  Size wrong = 0;
  for (int run = 0; run < kRuns; ++run) {
    const test::Shards shards(kOps[kPlans[run]], options, world.pe(), kPes);
    for (Size i = 0; i < shards.c_size(); ++i) {
      const Size row = shards.c_rows.begin + i / shards.c_cols.size();
      const Size column = shards.c_cols.begin + i % shards.c_cols.size();
      wrong += static_cast<double>(results[static_cast<std::size_t>(run)][i]) !=
               expected[static_cast<std::size_t>(run)][static_cast<std::size_t>(row * options.n + column)];
    }
  }
  return wrong;
}

CheckResult check_two_streams(bool ordered, bool double_buffered, Size& wrong) {
  CheckOptions how{.machine = load_machine("h200x8"), .pes = kPes, .schedules = 5};
  how.one_kernel_at_a_time = !double_buffered;  // a chain by copy engines needs kernels beside its GEMM
  return check([&](World& world) { wrong += run_in_two_streams(world, ordered, double_buffered); }, how);
}

TEST(TransportMemory, OfPlansThatAlternateInStreamsThatEventsOrder) {
  for (const bool double_buffered : {false, true}) {
    Size wrong = 0;
    const CheckResult result = check_two_streams(true, double_buffered, wrong);
    EXPECT_TRUE(result.clean()) << result.text();
    EXPECT_EQ(wrong, 0) << double_buffered;
  }
}

TEST(TransportMemory, RunsThatOverlapAreFoundByTheChecker) {
  Size wrong = 0;
  EXPECT_FALSE(check_two_streams(false, false, wrong).clean());
}

}  // namespace

}  // namespace tandem::transport_memory_test
