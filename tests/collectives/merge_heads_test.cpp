/// merge_heads on the simulator and on CPUs against known results, and its errors.

#include "tandem/layer/merge_heads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/heads_cases.h"
#include "support/host_pes.h"
#include "support/refusal.h"
#include "tandem/error.h"
#include "tandem/simulation.h"

namespace tandem::merge_heads_test {
namespace {

using kernels::HeadsRuns;
using ::testing::HasSubstr;

/// Returns the first error, also if it is an exception.
std::string wrong(World& world, const HeadsRuns& runs) {
  try {
    return kernels::wrong_of_runs(world, runs);
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(MergeHeads, IsRightInTheSimulator) {
  for (const HeadsRuns& runs : test::heads_cases())
    for (const int pes : {1, 2, 3, 8}) {
      SCOPED_TRACE(test::describe(runs, pes));
      Simulation simulation(load_machine("h200x8"), pes);
      simulation.run([&](World& world) { EXPECT_EQ(wrong(world, runs), ""); });
    }
}

TEST(MergeHeads, IsRightOnCpus) {
  int number = 0;
  for (const HeadsRuns& runs : test::heads_cases()) {
    const int pes = 1 + number++ % 5;
    SCOPED_TRACE(test::describe(runs, pes));
    test::HostPes(pes, {.timeout_s = 60, .arrival_timeout_s = 120}).run([&](World& world) {
      EXPECT_EQ(wrong(world, runs), "");
      world.barrier();
    });
  }
}

template <class Change>
std::string refusal(const Change& change) {
  return test::refusal_of([&](World& world) {
    MergeHeadsOptions options{.type = DType::kF32, .max_batch = 2, .heads = 4, .head_size = 8};
    float* const partial = world.heap().allocate_local<float>(64, "partial");
    float* const lse = world.heap().allocate_local<float>(8, "lse");
    float* const out = world.heap().allocate_local<float>(32, "out");
    MergeHeadsCall call{.batch = 2, .partial = partial, .lse = lse, .out = out};
    change(options, call);
    const auto plan = make_merge_heads(world, options);
    Stream stream = world.make_stream("main");
    plan->run(stream, call);
    stream.synchronize();
  });
}

TEST(MergeHeads, RefusesBadInputByName) {
  using O = MergeHeadsOptions;
  using C = MergeHeadsCall;
  EXPECT_EQ(refusal([](O&, C&) {}), "");
  EXPECT_EQ(refusal([](O& o, C&) { o.heads = 0; }), "heads: 0 given to merge_heads, allowed are 1 to 65536");
  EXPECT_EQ(refusal([](O& o, C&) { o.head_size = 0; }), "head_size: 0 given to merge_heads, allowed are 1 to 65536");
  EXPECT_EQ(refusal([](O& o, C&) { o.type = DType::kE4M3; }),
            "type: fp8_e4m3 given to merge_heads, allowed are f32, f16 and bf16");
  EXPECT_THAT(refusal([](O& o, C&) { o.base = static_cast<LseBase>(2); }), HasSubstr("base: 2 given"));
  EXPECT_EQ(refusal([](O&, C& c) { c.batch = 3; }), "batch: 3 given to merge_heads, allowed are 0 to 2");
  EXPECT_EQ(refusal([](O&, C& c) { c.lse = nullptr; }), "lse: none given to merge_heads, allowed is memory of this PE");
  EXPECT_THAT(refusal([](O&, C& c) { c.lse += 1; }), HasSubstr("lse: a buffer that has 28 bytes"));
  EXPECT_THAT(refusal([](O&, C& c) { c.out = const_cast<void*>(c.partial); }),
              HasSubstr("partial, out: buffers that overlap"));
  EXPECT_EQ(refusal([](O&, C& c) {
              c.out = const_cast<float*>(c.lse) - 0;
              c.batch = 1;
            }).find("out: a buffer"),
            0U);
  EXPECT_EQ(
      refusal([](O& o, C& c) {
        o.own_heads = false;
        c.batch = 1;
        c.out = static_cast<float*>(const_cast<void*>(c.partial)) + 8;
      }),
      "partial, out: buffers that overlap given to merge_heads, allowed are separate ones, or all heads in place, or "
      "own heads of a batch of 1");
  EXPECT_EQ(refusal([](O& o, C& c) { o.own_heads = false, c.out = const_cast<void*>(c.partial); }), "");
}

TEST(MergeHeads, NeedsOneNode) {
  Simulation simulation(load_machine("h200x4"), 4, {.pes_per_node = 2});
  simulation.run([](World& world) {
    EXPECT_THROW(make_merge_heads(world, {.max_batch = 1, .heads = 4, .head_size = 8}), Unsupported);
  });
}

}  // namespace
}  // namespace tandem::merge_heads_test
