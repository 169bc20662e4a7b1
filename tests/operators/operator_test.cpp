#include <gtest/gtest.h>

#include "operators/operator_case.h"
#include "tandem/error.h"

namespace tandem {
namespace {

using test::OperatorCase;
using test::Place;

constexpr Place kPlaces[] = {{"h200x8", 1},         {"h200x8", 2},         {"h200x8", 3},      {"h200x8", 4},
                             {"h200x8", 5},         {"h200x8", 8},         {"mi300x8", 4},     {"h200x8", 4, 2},
                             {"h200x8", 8, 4},      {"h200x8", 9, 3},      {"h200x8", 3, 1},   {"h100x8-rail", 4, 2},
                             {"h100x8-rail", 8, 4}, {"h100x8-rail", 9, 3}, {"h100x8-rail", 16}};

struct Shape {
  Size m, n, k;
};
constexpr Shape kShapes[] = {{65, 33, 17}, {5, 7, 3}, {130, 257, 65}, {1, 1, 1}, {97, 64, 32}, {64, 129, 16}};
constexpr DType kTypes[] = {DType::kBF16, DType::kF16, DType::kF32};
constexpr int kSplits[] = {1, 2, 3, 8};
constexpr int kSms[] = {-1, 1, 3};

/// Everything else is chosen by `number`, so that over many numbers everything meets everything.
OperatorCase numbered_case(const Place& place, Operator op, CopyBy copy_by, Direction direction, Form form,
                           int number) {
  const auto orders = tile_orders(op);
  OperatorCase test;
  test.place = place;
  test.op = op;
  test.seed = static_cast<std::uint64_t>(number + 1);
  test.stragglers = number % 2 == 0;
  test.gathered = op == Operator::kAllGatherGemm && number % 3 != 0;
  OperatorOptions& o = test.options;
  const auto pick = [&number](const auto& list) {
    const auto size = static_cast<int>(std::size(list));
    const int at = number % size;
    number = number / size + 3 * at;
    return list[static_cast<std::size_t>(at)];
  };
  const Shape shape = pick(kShapes);
  o.splits = pick(kSplits);
  o.order = pick(orders);
  o.type = pick(kTypes);
  o.communication_sms = pick(kSms);
  o.m = shape.m;
  o.n = shape.n;
  o.k = shape.k;
  o.form = form;
  o.copy_by = copy_by;
  o.direction = direction;
  o.tile_m = 16;
  o.tile_n = 32;
  return test;
}

void check_all(Operator op, Form form) {
  int number = static_cast<int>(form) * 7 + static_cast<int>(op) * 3;
  for (const Place& place : kPlaces)
    for (const CopyBy copy_by : {CopyBy::kCopyEngine, CopyBy::kSm})
      for (const Direction direction : {Direction::kPush, Direction::kPull}) {
        const OperatorCase test = numbered_case(place, op, copy_by, direction, form, number++);
        SCOPED_TRACE(::testing::Message() << test);
        const test::Outcome outcome = test::run(test);
        EXPECT_EQ(outcome.wrong, 0) << "of " << outcome.checked;
        const bool has_result = form != Form::kComputeOnly && form != Form::kCommunicationOnly;
        const int copies = op == Operator::kGemmAllReduce ? place.pes : 1;
        EXPECT_EQ(outcome.checked, has_result ? copies * test.runs * test.options.m * test.options.n : 0);
      }
}

TEST(AllGatherGemm, OverlappedIsExactEverywhere) { check_all(Operator::kAllGatherGemm, Form::kOverlapped); }
TEST(AllGatherGemm, SequentialIsExactEverywhere) { check_all(Operator::kAllGatherGemm, Form::kSequential); }
TEST(AllGatherGemm, DecomposedIsExactEverywhere) { check_all(Operator::kAllGatherGemm, Form::kDecomposed); }
TEST(AllGatherGemm, PartsAloneRun) {
  check_all(Operator::kAllGatherGemm, Form::kComputeOnly);
  check_all(Operator::kAllGatherGemm, Form::kCommunicationOnly);
}
TEST(GemmReduceScatter, OverlappedIsExactEverywhere) { check_all(Operator::kGemmReduceScatter, Form::kOverlapped); }
TEST(GemmReduceScatter, SequentialIsExactEverywhere) { check_all(Operator::kGemmReduceScatter, Form::kSequential); }
TEST(GemmReduceScatter, DecomposedIsExactEverywhere) { check_all(Operator::kGemmReduceScatter, Form::kDecomposed); }
TEST(GemmReduceScatter, PartsAloneRun) {
  check_all(Operator::kGemmReduceScatter, Form::kComputeOnly);
  check_all(Operator::kGemmReduceScatter, Form::kCommunicationOnly);
}

/// Every transport with every number of splits and every order, 20 seeds: late PEs and changing data.
void check_seeds(Operator op) {
  constexpr Place kSome[] = {{"h200x8", 4}, {"h200x8", 4, 2}, {"mi300x8", 5}, {"h100x8-rail", 6, 3}};
  for (int number = 0; number < 80; ++number) {
    const auto copy_by = number / 4 % 2 == 0 ? CopyBy::kCopyEngine : CopyBy::kSm;
    const auto direction = number / 8 % 2 == 0 ? Direction::kPush : Direction::kPull;
    OperatorCase test = numbered_case(kSome[number % 4], op, copy_by, direction, Form::kOverlapped, number);
    test.stragglers = true;
    test.fewer_rows = number % 2 == 0;
    test.runs = 4;
    test.options.m = 97;
    test.options.n = 40;
    test.options.k = 24;
    test.options.splits = 1 + number / 2 % 8;
    const auto orders = tile_orders(op);
    test.options.order = orders[static_cast<std::size_t>(number / 16) % orders.size()];
    SCOPED_TRACE(::testing::Message() << test);
    EXPECT_EQ(test::run(test).wrong, 0);
  }
}

TEST(AllGatherGemm, SurvivesStragglersAndSeeds) { check_seeds(Operator::kAllGatherGemm); }
TEST(GemmReduceScatter, SurvivesStragglersAndSeeds) { check_seeds(Operator::kGemmReduceScatter); }

constexpr Place kNodes[] = {{"h200x8", 1}, {"h200x8", 2}, {"h200x8", 3}, {"h200x8", 5}, {"h200x8", 8}, {"mi300x8", 4}};

TEST(GemmAllReduce, OverlappedIsExactOnOneNode) {
  int number = 0;
  for (const Place& place : kNodes)
    for (int i = 0; i < 8; ++i) {
      OperatorCase test = numbered_case(place, Operator::kGemmAllReduce, CopyBy::kCopyEngine, Direction::kPush,
                                        Form::kOverlapped, number++);
      test.runs = 4;
      SCOPED_TRACE(::testing::Message() << test);
      EXPECT_EQ(test::run(test).wrong, 0);
    }
}

TEST(GemmAllReduce, SequentialIsExactEverywhere) { check_all(Operator::kGemmAllReduce, Form::kSequential); }

TEST(GemmReduceScatter, ChainIsExactOnOneNode) {
  int number = 0;
  for (const Place& place : kNodes)
    for (int i = 0; i < 8; ++i) {
      const CopyBy copy_by = i % 2 == 0 ? CopyBy::kSm : CopyBy::kCopyEngine;
      OperatorCase test =
          numbered_case(place, Operator::kGemmReduceScatter, copy_by, Direction::kPush, Form::kOverlapped, number++);
      test.options.reduction = Reduction::kChain;
      test.options.order = "";  // a chain has its own
      test.options.panel_group = i % 3;
      test.fewer_rows = i >= 4;
      test.runs = test.fewer_rows ? 7 : 4;
      SCOPED_TRACE(::testing::Message() << test);
      EXPECT_EQ(test::run(test).wrong, 0);
    }
}

/// By copy engines alone, and by SMs: none beside the GEMM, or some.
TEST(GemmAllReduce, ChainIsExactOnOneNode) {
  constexpr int kFetching[] = {-1, 0, 1, 2, 5};
  int number = 0;
  for (const Place& place : kNodes)
    for (int i = 0; i < 10; ++i) {
      const CopyBy copy_by = i % 2 == 0 ? CopyBy::kSm : CopyBy::kCopyEngine;
      OperatorCase test =
          numbered_case(place, Operator::kGemmAllReduce, copy_by, Direction::kPush, Form::kOverlapped, number++);
      test.options.reduction = Reduction::kChain;
      test.options.order = "";  // a chain has its own
      test.options.shots = 2;
      test.options.communication_sms = kFetching[i / 2];
      test.fewer_rows = i >= 4;
      test.runs = test.fewer_rows ? 7 : 4;
      SCOPED_TRACE(::testing::Message() << test);
      EXPECT_EQ(test::run(test).wrong, 0);
    }
}

TEST(GemmReduceScatter, ChainIsRefusedBetweenNodes) {
  OperatorCase test = numbered_case({"h200x8", 4, 2}, Operator::kGemmReduceScatter, CopyBy::kSm, Direction::kPush,
                                    Form::kOverlapped, 0);
  test.options.reduction = Reduction::kChain;
  EXPECT_THROW(test::run(test), InvalidArgument);
}

TEST(Operators, SelectedOptionsAreExactEverywhere) {
  for (const Operator op : {Operator::kAllGatherGemm, Operator::kGemmReduceScatter, Operator::kGemmAllReduce})
    for (const Place& place : {Place{"h200x8", 2}, Place{"h200x8", 4}, Place{"h100x8-rail", 4, 2}})
      for (const Size m : {5, 260}) {
        Simulation simulation(load_machine(place.machine), place.pes, {.pes_per_node = place.pes_per_node});
        OperatorCase test;
        test.place = place;
        test.op = op;
        simulation.run([&](World& world) {
          if (world.pe() == 0) test.options = selected_options(world, op, m, 24, 32, DType::kBF16);
        });
        SCOPED_TRACE(::testing::Message() << test);
        EXPECT_EQ(test::run(test).wrong, 0);
      }
}

TEST(Operators, SameSeedSameTraceOtherSeedSameNumbers) {
  for (const Operator op : {Operator::kAllGatherGemm, Operator::kGemmReduceScatter}) {
    OperatorCase test = numbered_case({"h200x8", 4}, op, CopyBy::kCopyEngine, Direction::kPush, Form::kOverlapped, 2);
    const test::Outcome first = test::run(test);
    EXPECT_EQ(first.trace_hash, test::run(test).trace_hash);
    test.seed += 1;
    const test::Outcome other = test::run(test);
    EXPECT_NE(first.trace_hash, other.trace_hash);
    EXPECT_EQ(other.wrong, 0);
  }
}

TEST(Operators, NothingToDoForZeroRows) {
  for (const Operator op : {Operator::kAllGatherGemm, Operator::kGemmReduceScatter}) {
    OperatorCase test = numbered_case({"h200x8", 3}, op, CopyBy::kCopyEngine, Direction::kPush, Form::kOverlapped, 0);
    test.options.m = 0;
    const test::Outcome outcome = test::run(test);
    EXPECT_EQ(outcome.checked, 0);
  }
}

}  // namespace
}  // namespace tandem
