/// exchange_heads on the simulator and on CPUs: types, directions, tensors, sizes and blocks.

#include "tandem/layer/exchange_heads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/reference/exchange_example.h"
#include "support/host_pes.h"
#include "support/pairwise.h"
#include "tandem/error.h"
#include "tandem/simulation.h"

namespace tandem::exchange_heads_test {
namespace {

using kernels::ExchangeRuns;
using ::testing::HasSubstr;

std::string wrong(World& world, const ExchangeRuns& runs) {
  try {
    return kernels::wrong_of_runs(world, runs);
  } catch (const Error& error) {
    return error.what();
  }
}

std::string text_of(const ExchangeRuns& runs, int pes) {
  const ExchangeHeadsOptions& o = runs.options;
  return fmt::format("{} {} direction {} blocks {} on {} PEs", name(o.type), fmt::join(o.segments, ","),
                     static_cast<int>(o.direction), o.blocks, pes);
}

/// Every pair of values, with rows of 0, 1, odd and more than blocks.
std::vector<ExchangeRuns> cases() {
  constexpr DType kTypes[] = {DType::kBF16, DType::kF32, DType::kU8};
  const std::vector<Size> segments[] = {{128, 64, 64}, {1}, {77, 5000}};
  constexpr int kBlocks[] = {0, 1, 3};
  const test::Pairwise pairwise({3, 3, 2, 3}, [](std::size_t, int, std::size_t, int) { return true; });
  std::vector<ExchangeRuns> list;
  for (const std::vector<int>& row : pairwise.rows()) {
    ExchangeRuns runs;
    runs.options.type = kTypes[row[0]];
    runs.options.segments = segments[row[1]];
    runs.options.direction = row[2] == 0 ? HeadsDirection::kToHeads : HeadsDirection::kToRows;
    runs.options.blocks = kBlocks[row[3]];
    runs.options.max_rows = 7;
    runs.rows = {7, 1, 0, 4, 7, 7};
    list.push_back(runs);
  }
  return list;
}

TEST(ExchangeHeads, IsExactInTheSimulator) {
  int number = 0;
  for (const ExchangeRuns& runs : cases()) {
    const int pes = 1 + number++ % 8;
    SCOPED_TRACE(text_of(runs, pes));
    Simulation(load_machine("h200x8"), pes).run([&](World& world) { EXPECT_EQ(wrong(world, runs), ""); });
  }
}

TEST(ExchangeHeads, IsExactOnCpus) {
  int number = 0;
  for (const ExchangeRuns& runs : cases()) {
    const int pes = 1 + number++ % 4;
    SCOPED_TRACE(text_of(runs, pes));
    test::HostPes(pes, {.timeout_s = 60, .arrival_timeout_s = 120}).run([&](World& world) {
      EXPECT_EQ(wrong(world, runs), "");
      world.barrier();
    });
  }
}

/// The error of a small call whose options or arguments `change` breaks.
template <class Change>
std::string refusal(const Change& change) {
  std::string text;
  Simulation(load_machine("h200x4"), 2).run([&](World& world) {
    ExchangeHeadsOptions options{.type = DType::kF32, .segments = {4, 2}, .max_rows = 3};
    ExchangeHeadsCall call{.rows = 3, .tensors = {}};
    for (const Size segment : options.segments)
      call.tensors.push_back({world.heap().allocate_local<float>(3 * 2 * segment, "in"),
                              world.heap().allocate<float>(3 * 2 * segment, "out").as<std::byte>()});
    change(options, call);
    try {
      const auto plan = make_exchange_heads(world, options);
      Stream stream = world.make_stream("main");
      plan->run(stream, call);
      stream.synchronize();
    } catch (const Error& error) {
      if (world.pe() == 0) text = error.what();
    }
  });
  return text;
}

TEST(ExchangeHeads, RefusesBadInputByName) {
  using O = ExchangeHeadsOptions;
  using C = ExchangeHeadsCall;
  EXPECT_EQ(refusal([](O&, C&) {}), "");
  EXPECT_EQ(refusal([](O& o, C&) { o.segments = {}; }), "segments: 0 given to exchange_heads, allowed are 1 to 8");
  EXPECT_EQ(refusal([](O& o, C&) { o.segments[1] = 0; }),
            "segments[1]: 0 given to exchange_heads, allowed are 1 to 1048576");
  EXPECT_THAT(refusal([](O& o, C&) { o.max_rows = -1; }), HasSubstr("max_rows: -1 given"));
  EXPECT_THAT(refusal([](O& o, C&) { o.direction = static_cast<HeadsDirection>(2); }), HasSubstr("direction: 2 given"));
  EXPECT_THAT(refusal([](O& o, C&) { o.type = static_cast<DType>(50); }), HasSubstr("type: 50 given"));
  EXPECT_EQ(refusal([](O&, C& c) { c.rows = 4; }), "rows: 4 given to exchange_heads, allowed are 0 to 3");
  EXPECT_EQ(refusal([](O&, C& c) { c.tensors.pop_back(); }), "tensors: 1 given to exchange_heads, allowed are 2 to 2");
  EXPECT_EQ(refusal([](O&, C& c) { c.tensors[1].in = nullptr; }),
            "tensors[1].in: none given to exchange_heads, allowed is memory of this PE");
  EXPECT_THAT(refusal([](O&, C& c) { c.tensors[0].out = c.tensors[1].out; }),
              HasSubstr("tensors[0].out: a buffer that has 48 bytes"));
  EXPECT_THAT(refusal([](O&, C& c) { c.tensors[1].out = c.tensors[0].out; }), HasSubstr("buffers that overlap"));
}

TEST(ExchangeHeads, NeedsOneNode) {
  Simulation(load_machine("h200x4"), 4, {.pes_per_node = 2}).run([](World& world) {
    EXPECT_THROW(make_exchange_heads(world, {.segments = {1}, .max_rows = 1}), Unsupported);
  });
}

}  // namespace
}  // namespace tandem::exchange_heads_test
