#include <gtest/gtest.h>

#include <array>

#include "operators/operator_case.h"

namespace tandem::gemm_all_reduce_test {
namespace {

using test::OperatorCase;
using test::Place;

struct Shape {
  Size m, n, k;
};
constexpr std::array<Shape, 6> kShapes{
    {{65, 33, 17}, {5, 7, 3}, {130, 257, 65}, {1, 1, 1}, {1, 96, 40}, {64, 129, 16}}};
constexpr std::array kTypes{DType::kBF16, DType::kF16, DType::kF32};
constexpr std::array kMovers{CopyBy::kCopyEngine, CopyBy::kSm};
constexpr std::array kDirections{Direction::kPush, Direction::kPull};
constexpr std::array kSplits{1, 2, 3, 8};
constexpr std::array kSms{-1, 0, 1, 3};

/// Everything else is chosen by `number`, so that over many numbers everything meets everything.
OperatorCase numbered_case(const Place& place, int shots, Form form, int number) {
  OperatorCase test;
  test.place = place;
  test.op = Operator::kGemmAllReduce;
  test.seed = static_cast<std::uint64_t>(number + 1);
  test.runs = 4;
  test.stragglers = number % 2 == 0;
  test.crowded = number % 4 == 1;
  test.fewer_rows = number % 3 != 0;
  OperatorOptions& o = test.options;
  o.shots = shots;
  o.form = form;
  const auto pick = [&number](const auto& list) {
    const auto size = static_cast<int>(list.size());
    const int at = number % size;
    number = number / size + 3 * at;
    return list[static_cast<std::size_t>(at)];
  };
  const Shape shape = pick(kShapes);
  o.m = shape.m;
  o.n = shape.n;
  o.k = shape.k;
  o.splits = pick(kSplits);
  o.type = pick(kTypes);
  o.copy_by = pick(kMovers);
  o.direction = pick(kDirections);
  o.order = pick(tile_orders(test.op));
  o.communication_sms = pick(kSms);
  o.reduction = Reduction::kOwner;
  o.tile_m = 16;
  o.tile_n = 32;
  return test;
}

void check(const OperatorCase& test) {
  SCOPED_TRACE(::testing::Message() << test);
  Size elements = 0;
  for (int run = 0; run < test.runs; ++run) elements += test.options_of(run).m * test.options.n * test.place.pes;
  const test::Outcome outcome = test::run(test);
  EXPECT_EQ(outcome.wrong, 0) << "of " << outcome.checked;
  EXPECT_EQ(outcome.checked, elements);
}

void check_all(int shots, Form form) {
  int number = static_cast<int>(form) * 5 + shots;
  for (const char* const machine : {"h200x8", "mi300x8"})
    for (int pes = 1; pes <= 8; ++pes)
      for (int i = 0; i < 4; ++i) check(numbered_case({machine, pes}, shots, form, number++));
}

TEST(GemmAllReduce, OneShotWithPacketsIsExact) {
  for (const Form form : {Form::kOverlapped, Form::kSequential, Form::kDecomposed}) check_all(1, form);
}
TEST(GemmAllReduce, TwoShotIsExact) { check_all(2, Form::kOverlapped); }
TEST(GemmAllReduce, TwoShotSequentialIsExact) { check_all(2, Form::kSequential); }
TEST(GemmAllReduce, TwoShotDecomposedIsExact) { check_all(2, Form::kDecomposed); }

TEST(GemmAllReduce, BetweenNodesIsExact) {
  constexpr Place kPlaces[] = {{"h200x8", 4, 2}, {"h200x8", 9, 3},      {"h200x8", 3, 1},
                               {"h200x8", 8, 4}, {"h100x8-rail", 9, 3}, {"h100x8-rail", 16}};
  int number = 0;
  for (const Place& place : kPlaces)
    for (const Form form : {Form::kOverlapped, Form::kSequential, Form::kDecomposed})
      check(numbered_case(place, 0, form, number++));
}

TEST(GemmAllReduce, PartsAloneRun) {
  for (const Form form : {Form::kComputeOnly, Form::kCommunicationOnly})
    for (const Place& place : {Place{"h200x8", 1}, Place{"h200x8", 4}, Place{"h200x8", 4, 2}})
      for (const int shots : {0, 1, 2}) EXPECT_EQ(test::run(numbered_case(place, shots, form, shots)).checked, 0);
}

/// Results above half a megabyte: the GEMM stores its tiles to all PEs.
TEST(GemmAllReduce, OneShotTileByTileIsExact) {
  for (int number = 0; number < 12; ++number) {
    OperatorCase test =
        numbered_case({number % 3 == 0 ? "mi300x8" : "h200x8", 1 + number % 8}, 1, Form::kOverlapped, number);
    test.options.type = DType::kF32;
    test.options.m = 150 + 7 * number;
    test.options.n = 1001;
    test.options.k = 17;
    test.options.tile_m = test.options.tile_n = 64;
    test.stragglers = false;
    test.crowded = number % 4 != 0;
    test.fewer_rows = number % 2 == 1;
    check(test);
  }
}

/// Runs of few rows take one shot and runs of many rows two, in one plan, one after the other.
TEST(GemmAllReduce, OnePlanServesFewAndManyRows) {
  OperatorCase test;
  test.place = {"h200x8", 4};
  test.op = Operator::kGemmAllReduce;
  test.options = {.m = 1600, .n = 256, .k = 8, .type = DType::kF32};  // up to 512 rows, as the machine is
  test.fewer_rows = true;
  test.runs = 6;
  check(test);
}

/// How a plan of 8192 x 16384 x 65536 carries out runs of `rows`.
std::string strategy(Operator op, OperatorOptions options, Size rows, int pes_per_node = 0) {
  SimOptions sim;
  sim.phantom = true;
  sim.pes_per_node = pes_per_node;
  sim.heap_bytes = Size{64} << 30;
  std::string found;
  Simulation(load_machine("h200x8"), 4, sim).run([&](World& world) {
    options.m = 8192;
    options.n = 16384;
    options.k = 65536;
    found = make_operator(world, op, options)->strategy(rows);
  });
  return found;
}

/// Returns the strategy of a plan of 256 rows on a machine without a GEMM model, as real GPUs have.
std::string strategy_on_gpus(Size rows) {
  SimOptions sim;
  sim.phantom = true;
  sim.plan_for = DeviceKind::kGpu;
  std::string found;
  Simulation(load_machine("h200x4"), 4, sim).run([&](World& world) {
    const OperatorOptions options{.m = 256, .n = 8192, .k = 28672};
    found = make_operator(world, Operator::kGemmAllReduce, options)->strategy(rows);
  });
  return found;
}

/// Up to 32 rows every PE adds. For more rows between three PEs or more, each tile's sums have an owner.
TEST(GemmAllReduce, FewRowsThatTheGemmAddsUpAreExact) {
  struct Few {
    int pes;
    Size rows;
  };
  for (const Few& few : {Few{2, 64}, Few{3, 40}, Few{4, 16}, Few{4, 100}}) {
    OperatorCase test;
    test.place.pes = few.pes;
    test.op = Operator::kGemmAllReduce;
    test.options = {.m = few.rows, .n = 7680, .k = Size{256} * few.pes};
    test.stragglers = true;
    test.fewer_rows = true;
    check(test);
  }
}

TEST(GemmAllReduce, FewRowsThatTheGemmAddsUpTakeOneTripMoreThanTheGemm) {
  const Place place{"h200x4", 4};
  const OperatorOptions options{.m = 16, .n = 8192, .k = 28672};
  const double whole = test::phantom_us(place, Operator::kGemmAllReduce, options);
  const Machine machine = load_machine(place.machine);
  const double alone = gemm_alone_us(machine, options.m, options.n, options.k / place.pes, 2, machine.gpu.sm_count);
  EXPECT_GT(whole, alone + machine.link.latency_us);
  EXPECT_LT(whole, alone + 6);  // packets behind the GEMM take 8 us
}

TEST(GemmAllReduce, PlansSayForWhichFewRowsThereIsAKernel) {
  for (const Size rows : {1, 64, 128, 208, 256}) EXPECT_EQ(strategy_on_gpus(rows), "few_rows") << rows;
  for (const Size rows : {129, 207}) EXPECT_NE(strategy_on_gpus(rows), "few_rows") << rows;
}

TEST(GemmAllReduce, PlansSayWhatRunsOfFewAndManyRowsAre) {
  const Operator op = Operator::kGemmAllReduce;
  EXPECT_EQ(strategy(op, {}, 64), "few_rows");
  EXPECT_EQ(strategy(op, {.type = DType::kF16}, 1), "packets");
  EXPECT_EQ(strategy(op, {.type = DType::kF16}, 32), "one_shot");
  EXPECT_EQ(strategy(op, {}, 512), "sequential");
  EXPECT_EQ(strategy(op, {.form = Form::kOverlapped}, 8192), "two_shot");
  EXPECT_EQ(strategy(op, {.reduction = Reduction::kChain, .shots = 2}, 8192), "chain");
  EXPECT_EQ(strategy(op, {.form = Form::kSequential}, 1), "sequential");
  EXPECT_EQ(strategy(op, {.form = Form::kDecomposed}, 1), "decomposed");
  EXPECT_EQ(strategy(op, {.form = Form::kComputeOnly}, 1), "compute_only");
  EXPECT_EQ(strategy(op, {.form = Form::kOverlapped}, 1, 2), "chunks");
  EXPECT_EQ(strategy(op, {.type = DType::kF16, .activation = Activation::kGelu}, 1), "one_shot");
  EXPECT_EQ(strategy(op, {.activation = Activation::kGelu, .form = Form::kSequential}, 1, 2), "by_shards");
  EXPECT_EQ(strategy(Operator::kGemmReduceScatter, {}, 1), "sequential");
  EXPECT_EQ(strategy(Operator::kGemmReduceScatter, {}, 8192), "overlapped");
}

TEST(GemmAllReduce, ChainsRunWithoutContents) {
  for (const CopyBy by : {CopyBy::kCopyEngine, CopyBy::kSm})
    for (const int sms : {-1, 4}) {
      OperatorOptions options{.m = 4096, .n = 4096, .k = 4096, .form = Form::kOverlapped, .copy_by = by};
      options.reduction = Reduction::kChain;
      options.communication_sms = sms;
      EXPECT_GT(test::phantom_us({"h200x4", 4}, Operator::kGemmAllReduce, options), 0) << sms;
    }
}

TEST(GemmAllReduce, BlocksThatFetchBesideTheGemmLeaveItsSmsToIt) {
  OperatorOptions options{.m = 8192, .n = 8192, .k = 8192, .form = Form::kOverlapped, .copy_by = CopyBy::kCopyEngine};
  options.reduction = Reduction::kChain;
  options.splits = 2;
  SimOptions sim;
  sim.phantom = true;
  sim.heap_bytes = Size{8} << 30;
  for (const char* const machine : {"h200x4", "h200x4-calibrated"})
    for (const int sms : {3, 4, 16}) {
      options.communication_sms = sms;
      Simulation(load_machine(machine), 4, sim).run([&](World& world) {
        const Size bytes = 2 * options.m * options.n;
        auto* const memory = world.heap().allocate_local<std::byte>(2 * bytes, "a and b, c");
        auto plan = make_operator(world, Operator::kGemmAllReduce, options);
        Stream stream = world.make_stream("main");
        for (int call = 0; call < 3; ++call) plan->run(stream, memory, memory, memory + bytes);
        EXPECT_NO_THROW(stream.synchronize()) << machine << ", " << sms << " SMs";
      });
    }
}

TEST(GemmAllReduce, SameSeedSameTrace) {
  for (const int shots : {1, 2}) {
    OperatorCase test = numbered_case({"h200x8", 4}, shots, Form::kOverlapped, 2);
    const test::Outcome first = test::run(test);
    EXPECT_EQ(first.trace_hash, test::run(test).trace_hash);
    test.seed += 1;
    EXPECT_NE(first.trace_hash, test::run(test).trace_hash);
  }
}

}  // namespace
}  // namespace tandem::gemm_all_reduce_test
