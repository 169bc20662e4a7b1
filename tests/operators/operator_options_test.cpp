#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "operators/operator_case.h"
#include "tandem/error.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string refusal(Simulation&& simulation, Operator op, const std::function<void(OperatorOptions&)>& change) {
  OperatorOptions options{.m = 64, .n = 64, .k = 64};
  change(options);
  std::string message;
  try {
    simulation.run([&](World& world) { make_operator(world, op, options); });
  } catch (const InvalidArgument& error) {
    message = error.what();
  }
  return message;
}

std::string refusal(Operator op, const std::function<void(OperatorOptions&)>& change) {
  return refusal(Simulation(load_machine("h200x4"), 2), op, change);
}

std::string refusal_on_gpus(int pes, Operator op, const std::function<void(OperatorOptions&)>& change) {
  return refusal(Simulation(load_machine("h200x4"), pes, {.plan_for = DeviceKind::kGpu}), op, change);
}

TEST(OperatorOptions, NamesWhatIsWrong) {
  const Operator gather = Operator::kAllGatherGemm;
  const Operator scatter = Operator::kGemmReduceScatter;
  EXPECT_EQ(refusal(gather, [](OperatorOptions&) {}), "");
  EXPECT_EQ(refusal(scatter, [](OperatorOptions& o) { o.m = -1; }), "m: -1 given, allowed is 0 or more");
  EXPECT_EQ(refusal(gather, [](OperatorOptions& o) { o.n = 0; }), "n: 0 given, allowed is 1 or more");
  EXPECT_EQ(refusal(gather, [](OperatorOptions& o) { o.k = 0; }), "k: 0 given, allowed is 1 or more");
  EXPECT_EQ(refusal(gather, [](OperatorOptions& o) { o.splits = 9; }),
            "splits: 9 given, allowed is 1 to 8, or 0 for what suits");
  EXPECT_EQ(refusal(gather, [](OperatorOptions& o) { o.ns = {32, 31}; }), "ns: 63 given, allowed is n, 64, in all");
  EXPECT_EQ(refusal(scatter,
                    [](OperatorOptions& o) {
                      o.ns = {32, 32};
                    }),
            "ns: a list of 2 given, allowed for gemm_reduce_scatter is none: it has one B, of n");
  EXPECT_EQ(refusal(gather, [](OperatorOptions& o) { o.tile_m = 0; }), "tile_m: 0 given, allowed is 1 or more");
  EXPECT_EQ(refusal(gather, [](OperatorOptions& o) { o.tile_n = -8; }), "tile_n: -8 given, allowed is 1 or more");
  EXPECT_EQ(refusal(gather, [](OperatorOptions& o) { o.type = DType::kI8; }),
            "type: i8 given, allowed for all_gather_gemm are bf16, f16, f32, fp8_e4m3");
  EXPECT_EQ(refusal(gather, [](OperatorOptions& o) { o.order = "peers_first"; }),
            "order: 'peers_first' given, allowed for all_gather_gemm are own_first, ring, interleaved, own_node_first");
  EXPECT_EQ(refusal(scatter, [](OperatorOptions& o) { o.order = "ring"; }),
            "order: 'ring' given, allowed for gemm_reduce_scatter are peers_first, other_nodes_first");
  EXPECT_EQ(refusal(Operator::kGemmAllReduce, [](OperatorOptions& o) { o.order = "ring"; }),
            "order: 'ring' given, allowed for gemm_all_reduce are parts_first, peers_first");
  EXPECT_EQ(refusal(Operator::kGemmAllReduce, [](OperatorOptions& o) { o.shots = 3; }),
            "shots: 3 given, allowed is 1, 2, or 0 for what suits the rows");
  EXPECT_EQ(refusal(scatter, [](OperatorOptions& o) { o.shots = 1; }), "shots: 1 given, allowed is 0");
}

TEST(OperatorOptions, OnGpusEachPeHasRowsOf16Bytes) {
  const Operator gather = Operator::kAllGatherGemm;
  const Operator scatter = Operator::kGemmReduceScatter;
  const auto nothing = [](OperatorOptions&) {};
  EXPECT_EQ(refusal_on_gpus(1, gather, nothing), "");
  EXPECT_EQ(refusal_on_gpus(2, scatter, nothing), "");
  EXPECT_EQ(refusal_on_gpus(3, gather, nothing),
            "n: 64 given, allowed is on GPUs what gives each of 3 PEs a multiple of 8; PE 0 has 22");
  EXPECT_EQ(refusal_on_gpus(3, Operator::kGemmAllReduce, nothing),
            "k: 64 given, allowed is on GPUs what gives each of 3 PEs a multiple of 8; PE 0 has 22");
  EXPECT_EQ(refusal_on_gpus(3, gather, [](OperatorOptions& o) { o.n = 72; }), "");
  // Parts of 16, 16 and 14: those that could run would wait for the last.
  EXPECT_EQ(refusal_on_gpus(3, scatter, [](OperatorOptions& o) { o.k = 46; }),
            "k: 46 given, allowed is on GPUs what gives each of 3 PEs a multiple of 8; PE 2 has 14");
  EXPECT_EQ(refusal_on_gpus(2, gather, [](OperatorOptions& o) { o.k = 60; }),
            "k: 60 given, allowed is on GPUs a multiple of 8");
  EXPECT_EQ(refusal_on_gpus(2, gather, [](OperatorOptions& o) { o.ns = {48, 16}; }), "");
  EXPECT_EQ(refusal_on_gpus(2, gather,
                            [](OperatorOptions& o) {
                              o.ns = {40, 24};
                            }),
            "ns: 40 given, allowed is on GPUs what gives each of 2 PEs a multiple of 8; PE 0 has 20");
  EXPECT_EQ(refusal_on_gpus(2, gather,
                            [](OperatorOptions& o) {
                              o.type = DType::kE4M3;
                              o.k = 72;
                            }),
            "k: 72 given, allowed is on GPUs a multiple of 16");
}

TEST(OperatorOptions, OnGpusWhatNoKernelDoesIsRefusedWhenThePlanIsMade) {
  const Operator scatter = Operator::kGemmReduceScatter;
  EXPECT_EQ(refusal_on_gpus(2, scatter, [](OperatorOptions& o) { o.type = DType::kF32; }),
            "type: f32 given, allowed for gemm_reduce_scatter on GPUs are bf16, f16, fp8_e4m3");
  EXPECT_EQ(refusal_on_gpus(2, scatter, [](OperatorOptions& o) { o.communication_sms = 128; }), "");
  EXPECT_EQ(refusal_on_gpus(2, scatter, [](OperatorOptions& o) { o.communication_sms = 129; }),
            "communication_sms: 129 given, allowed is 0 to 128 on h200x4, or -1 for what the transport needs");
}

TEST(OperatorOptions, OnGpusMatricesBeginAtMultiplesOf16Bytes) {
  Simulation(load_machine("h200x4"), 2, {.plan_for = DeviceKind::kGpu}).run([](World& world) {
    const auto plan = make_operator(world, Operator::kGemmReduceScatter, {.m = 64, .n = 64, .k = 64});
    Stream stream = world.make_stream("main");
    std::byte* const memory = world.heap().allocate_local<std::byte>(1 << 16, "matrices");
    const auto error = [&](Size a, Size c) -> std::string {
      try {
        plan->run(stream, memory + a, memory + 16384, memory + 32768 + c);
      } catch (const InvalidArgument& refused) {
        return refused.what();
      }
      return "";
    };
    EXPECT_THAT(error(8, 0), AllOf(HasSubstr("a: "), HasSubstr("given, allowed are multiples of 16 bytes")));
    EXPECT_THAT(error(0, 2), AllOf(HasSubstr("c: "), HasSubstr("given, allowed are multiples of 16 bytes")));
  });
}

TEST(OperatorOptions, AChainGoesItsOwnWay) {
  const auto chain = [](Direction direction, const char* order) {
    return refusal(Operator::kGemmReduceScatter, [&](OperatorOptions& o) {
      o.reduction = Reduction::kChain;
      o.direction = direction;
      o.order = order;
    });
  };
  EXPECT_EQ(chain(Direction::kPush, "peers_first"), "");
  EXPECT_EQ(chain(Direction::kPull, ""),
            "direction: kPull given, allowed for a chain is kPush: each PE sends its sums on");
  EXPECT_EQ(chain(Direction::kPush, "other_nodes_first"),
            "order: other_nodes_first given, allowed for a chain is peers_first, in which sums go on");
  const auto gather_with = [](Reduction reduction) {
    return refusal(Operator::kAllGatherGemm, [&](OperatorOptions& o) { o.reduction = reduction; });
  };
  EXPECT_EQ(gather_with(Reduction::kChain),
            "reduction: kChain given, allowed for all_gather_gemm is none: it adds nothing up");
  EXPECT_EQ(gather_with(Reduction::kOwner), "");  // what a plan's options() say
}

/// Bytes of data that plans hold as a PE's own buffers, for which no heap grows.
Size own_data(Operator op, const OperatorOptions& options) {
  Size bytes = -1;
  Simulation simulation(load_machine("h200x4"), 4);
  simulation.run([&](World& world) {
    constexpr Size kMark = 256;
    const auto* const before = world.heap().allocate_local<std::byte>(kMark, "before");
    const auto plan = make_operator(world, op, options);
    const auto* const after = world.heap().allocate_local<std::byte>(kMark, "after");
    if (world.pe() == 1) bytes = before - after - kMark;
  });
  return bytes;
}

TEST(OperatorOptions, PlansTakeDataThatTheHeapGrowsFor) {
  for (const Operator op : {Operator::kAllGatherGemm, Operator::kGemmReduceScatter, Operator::kGemmAllReduce})
    for (const CopyBy by : {CopyBy::kSm, CopyBy::kCopyEngine})
      for (const Reduction reduction : {Reduction::kOwner, Reduction::kChain})
        for (const Size m : {16, 4096}) {
          OperatorOptions options{.m = m, .n = 2048, .k = 256, .copy_by = by};
          if (op != Operator::kAllGatherGemm) options.reduction = reduction;
          EXPECT_EQ(own_data(op, options), 0) << name(op) << " of " << m << " rows";
        }
}

TEST(OperatorOptions, WhatCannotBeIsRefused) {
  const Operator gather = Operator::kAllGatherGemm;
  EXPECT_EQ(refusal(gather, [](OperatorOptions& o) { o.m = Size{1} << 62; }),
            "m: 4611686018427387904 given, allowed is at most 1073741824");
  EXPECT_EQ(refusal(gather, [](OperatorOptions& o) { o.n = (Size{1} << 30) + 8; }),
            "n: 1073741832 given, allowed is at most 1073741824");
  EXPECT_EQ(refusal(gather, [](OperatorOptions& o) { o.k = Size{1} << 31; }),
            "k: 2147483648 given, allowed is at most 1073741824");
  EXPECT_EQ(refusal(gather, [](OperatorOptions& o) { o.form = static_cast<Form>(99); }),
            "form: 99 given, allowed is 0 to 5");
  EXPECT_EQ(refusal(static_cast<Operator>(99), [](OperatorOptions&) {}), "op: 99 given, allowed is 0 to 2");
}

TEST(OperatorOptions, CommunicationSmsLeaveOneForTheGemm) {
  const auto sms = [](int given, CopyBy copy_by) {
    return refusal(Operator::kAllGatherGemm, [=](OperatorOptions& o) {
      o.communication_sms = given;
      o.copy_by = copy_by;
    });
  };
  EXPECT_EQ(sms(131, CopyBy::kSm), "");
  EXPECT_EQ(sms(0, CopyBy::kCopyEngine), "");
  EXPECT_THAT(sms(132, CopyBy::kSm), HasSubstr("communication_sms: 132 given, allowed is 1 to 131 on h200x4"));
  EXPECT_THAT(sms(0, CopyBy::kSm), HasSubstr("communication_sms: 0 given"));
  EXPECT_THAT(sms(-2, CopyBy::kCopyEngine), HasSubstr("communication_sms: -2 given, allowed is 0 to 131"));
}

/// The layers of the project's own measurements: overlapping must pay on the model as it does on the machine.
TEST(OperatorTiming, OverlappingPaysAtFullSize) {
  const test::Place place{"h200x4", 4};
  for (const Operator op : {Operator::kAllGatherGemm, Operator::kGemmReduceScatter}) {
    OperatorOptions options{.m = 8192, .n = 28672, .k = 4096};
    if (op == Operator::kGemmReduceScatter) std::swap(options.n, options.k);
    const auto us = [&](Form form) {
      OperatorOptions changed = options;
      changed.form = form;
      return test::phantom_us(place, op, changed);
    };
    const double overlapped = us(Form::kOverlapped);
    const double sequential = us(Form::kSequential);
    const double compute = us(Form::kComputeOnly);
    const double communication = us(Form::kCommunicationOnly);
    SCOPED_TRACE(::testing::Message() << name(op) << ": overlapped " << overlapped << ", sequential " << sequential
                                      << ", compute " << compute << ", communication " << communication);
    EXPECT_LT(overlapped, sequential);
    EXPECT_LT(overlapped, us(Form::kDecomposed));
    EXPECT_GE(overlapped, compute);
    EXPECT_GE(sequential, compute + communication - 20);
  }
}

/// For few rows all SMs stream the weights, in the simulated kernel as in the model of a GEMM alone.
TEST(OperatorTiming, AGemmOfFewRowsTakesItsWeightsTime) {
  const test::Place place{"h200x4", 4};
  const Machine machine = load_machine(place.machine);
  for (const Size m : {1, 16, 64, 128}) {
    OperatorOptions options{.m = m, .n = 8192, .k = 28672};
    options.form = Form::kComputeOnly;
    const double alone = gemm_alone_us(machine, m, options.n, options.k / 4, 2, machine.gpu.sm_count);
    EXPECT_NEAR(test::phantom_us(place, Operator::kGemmAllReduce, options), alone, 0.1 * alone) << m;
  }
}

/// Rows that arrive in four shards read weights of 235 MB four times. The choice between the forms counts on it.
TEST(OperatorTiming, ShardsOfFewRowsReadTheWeightsAgain) {
  const test::Place place{"h200x4-calibrated", 4};
  const OperatorOptions options{.m = 1024, .n = 57344, .k = 8192, .form = Form::kOverlapped};
  const double measured_us = 417.8;  // four H200, bench/results/h200x4.json
  EXPECT_NEAR(test::phantom_us(place, Operator::kAllGatherGemm, options), measured_us, 0.15 * measured_us);
  const auto form = [](double l2_mb) {
    Machine machine = load_machine("h200x8");
    machine.gpu.l2_mb = l2_mb;
    std::string taken;
    Simulation(machine, 8, {.phantom = true}).run([&](World& world) {
      const auto plan = make_operator(world, Operator::kAllGatherGemm, {.m = 1024, .n = 114688, .k = 8192});
      if (world.pe() == 0) taken = plan->strategy(1024);
    });
    return taken;
  };
  EXPECT_EQ(form(50), "sequential");
  EXPECT_NE(form(1000), "sequential");
}

TEST(OperatorTiming, MoreLinksDeliverSoonerOnAMesh) {
  const test::Place place{"mi300x8", 8};
  OperatorOptions options{.m = 8192, .n = 8192, .k = 8192, .form = Form::kCommunicationOnly};
  for (const CopyBy copy_by : {CopyBy::kCopyEngine, CopyBy::kSm}) {
    options.copy_by = copy_by;
    options.order = "interleaved";
    const double us = test::phantom_us(place, Operator::kAllGatherGemm, options);
    // Each link of 48 GB/s carries one shard; one link after the other would take seven times as long.
    const double shard_us = 8192.0 / 8 * 8192 * 2 / 48e3;
    EXPECT_GT(us, shard_us);
    EXPECT_LT(us, 1.5 * shard_us);
  }
}

}  // namespace
}  // namespace tandem
