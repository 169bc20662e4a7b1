// Bias, activation, scaled fp8 and both layouts of B through the operators.

#include "ops/operator_finish.h"

#include <gtest/gtest.h>

#include "tandem/error.h"

namespace tandem {
namespace {

using test::FinishCase;
using test::FinishedOperator;
using test::Place;

Size wrong_on(const Place& place, const FinishCase& c, std::uint64_t seed) {
  SimOptions sim;
  sim.seed = seed;
  sim.pes_per_node = place.pes_per_node;
  sim.heap_bytes = Size{24} << 20;
  Simulation simulation(load_machine(place.machine), place.pes, sim);
  Size wrong = 0;
  simulation.run([&](World& world) {
    FinishedOperator one(world, c, world.heap().allocate_local<std::byte>(FinishedOperator::kBytes, "matrices"));
    constexpr Size kIdle = 1 << 14;
    const float* const idle = world.heap().allocate_local<float>(kIdle, "idle");
    Stream stream = world.make_stream("main");
    for (int run = 0; run < 3; ++run) {
      const Size m = run == 1 ? 2 * c.options.m / 3 : c.options.m;
      one.fill(run, m);
      const int late = (run * 3 + world.pe()) % world.num_pes();
      if (late < 2) stream.launch<test::Dawdle>({1, 128}, {idle, kIdle, 10 * (2 - late)});
      one.enqueue(stream, m);
      stream.synchronize();
      wrong += one.wrong(run, m);
    }
  });
  return wrong;
}

void check_all(const Place& place) {
  std::uint64_t seed = 1;
  for (FinishCase& c : test::finish_cases(97, 48, 48, true)) {
    c.options.tile_m = 16;
    c.options.tile_n = 32;
    if (place.pes_per_node > 0 && c.options.reduction == Reduction::kChain) continue;  // one node only
    SCOPED_TRACE(::testing::Message() << c << " on " << place);
    EXPECT_EQ(wrong_on(place, c, seed++), 0);
  }
}

TEST(OperatorFinish, ExactOnTwoPes) { check_all({"h200x8", 2}); }
TEST(OperatorFinish, ExactOnThreePes) { check_all({"h200x8", 3}); }
TEST(OperatorFinish, ExactBetweenNodes) { check_all({"h200x8", 4, 2}); }

// Everybody adds up everything: tiles for all PEs (Gemm::c_at_all).
TEST(OperatorFinish, ExactInOneShot) {
  for (const DType type : {DType::kBF16, DType::kE4M3}) {
    FinishCase c;
    c.op = Operator::kGemmAllReduce;
    c.options.m = 33;
    c.options.n = 48;
    c.options.k = 48;
    c.options.type = type;
    c.options.form = Form::kOverlapped;
    c.options.shots = 1;
    c.options.tile_m = 16;
    c.options.tile_n = 32;
    c.bias = true;
    c.scaled = type == DType::kE4M3;
    c.options.a_scale_per_row = c.options.b_scale_per_column = c.scaled;
    SCOPED_TRACE(::testing::Message() << c);
    EXPECT_EQ(wrong_on({"h200x8", 3}, c, 1), 0);
  }
}

std::string refusal(Operator op, const OperatorOptions& options, const OperatorCall& call = {}) {
  Simulation simulation(load_machine("h200x4"), 2);
  std::string message;
  try {
    simulation.run([&](World& world) {
      auto plan = make_operator(world, op, options);
      Stream stream = world.make_stream("main");
      const void* const b = nullptr;
      void* const c = nullptr;
      OperatorCall now = call;
      now.b = {&b, 1};
      now.c = {&c, 1};
      plan->run(stream, now);
    });
  } catch (const InvalidArgument& error) {
    message = error.what();
  }
  return message;
}

TEST(OperatorFinish, WhatCannotBeIsRefused) {
  const Operator gather = Operator::kAllGatherGemm, scatter = Operator::kGemmReduceScatter;
  const OperatorOptions plain{.m = 64, .n = 64, .k = 64};
  OperatorOptions fp8 = plain;
  fp8.type = DType::kE4M3;
  EXPECT_EQ(refusal(gather, fp8), "");

  OperatorOptions o = plain;
  o.activation = Activation::kRelu;
  EXPECT_EQ(refusal(gather, o), "");
  EXPECT_EQ(refusal(scatter, o),
            "activation: one given, allowed for gemm_reduce_scatter is none: GEMMs have partial sums");
  o = plain;
  o.out_type = DType::kF16;
  EXPECT_EQ(refusal(gather, o), "out_type: f16 given, allowed for bf16 is the same");
  o = fp8;
  o.out_type = DType::kE4M3;
  EXPECT_EQ(refusal(gather, o), "");
  EXPECT_EQ(
      refusal(scatter, o),
      "out_type: fp8_e4m3 given, allowed for gemm_reduce_scatter of fp8_e4m3 are bf16, f16 (partial sums travel)");
  o = plain;
  o.b_scale_per_column = true;
  EXPECT_EQ(refusal(gather, o), "b_scale_per_column: given, allowed for fp8_e4m3 alone");
  o = fp8;
  o.a_scale_per_row = true;
  EXPECT_EQ(refusal(gather, o), "a_scale: none given, allowed with a_scale_per_row is one for each row");

  const float one = 1;
  const float* const scales[] = {&one, &one};
  OperatorCall call;
  call.a_scale = &one;
  EXPECT_EQ(refusal(gather, plain, call), "scales: given, allowed for bf16 are none");
  call.a_scale = nullptr;
  call.c_scale = {scales, 1};
  EXPECT_EQ(refusal(gather, fp8, call), "c_scale: given, allowed for a result of bf16 is none");
  call.c_scale = {};
  call.b_scale = scales;
  EXPECT_EQ(refusal(gather, fp8, call), "b_scale: 2 given, allowed is none, or 1: one for each b");
}

}  // namespace
}  // namespace tandem
