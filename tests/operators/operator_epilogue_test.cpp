// Bias, activation, scaled fp8 and both layouts of B through the operators.

#include "operators/operator_epilogue.h"

#include <gtest/gtest.h>

#include "support/kept_memory.h"
#include "tandem/error.h"

namespace tandem::operator_epilogue_test {
namespace {

using test::EpilogueCase;
using test::OperatorWithEpilogue;
using test::Place;

Size wrong_on(const Place& place, const EpilogueCase& c, std::uint64_t seed) {
  test::keep_memory();
  SimOptions sim;
  sim.seed = seed;
  sim.pes_per_node = place.pes_per_node;
  constexpr Size kRoom = Size{1} << 20;
  sim.heap_bytes = 2 * kRoom;
  Simulation simulation(load_machine(place.machine), place.pes, sim);
  Size wrong = 0;
  simulation.run([&](World& world) {
    OperatorWithEpilogue one(world, c, world.heap().allocate_local<std::byte>(kRoom, "matrices"), kRoom);
    constexpr Size kIdle = 1 << 14;
    float* const idle = world.heap().allocate_local<float>(kIdle, "idle");
    std::fill_n(idle, kIdle, 0.0F);
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
  for (EpilogueCase& c : test::epilogue_cases(97, 48, 48, true)) {
    c.options.tile_m = 16;
    c.options.tile_n = 32;
    if (place.pes_per_node > 0 && c.options.reduction == Reduction::kChain) continue;  // one node only
    SCOPED_TRACE(::testing::Message() << c << " on " << place);
    EXPECT_EQ(wrong_on(place, c, seed++), 0);
  }
}

TEST(OperatorEpilogue, ExactOnTwoPes) { check_all({"h200x8", 2}); }
TEST(OperatorEpilogue, ExactOnThreePes) { check_all({"h200x8", 3}); }
TEST(OperatorEpilogue, ExactBetweenNodes) { check_all({"h200x8", 4, 2}); }

void check_block_scales(const Place& place) {
  std::uint64_t seed = 1;
  for (EpilogueCase& c : test::block_scale_cases(21, 320, 144 * place.pes)) {
    c.options.tile_m = 16;
    c.options.tile_n = 64;
    if (place.pes_per_node > 0 && c.options.reduction == Reduction::kChain) continue;  // one node only
    SCOPED_TRACE(::testing::Message() << c << " on " << place);
    EXPECT_EQ(wrong_on(place, c, seed++), 0);
  }
}

// The last block of a row of A has 16 elements, and the last one of B's columns is cut by the PEs.
TEST(OperatorEpilogue, BlockScalesAreExactOnOnePe) { check_block_scales({"h200x8", 1}); }
TEST(OperatorEpilogue, BlockScalesAreExactOnTwoPes) { check_block_scales({"h200x8", 2}); }
TEST(OperatorEpilogue, BlockScalesAreExactBetweenNodes) { check_block_scales({"h200x8", 4, 2}); }

/// Each way of adding up partial sums, with one activation after the other, and odd sizes.
void check_sums(const Place& place) {
  int number = place.pes;
  for (EpilogueCase& c : test::epilogue_cases(97, 41, 37, true)) {
    OperatorOptions& o = c.options;
    if (c.op == Operator::kAllGatherGemm || o.type != DType::kBF16) continue;
    if (place.pes_per_node > 0 && o.reduction == Reduction::kChain) continue;
    o.activation = static_cast<Activation>(1 + number % 3);
    o.tile_m = 16;
    o.tile_n = 16;
    SCOPED_TRACE(::testing::Message() << c << " on " << place);
    EXPECT_EQ(wrong_on(place, c, static_cast<std::uint64_t>(++number)), 0);
  }
}

TEST(OperatorEpilogue, SumsAreActivatedOnOnePe) { check_sums({"h200x8", 1}); }
TEST(OperatorEpilogue, SumsAreActivatedOnTwoPes) { check_sums({"h200x8", 2}); }
TEST(OperatorEpilogue, SumsAreActivatedOnThreePes) { check_sums({"h200x8", 3}); }
TEST(OperatorEpilogue, SumsAreActivatedOnFourPes) { check_sums({"h200x8", 4}); }
TEST(OperatorEpilogue, SumsAreActivatedOnFivePes) { check_sums({"h200x8", 5}); }
TEST(OperatorEpilogue, SumsAreActivatedBetweenNodes) { check_sums({"h200x8", 6, 2}); }

// Partial sums of which each alone would be cut off: an activation of the parts is another function. And an f32 sum of
// 0.00390625 + 1 that a rounding to bf16 before the activation would lose.
TEST(OperatorEpilogue, ActivationsAreOfTheWholeSumBeforeItIsRounded) {
  for (const Form form : {Form::kOverlapped, Form::kSequential, Form::kDecomposed})
    for (const Operator op : {Operator::kGemmReduceScatter, Operator::kGemmAllReduce})
      for (const int per_node : {0, 1}) {
        SimOptions sim;
        sim.pes_per_node = per_node;
        Simulation simulation(load_machine("h200x8"), 2, sim);
        simulation.run([&](World& world) {
          OperatorOptions o{.m = 2, .n = 8, .k = 2, .activation = Activation::kGelu, .form = form};
          o.reduction = Reduction::kOwner;
          auto* const a = world.heap().allocate_local<bf16>(2, "a");
          auto* const b = world.heap().allocate_local<bf16>(8, "b");
          auto* const c = world.heap().allocate_local<bf16>(16, "c");
          const bool first = world.pe() == 0;
          a[0] = a[1] = bf16(1);
          for (int i = 0; i < 8; ++i) b[i] = bf16(first ? 1.0F : 0.00390625F);
          auto plan = make_operator(world, op, o);
          Stream stream = world.make_stream("main");
          plan->run(stream, a, b, c);
          stream.synchronize();
          const float exact = activate(Activation::kGelu, 1.00390625F), rounded = activate(Activation::kGelu, 1);
          ASSERT_NE(convert<float>(bf16(exact)), convert<float>(bf16(rounded)));
          EXPECT_EQ(convert<float>(c[0]), convert<float>(bf16(exact)))
              << name(op) << " " << name(form) << (per_node == 1 ? " between nodes" : "");
        });
      }
}

// Each PE adds up all tiles: tiles for all PEs (GemmBroadcast).
TEST(OperatorEpilogue, ExactInOneShot) {
  for (const DType type : {DType::kBF16, DType::kE4M3}) {
    EpilogueCase c;
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

TEST(OperatorEpilogue, WhatCannotBeIsRefused) {
  const Operator gather = Operator::kAllGatherGemm, scatter = Operator::kGemmReduceScatter;
  const OperatorOptions plain{.m = 64, .n = 64, .k = 64};
  OperatorOptions fp8 = plain;
  fp8.type = DType::kE4M3;
  EXPECT_EQ(refusal(gather, fp8), "");

  OperatorOptions o = plain;
  o.activation = Activation::kRelu;
  EXPECT_EQ(refusal(gather, o), "");
  EXPECT_EQ(refusal(scatter, o), "");
  o.activation = static_cast<Activation>(6);
  EXPECT_EQ(refusal(scatter, o), "activation: 6 given, allowed is 0 to 5");
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

  o = fp8;
  o.block_scales = true;
  EXPECT_EQ(refusal(gather, o), "a_scale: none given, allowed with block_scales is one for each block");
  o.b_scale_per_column = true;
  EXPECT_EQ(refusal(gather, o), "b_scale_per_column: given with block_scales, allowed is one of them");
  o = plain;
  o.block_scales = true;
  EXPECT_EQ(refusal(scatter, o), "block_scales: given, allowed for fp8_e4m3 alone");
  o = plain;
  o.fast_accumulation = true;
  EXPECT_EQ(refusal(scatter, o), "fast_accumulation: given, allowed for fp8_e4m3 alone");
  o = fp8;
  o.fast_accumulation = o.block_scales = true;
  EXPECT_EQ(refusal(gather, o), "fast_accumulation: given with block_scales, allowed is one of them");

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
}  // namespace tandem::operator_epilogue_test
