/// all_reduce_norm on the simulator and on CPUs against exact results: patterns, types, algorithms, sizes, places.

#include "tandem/layer/all_reduce_norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/host_pes.h"
#include "support/norm_cases.h"
#include "support/refusal.h"
#include "tandem/check.h"
#include "tandem/error.h"
#include "tandem/simulation.h"

namespace tandem::all_reduce_norm_test {
namespace {

using kernels::NormRuns;
using ::testing::HasSubstr;

/// Returns the first error, also if it is an exception.
std::string wrong(World& world, const NormRuns& runs) {
  try {
    return kernels::wrong_of_runs(world, runs);
  } catch (const Error& error) {
    return error.what();
  }
}

void expect_right_in_simulator(const NormRuns& runs, int pes) {
  SCOPED_TRACE(test::describe(runs, pes));
  Simulation simulation(load_machine("h200x8"), pes);
  simulation.run([&](World& world) { EXPECT_EQ(wrong(world, runs), ""); });
}

void expect_right_on_cpus(const NormRuns& runs, int pes) {
  SCOPED_TRACE(test::describe(runs, pes));
  test::HostPes(pes, {.timeout_s = 60, .arrival_timeout_s = 120}).run([&](World& world) {
    EXPECT_EQ(wrong(world, runs), "");
    world.barrier();
  });
}

TEST(AllReduceNorm, IsExactInTheSimulator) {
  for (const NormRuns& runs : test::norm_cases())
    for (const int pes : {1, 2, 3}) expect_right_in_simulator(runs, pes);
}

TEST(AllReduceNorm, IsExactOnManyPes) {
  std::size_t number = 0;
  for (const NormRuns& runs : test::norm_cases())
    if (number++ % 4 == 0) expect_right_in_simulator(runs, 4 + static_cast<int>(number / 4 % 5));
}

TEST(AllReduceNorm, IsExactOnCpus) {
  int number = 0;
  for (const NormRuns& runs : test::norm_cases()) expect_right_on_cpus(runs, 1 + number++ % 8);
}

/// Rows of 2, 3 and more parts, the last of them short, with as many blocks as rows want or fewer than rows.
std::vector<NormRuns> split_cases() {
  std::vector<NormRuns> list;
  int number = 0;
  for (const char* algorithm : {"split_ll", "split_ll128"})
    for (const Size hidden : {517, 2700, 9001})
      for (const Norm norm : {Norm::kRms, Norm::kLayer, Norm::kNone})
        for (const Quantisation quantisation : test::kQuantisations) {
          NormRuns runs;
          AllReduceNormOptions& o = runs.options;
          o.algorithm = algorithm;
          o.type = test::kNormTypes[number++ % 3];
          o.hidden = hidden;
          o.norm = norm;
          o.quantisation = quantisation;
          o.max_rows = 7;
          o.blocks = number % 6 == 0 ? 0 : 20;
          o.residual = number % 5 != 0;
          o.sum = number % 4 != 0;
          o.bias = number % 3 == 0;
          runs.places = static_cast<kernels::NormPlaces>(number % 3);
          runs.rows = {7, 0, 1, 3, 7, 7, 2};
          list.push_back(runs);
        }
  return list;
}

TEST(AllReduceNorm, SplitsRowsOverBlocks) {
  int number = 0;
  for (const NormRuns& runs : split_cases()) {
    expect_right_in_simulator(runs, 1 + number % 8);
    if (number++ % 6 == 0) expect_right_on_cpus(runs, 1 + number % 4);
  }
}

TEST(AllReduceNorm, RefusesRowsOfMorePartsThanBlocks) {
  const auto refused = [](Size hidden, int blocks) {
    return test::refusal_of([&](World& world) {
      AllReduceNormOptions options{.hidden = hidden, .max_rows = 1};
      options.blocks = blocks;
      options.algorithm = "split_ll";
      make_all_reduce_norm(world, options);
    });
  };
  EXPECT_EQ(refused(16384, 16), "");
  EXPECT_EQ(refused(16384, 15),
            "all_reduce_norm: a row of 16384 elements has 16 parts for split rows, allowed with 15 blocks are 15");
  EXPECT_EQ(refused(300000, 0),
            "all_reduce_norm: a row of 300000 elements has 293 parts for split rows, allowed with 293 blocks are 128");
}

/// A small call with all arguments, as a program whose argument or option `change` breaks.
template <class Change>
std::string refusal(const Change& change) {
  return test::refusal_of([&](World& world) {
    AllReduceNormOptions options{.type = DType::kF32, .hidden = 8, .max_rows = 4};
    const auto buffer = [&](const char* name) { return world.heap().allocate<std::byte>(4 * 8 * 4, name); };
    const auto in = buffer("in"), out = buffer("out"), sum = buffer("sum"), residual = buffer("residual");
    AllReduceNormCall call{.rows = 4,
                           .in = in,
                           .residual = residual.local(),
                           .weight = world.heap().allocate_local<float>(8, "weight"),
                           .out = out,
                           .sum = sum};
    change(options, call);
    const auto plan = make_all_reduce_norm(world, options);
    Stream stream = world.make_stream("main");
    plan->run(stream, call);
    stream.synchronize();
  });
}

TEST(AllReduceNorm, RefusesOptionsByName) {
  using O = AllReduceNormOptions;
  const auto of = [](auto change) { return refusal([&](O& options, AllReduceNormCall&) { change(options); }); };
  EXPECT_EQ(of([](O& o) { o.type = DType::kI32; }),
            "type: i32 given to all_reduce_norm, allowed are f32, f16 and bf16");
  EXPECT_EQ(of([](O& o) { o.hidden = 0; }), "hidden: 0 given to all_reduce_norm, allowed are 1 to 1048576");
  EXPECT_THAT(of([](O& o) { o.max_rows = -1; }), HasSubstr("max_rows: -1 given to all_reduce_norm, allowed are 0 to "));
  EXPECT_EQ(of([](O& o) { o.epsilon = 0; }),
            "epsilon: 0 given to all_reduce_norm, allowed are positive finite numbers of f32");
  EXPECT_THAT(of([](O& o) { o.epsilon = std::nan(""); }), HasSubstr("epsilon: nan given"));
  for (const double scale : {0.0, -1.0, 1e-60, 1e60, std::nan("")})
    EXPECT_THAT(of([=](O& o) { o.quantisation = Quantisation::kStatic, o.scale = scale; }), HasSubstr("scale: "));
  EXPECT_THAT(of([](O& o) { o.scale = 2; }), HasSubstr("scale: 2 given to all_reduce_norm with quantisation none"));
  EXPECT_THAT(of([](O& o) { o.norm = Norm::kNone, o.norm_bias = true; }), HasSubstr("norm_bias: given"));
  EXPECT_THAT(of([](O& o) { o.blocks = 1 << 20; }), HasSubstr("blocks: 1048576 given"));
  EXPECT_EQ(of([](O& o) { o.algorithm = "ring"; }),
            "algorithm: all_reduce_norm has no 'ring'; it has one_shot_ll, one_shot_ll128, two_shot, "
            "split_ll, split_ll128");
  EXPECT_THAT(of([](O& o) { o.algorithm = "one_shot_ll", o.sharded_residual = true; }),
              HasSubstr("all_reduce_norm algorithm 'one_shot_ll': cannot norm rows whose residual another PE holds"));
  EXPECT_THAT(of([](O& o) { o.norm = static_cast<Norm>(7); }), HasSubstr("norm: 7 given"));
}

TEST(AllReduceNorm, RefusesArgumentsByName) {
  using C = AllReduceNormCall;
  const auto of = [](auto change) { return refusal([&](AllReduceNormOptions&, C& call) { change(call); }); };
  EXPECT_EQ(of([](C&) {}), "");
  EXPECT_EQ(of([](C& c) { c.rows = 5; }), "rows: 5 given to all_reduce_norm, allowed are 0 to 4");
  EXPECT_EQ(of([](C& c) { c.rows = -1; }), "rows: -1 given to all_reduce_norm, allowed are 0 to 4");
  EXPECT_EQ(of([](C& c) { c.weight = nullptr; }),
            "weight: none given to all_reduce_norm, the plan's options announce one");
  EXPECT_EQ(of([](C& c) { c.in = {}; }), "in: none given to all_reduce_norm, the plan's options announce one");
  EXPECT_EQ(of([](C& c) { c.bias = c.weight; }),
            "bias: given to all_reduce_norm, but the plan's options announce none");
  EXPECT_THAT(of([](C& c) { c.out = c.out + 2; }), HasSubstr("allowed are multiples of 4 bytes"));
  EXPECT_THAT(of([](C& c) { c.in = c.in + 4; }), HasSubstr("in: a buffer that has 124 bytes"));
  EXPECT_THAT(of([](C& c) { c.weight = static_cast<const float*>(c.weight) + 1; }),
              HasSubstr("weight: a buffer that has 28 bytes"));
  EXPECT_THAT(of([](C& c) { c.sum = c.out; }), HasSubstr("sum, out: buffers that overlap given to all_reduce_norm"));
  EXPECT_THAT(of([](C& c) { c.rows = 2, c.sum = c.out + 32; }), HasSubstr("sum, out: buffers that overlap"));
  EXPECT_EQ(of([](C& c) { c.in = c.sum; }), "");
}

std::string chosen(int pes, const AllReduceNormOptions& options, const char* machine = "h200x8") {
  std::string algorithm;
  Simulation simulation(load_machine(machine), pes, {.phantom = true});
  simulation.run([&](World& world) {
    const auto plan = make_all_reduce_norm(world, options);
    if (world.pe() == 0) algorithm = plan->options().algorithm;
  });
  return algorithm;
}

TEST(AllReduceNorm, ChoosesByTheBytesThatAPeSends) {
  const auto of_rows = [](Size rows) { return AllReduceNormOptions{.hidden = 8192, .max_rows = rows}; };
  EXPECT_EQ(chosen(2, of_rows(0)), "split_ll128");
  EXPECT_EQ(chosen(2, of_rows(1)), "split_ll128");
  EXPECT_EQ(chosen(2, of_rows(128)), "split_ll128");
  EXPECT_EQ(chosen(2, of_rows(129)), "two_shot");
  EXPECT_EQ(chosen(4, of_rows(16)), "split_ll128");
  EXPECT_EQ(chosen(4, of_rows(64)), "two_shot");
  EXPECT_EQ(chosen(8, of_rows(16)), "split_ll128");
  AllReduceNormOptions other = of_rows(4096);
  other.quantisation = Quantisation::kRow;
  EXPECT_EQ(chosen(2, other), "two_shot");
  other = of_rows(1);
  other.sharded_residual = true;
  EXPECT_EQ(chosen(2, other), "two_shot");
}

TEST(AllReduceNorm, KeepsARowInABlockWhereSharingItGainsNothing) {
  EXPECT_EQ(chosen(2, {.hidden = 1024, .max_rows = 4}), "one_shot_ll");  // 2 KB of bf16: one part
  EXPECT_EQ(chosen(2, {.hidden = 1032, .max_rows = 4}), "split_ll128");
  EXPECT_EQ(chosen(2, {.hidden = 8192, .max_rows = 4, .blocks = 7}), "one_shot_ll");  // too few for 8 parts
  EXPECT_EQ(chosen(2, {.hidden = 8192, .max_rows = 5, .blocks = 7}), "one_shot_ll128");
  EXPECT_EQ(chosen(2, {.hidden = 8192, .max_rows = 5, .blocks = 8}), "split_ll128");
  EXPECT_EQ(chosen(2, {.hidden = 8192, .max_rows = 4}, "host"), "one_shot_ll");
}

TEST(AllReduceNorm, NeedsOneNode) {
  Simulation simulation(load_machine("h200x4"), 4, {.pes_per_node = 2});
  simulation.run(
      [](World& world) { EXPECT_THROW(make_all_reduce_norm(world, {.hidden = 8, .max_rows = 1}), Unsupported); });
}

TEST(AllReduceNorm, FindsPesThatDiffer) {
  std::string text;
  Simulation simulation(load_machine("h200x4"), 2);
  const auto run = [&] {
    simulation.run([&](World& world) {
      const auto buffer = world.heap().allocate<std::byte>(64, "all");
      AllReduceNormOptions options{.type = DType::kF32, .hidden = 4, .max_rows = 4, .norm = Norm::kNone};
      options.residual = options.sum = false;
      const auto plan = make_all_reduce_norm(world, options);
      Stream stream = world.make_stream("main");
      plan->run(stream, {.rows = 1 + world.pe(), .in = buffer, .out = buffer});
      stream.synchronize();
    });
  };
  EXPECT_THROW(run(), InvalidArgument);
}

/// The order of additions and the algorithm's way through a row are the same on all PEs.
TEST(AllReduceNorm, GivesAllPesTheSameBits) {
  for (const AllReduceNormAlgorithm& algorithm : all_reduce_norm_algorithms()) {
    constexpr int kPes = 4;
    constexpr Size kBytes = Size{3} * 1000 * 4;
    std::vector<std::vector<std::byte>> results(kPes, std::vector<std::byte>(kBytes));
    Simulation simulation(load_machine("h200x4"), kPes);
    simulation.run([&](World& world) {
      const auto in = world.heap().allocate<float>(kBytes / 4, "in");
      const auto out = world.heap().allocate<float>(kBytes / 4, "out");
      float* const weight = world.heap().allocate_local<float>(1000, "weight");
      for (Size i = 0; i < kBytes / 4; ++i) in.local()[i] = 1.0F / static_cast<float>(i + world.pe() + 1);
      for (Size i = 0; i < 1000; ++i) weight[i] = 1.0F / static_cast<float>(i + 3);
      AllReduceNormOptions options{.type = DType::kF32, .hidden = 1000, .max_rows = 3, .norm = Norm::kLayer};
      options.residual = options.sum = false;
      options.algorithm = algorithm.name;
      const auto plan = make_all_reduce_norm(world, options);
      Stream stream = world.make_stream("main");
      plan->run(stream, {.rows = 3, .in = in.as<const std::byte>(), .weight = weight, .out = out.as<std::byte>()});
      stream.synchronize();
      world.copy_out(results[static_cast<std::size_t>(world.pe())].data(), out.local(), kBytes);
    });
    for (const auto& result : results) EXPECT_EQ(result, results[0]) << algorithm.name;
  }
}

}  // namespace
}  // namespace tandem::all_reduce_norm_test
