/// Residual, norm and quantisation behind the sums of operators: exact results of every strategy.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operators/reference/normed_runs.h"
#include "support/host_pes.h"
#include "support/kept_memory.h"
#include "support/refusal.h"
#include "tandem/error.h"
#include "tandem/simulation.h"

namespace tandem::operator_norm_test {
namespace {

using ops::NormedRuns;
using ::testing::HasSubstr;

/// A strategy and the options that lead to it.
struct Way {
  Operator op;
  Form form;
  int shots = 0;
  Reduction reduction = Reduction::kOwner;
};
constexpr Way kWays[] = {{Operator::kGemmAllReduce, Form::kSuitable},
                         {Operator::kGemmAllReduce, Form::kOverlapped, 2},
                         {Operator::kGemmAllReduce, Form::kOverlapped, 2, Reduction::kChain},
                         {Operator::kGemmAllReduce, Form::kSequential},
                         {Operator::kGemmAllReduce, Form::kDecomposed},
                         {Operator::kGemmReduceScatter, Form::kSuitable},
                         {Operator::kGemmReduceScatter, Form::kOverlapped},
                         {Operator::kGemmReduceScatter, Form::kOverlapped, 0, Reduction::kChain},
                         {Operator::kGemmReduceScatter, Form::kSequential}};

struct Steps {
  Norm norm;
  bool residual, norm_bias, sum, in_place;
  Quantisation quantisation = Quantisation::kNone;
};
constexpr Steps kSteps[] = {{Norm::kRms, true, false, true, true},
                            {Norm::kLayer, true, true, true, false},
                            {Norm::kRms, true, false, false, false, Quantisation::kRow},
                            {Norm::kNone, true, false, false, false},
                            {Norm::kRms, false, true, true, false, Quantisation::kGroup},
                            {Norm::kLayer, true, false, true, true, Quantisation::kStatic},
                            {Norm::kNone, false, false, true, false}};
constexpr DType kTypes[] = {DType::kBF16, DType::kF16, DType::kF32, DType::kE4M3};
constexpr Size kRows[] = {17, 1, 64, 0, 33};
constexpr Size kColumns[] = {40, 136, 7, 300};

NormedRuns numbered(int number) {
  const auto pick = [](const auto& list, int at) { return list[static_cast<std::size_t>(at) % std::size(list)]; };
  const Way& way = pick(kWays, number);
  const Steps steps = pick(kSteps, number + number / 9);
  NormedRuns runs;
  runs.op = way.op;
  runs.sum_in_residual = steps.in_place;
  OperatorOptions& o = runs.options;
  o.m = pick(kRows, number + number / 7);
  o.n = pick(kColumns, number + number / 5);
  o.type = pick(kTypes, number + number / 3);
  o.form = way.form;
  o.shots = way.shots;
  if (way.form == Form::kOverlapped) o.reduction = way.reduction;
  o.tile_m = 16;
  o.tile_n = 32;
  o.use_tuned = false;
  o.norm = {steps.norm, steps.residual, steps.norm_bias, steps.sum, 1e-6, steps.quantisation};
  if (steps.quantisation == Quantisation::kStatic) o.norm.scale = 0.5;
  runs.rows = {o.m, std::max<Size>(o.m - 1, 0), o.m / 2, o.m};
  runs.own_buffers = number % 4 == 1;
  return runs;
}

std::string wrong(World& world, const NormedRuns& runs) {
  try {
    Stream main = world.make_stream("main");
    return wrong_of_normed_runs(world, main, runs);
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(OperatorNorm, IsExactInTheSimulator) {
  test::keep_memory();
  constexpr int kPes[] = {1, 2, 3, 5, 8};
  for (int number = 0; number < 70; ++number) {
    const NormedRuns runs = numbered(number);
    const int pes = kPes[number % 5];
    Simulation simulation(load_machine("h200x8"), pes);
    simulation.run([&](World& world) {
      EXPECT_EQ(wrong(world, runs), "") << number << ": " << name(runs.op) << " " << name(runs.options.form) << ", "
                                        << runs.options.m << "x" << runs.options.n << ", " << pes << " PEs";
    });
  }
}

TEST(OperatorNorm, IsExactBetweenNodes) {
  for (const int number : {0, 3, 5, 8, 14}) {
    const NormedRuns runs = numbered(number);
    SimOptions sim;
    sim.pes_per_node = 2;
    Simulation simulation(load_machine("h200x8"), 4, sim);
    simulation.run([&](World& world) { EXPECT_EQ(wrong(world, runs), "") << number; });
  }
}

TEST(OperatorNorm, IsExactOnCpus) {
  for (int number = 0; number < 18; ++number)
    test::HostPes(1 + number % 3, {.timeout_s = 60, .arrival_timeout_s = 120}).run([&](World& world) {
      EXPECT_EQ(wrong(world, numbered(number)), "") << number;
      world.barrier();
    });
}

/// The GEMM's blocks norm what they add up. Up to 32 rows every PE adds; for more, tiles have owners.
TEST(OperatorNorm, FewRowsInOneKernelAreExact) {
  test::keep_memory();
  struct Few {
    int pes;
    Size rows;
    bool residual, norm_bias, sum, in_place;
  };
  for (const Few& few :
       {Few{1, 3, true, true, true, false}, Few{2, 64, true, false, true, true}, Few{3, 40, false, false, true, false},
        Few{5, 16, true, false, false, false}, Few{8, 1, true, false, true, true}}) {
    NormedRuns runs;
    OperatorOptions& o = runs.options;
    o.m = few.rows;
    o.n = 7680;
    o.norm = {Norm::kRms, few.residual, few.norm_bias, few.sum};
    o.form = Form::kOverlapped;
    runs.rows = {few.rows, (few.rows + 1) / 2, few.rows};
    runs.sum_in_residual = few.in_place;
    runs.depth = 256;
    Simulation simulation(load_machine("h200x8"), few.pes);
    simulation.run(
        [&](World& world) { EXPECT_EQ(wrong(world, runs), "") << few.pes << " PEs, " << few.rows << " rows"; });
  }
}

std::string strategy(Form form, Size rows, DType type = DType::kF16, Norm norm = Norm::kRms) {
  std::string found;
  Simulation(load_machine("h200x4"), 4, {.phantom = true}).run([&](World& world) {
    OperatorOptions o{.m = 64, .n = 8192, .k = 8192, .type = type, .form = form};
    o.norm.norm = norm;
    found = make_operator(world, Operator::kGemmAllReduce, o)->strategy(rows);
  });
  return found;
}

TEST(OperatorNorm, FewRowsTakePacketsThatNorm) {
  EXPECT_EQ(strategy(Form::kSuitable, 1, DType::kBF16), "few_rows");
  EXPECT_EQ(strategy(Form::kSuitable, 1, DType::kBF16, Norm::kLayer), "packets");
  EXPECT_EQ(strategy(Form::kSuitable, 1), "packets");
  EXPECT_NE(strategy(Form::kSuitable, 64), "packets");
  EXPECT_EQ(strategy(Form::kSequential, 1), "sequential");
}

/// A small run whose options or arguments `change` breaks.
template <class Change>
std::string refusal(Operator op, const Change& change) {
  return test::refusal_of([&](World& world) {
    OperatorOptions options{.m = 4, .n = 8, .k = 8, .type = DType::kF32};
    options.norm = {.norm = Norm::kRms, .residual = true, .sum = true};
    const auto matrix = [&](const char* name) { return world.heap().allocate_local<float>(64, name); };
    const void* const b = matrix("b");
    void* const c = matrix("c");
    OperatorCall call{.m = 4, .a = matrix("a"), .b = {&b, 1}, .c = {&c, 1}};
    call.residual = matrix("residual");
    call.norm_weight = matrix("weight");
    call.sum = matrix("sum");
    change(options, call);
    const auto plan = make_operator(world, op, options);
    Stream stream = world.make_stream("main");
    plan->run(stream, call);
    stream.synchronize();
  });
}

TEST(OperatorNorm, RefusesOptionsAndArgumentsByName) {
  using O = OperatorOptions;
  using C = OperatorCall;
  const auto of = [](auto change) { return refusal(Operator::kGemmAllReduce, change); };
  EXPECT_EQ(of([](O&, C&) {}), "");
  EXPECT_EQ(of([](O& o, C&) { o.norm.epsilon = 0; }), "epsilon: 0 given, allowed are positive finite numbers of f32");
  EXPECT_EQ(of([](O& o, C&) { o.norm.scale = 2; }), "scale: 2 given with quantisation none, allowed with static");
  EXPECT_EQ(of([](O& o, C&) { o.norm.norm = static_cast<Norm>(9); }), "norm: 9 given, allowed is 0 to 2");
  EXPECT_EQ(of([](O& o, C&) { o.activation = Activation::kRelu; }),
            "activation: given with a norm or a residual, allowed is none");
  EXPECT_EQ(of([](O& o, C&) { o.norm.norm = Norm::kNone, o.norm.norm_bias = true; }),
            "norm_bias: given without a norm, allowed with rms and layer");
  EXPECT_EQ(of([](O&, C& c) { c.norm_bias = c.norm_weight; }),
            "norm_bias: given, but the plan's options announce none");
  EXPECT_THAT(of([](O&, C& c) { c.norm_weight = nullptr; }), HasSubstr("norm_weight: a null address given"));
  EXPECT_THAT(of([](O&, C& c) { c.sum = c.c[0]; }), HasSubstr("sum: 128 bytes at"));
  EXPECT_EQ(of([](O&, C& c) { c.sum = const_cast<void*>(c.residual); }), "");
  const auto of_gather = [](auto change) { return refusal(Operator::kAllGatherGemm, change); };
  EXPECT_EQ(of_gather([](O&, C&) {}), "");
  EXPECT_EQ(of_gather([](O& o, C&) { o.activation = Activation::kRelu; }), "");
  EXPECT_EQ(of_gather([](O& o, C&) { o.type = DType::kE4M3, o.a_scale_per_row = true; }), "");
  EXPECT_EQ(of_gather([](O& o, C&) { o.type = DType::kE4M3, o.out_type = DType::kE4M3; }),
            "out_type: fp8_e4m3 given, allowed for all_gather_gemm with a norm are bf16 and f16");
  EXPECT_EQ(of_gather([](O& o, C&) { o.norm.scale = 2; }),
            "scale: 2 given with quantisation none, allowed with static");
  EXPECT_EQ(of_gather([](O& o, C& c) {
              o.type = DType::kE4M3;
              c.a_scale = static_cast<const float*>(c.a);
            }),
            "a_scale: given, allowed with a norm of A is none: the norm makes the scales");
  EXPECT_EQ(of_gather([](O& o, C&) { o.norm.quantisation = Quantisation::kRow; }),
            "quantisation: row given, allowed for all_gather_gemm is none");
  EXPECT_EQ(of_gather([](O& o, C&) { o.k = Size{1} << 21; }),
            "k: 2097152 given, allowed is at most 1048576 with a norm");
  EXPECT_THAT(of_gather([](O&, C& c) { c.norm_weight = nullptr; }), HasSubstr("norm_weight: a null address given"));
  EXPECT_THAT(of_gather([](O&, C& c) { c.sum = const_cast<void*>(c.a); }), HasSubstr("sum: 64 bytes at"));
  EXPECT_EQ(of_gather([](O&, C& c) { c.sum = const_cast<void*>(c.residual); }), "");
}

}  // namespace
}  // namespace tandem::operator_norm_test
