/// The products of a layer with experts on the simulator and on CPUs against known results, and their errors.

#include "tandem/layer/expert_gemms.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operators/reference/expert_gemm_trial.h"
#include "support/host_pes.h"
#include "tandem/error.h"
#include "tandem/simulation.h"

namespace tandem::expert_gemms_test {
namespace {

using ops::ExpertGemmRuns;
using ::testing::HasSubstr;

std::string wrong(World& world, const ExpertGemmRuns& runs) {
  try {
    Stream stream = world.make_stream("main");
    return ops::wrong_of_expert_gemms(world, stream, runs);
  } catch (const Error& error) {
    return error.what();
  }
}

struct Case {
  int pes;
  int experts_here;
  int top_k;
  Size tokens;
  ExpertForm form;
  DType type = DType::kBF16;
  Activation activation = Activation::kNone;
  int column_chunks = 0;
  ExpertWire wire = ExpertWire::kType;
  bool own_tile = false;  // of the rule
  int tp_size = 1;
};

ExpertGemmRuns runs_of(const Case& c) {
  ExpertGemmRuns runs;
  ExpertGemmOptions& o = runs.options;
  o.experts = {.type = c.type,
               .max_tokens = c.tokens,
               .hidden = 40,
               .experts = c.pes / c.tp_size * c.experts_here,
               .tp_size = c.tp_size,
               .top_k = c.top_k};
  o.intermediate = 24;
  o.activation = c.activation;
  o.dispatch_gemm = o.gemm_combine = c.form;
  o.column_chunks = c.column_chunks;
  if (!c.own_tile) {
    o.tile_m = 8;
    o.tile_n = 16;
  }
  if (c.wire != ExpertWire::kType) {  // blocks that are whole, and parts of one
    o.experts.wire = c.wire;
    o.experts.hidden = 400;
    o.intermediate = 272;
    o.dispatch_gemm = ExpertForm::kSequential;
    if (!c.own_tile) o.tile_n = 256;
  }
  runs.rounds = {{"random", c.tokens, 1}, {"one", c.tokens, 2}, {"none", 1, 1}, {"ragged", c.tokens, 1}};
  runs.input.add = c.activation == Activation::kNone;
  return runs;
}

std::string describe(const Case& c) {
  return fmt::format("{} PEs, tp {}, {} experts each, top {}, {} tokens, {}, activation {}, {} chunks, wire {}", c.pes,
                     c.tp_size, c.experts_here, c.top_k, c.tokens, name(c.form), static_cast<int>(c.activation),
                     c.column_chunks, name(c.wire));
}

constexpr auto kSequential = ExpertForm::kSequential;
constexpr auto kOverlapped = ExpertForm::kOverlapped;

/// With one token chosen by one expert, and with a tile's rows and one more or less: experts of 0 to many panels.
const Case kCases[] = {{1, 3, 2, 5, kOverlapped},
                       {1, 1, 1, 7, kSequential},
                       {1, 1, 1, 8, kOverlapped},
                       {1, 1, 1, 9, kOverlapped},
                       {2, 1, 2, 9, kOverlapped},
                       {2, 3, 2, 8, kSequential, DType::kF16},
                       {2, 16, 4, 20, kOverlapped, DType::kF16, Activation::kSwiGlu, 2},
                       {3, 5, 3, 7, kOverlapped, DType::kBF16, Activation::kRelu, 1},
                       {4, 2, 4, 1, kOverlapped, DType::kBF16, Activation::kNone, 3},
                       {5, 2, 2, 4, kOverlapped},
                       {8, 2, 8, 3, kOverlapped, DType::kBF16, Activation::kGeGlu},
                       {2, 2, 2, 9, kSequential, DType::kBF16, Activation::kNone, 0, ExpertWire::kQuantised},
                       {3, 1, 2, 5, kOverlapped, DType::kBF16, Activation::kRelu, 2, ExpertWire::kGiven},
                       {2, 3, 3, 4, kOverlapped, DType::kBF16, Activation::kSwiGlu, 2, ExpertWire::kQuantised}};

/// All PEs share the columns of each expert, or groups of them do.
const Case kShared[] = {
    {.pes = 2, .experts_here = 3, .top_k = 2, .tokens = 5, .form = kSequential, .tp_size = 2},
    {.pes = 2, .experts_here = 1, .top_k = 1, .tokens = 9, .form = kOverlapped, .tp_size = 2},
    {.pes = 3, .experts_here = 4, .top_k = 4, .tokens = 1, .form = kSequential, .type = DType::kF16, .tp_size = 3},
    {.pes = 4,
     .experts_here = 6,
     .top_k = 3,
     .tokens = 7,
     .form = kSequential,
     .activation = Activation::kSwiGlu,
     .tp_size = 4},
    {.pes = 4, .experts_here = 3, .top_k = 2, .tokens = 8, .form = kOverlapped, .column_chunks = 3, .tp_size = 2},
    {.pes = 8, .experts_here = 2, .top_k = 2, .tokens = 3, .form = kSequential, .tp_size = 8},
    {.pes = 8, .experts_here = 3, .top_k = 4, .tokens = 2, .form = kOverlapped, .tp_size = 4},
    {.pes = 2,
     .experts_here = 3,
     .top_k = 2,
     .tokens = 4,
     .form = kSequential,
     .activation = Activation::kSwiGlu,
     .wire = ExpertWire::kQuantised,
     .tp_size = 2}};

TEST(ExpertGemms, AreRightInTheSimulator) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(describe(c));
    Simulation simulation(load_machine("h200x8"), c.pes);
    simulation.run([&](World& world) { EXPECT_EQ(wrong(world, runs_of(c)), ""); });
  }
}

TEST(ExpertGemms, AreRightWithSharedColumnsInTheSimulator) {
  for (const Case& c : kShared) {
    SCOPED_TRACE(describe(c));
    Simulation simulation(load_machine("h200x8"), c.pes);
    simulation.run([&](World& world) {
      EXPECT_EQ(experts_of_pe(runs_of(c).options.experts, c.pes), c.experts_here);
      EXPECT_EQ(wrong(world, runs_of(c)), "");
    });
  }
}

TEST(ExpertGemms, AreRightWithSharedColumnsOnCpus) {
  for (const int number : {0, 4, 6}) {
    const Case& c = kShared[number];
    SCOPED_TRACE(describe(c));
    test::HostPes(c.pes, {.timeout_s = 60, .arrival_timeout_s = 120}).run([&](World& world) {
      EXPECT_EQ(wrong(world, runs_of(c)), "");
      world.barrier();
    });
  }
}

TEST(ExpertGemms, AreRightOnCpus) {
  for (const int number : {0, 4, 6, 7, 11, 12}) {
    const Case& c = kCases[number];
    SCOPED_TRACE(describe(c));
    test::HostPes(c.pes, {.timeout_s = 60, .arrival_timeout_s = 120}).run([&](World& world) {
      EXPECT_EQ(wrong(world, runs_of(c)), "");
      world.barrier();
    });
  }
}

/// Experts with the rows of a tile on average and fewer, and one with those of all tokens.
TEST(ExpertGemms, FewRowsHaveTilesOfTheirOwn) {
  const Case cases[] = {{2, 2, 1, 40, kSequential},
                        {2, 2, 1, 96, kSequential},
                        {2, 3, 2, 33, kOverlapped, DType::kF16, Activation::kSwiGlu, 1},
                        {2, 2, 2, 18, kSequential, DType::kBF16, Activation::kSwiGlu, 1, ExpertWire::kQuantised}};
  for (Case c : cases) {
    c.own_tile = true;
    SCOPED_TRACE(describe(c));
    Simulation(load_machine("h200x8"), c.pes).run([&](World& world) {
      EXPECT_EQ(wrong(world, runs_of(c)), "");
      const auto plan = make_expert_gemms(world, runs_of(c).options);
      const bool is_fp8 = c.wire != ExpertWire::kType;
      EXPECT_EQ(plan->options().tile_m, is_fp8 ? 32 : 64);
      EXPECT_EQ(plan->options().tile_n, 128);
      EXPECT_EQ(plan->options().experts.align, 128);
      EXPECT_EQ(plan->choices().back().option, "tile");
      EXPECT_EQ(plan->choices().back().value, is_fp8 ? "32x128" : "64x128");
    });
  }
}

TEST(ExpertGemms, TileOfTheRule) {
  ExpertGemmOptions o;
  o.experts = {.max_tokens = 768, .hidden = 7168, .experts = 256, .top_k = 8};
  o.intermediate = 2048;
  const auto rows = [&o](int pes) { return with_tile(o, pes).tile_m; };
  EXPECT_EQ(rows(2), 64);  // 48 rows of an expert on average
  EXPECT_EQ(rows(3), 128);
  EXPECT_EQ(expert_gemm_sizes(o, 2).rows, expert_sizes(routing_options(o), 2).rows);
  o.experts.max_tokens = 769;
  EXPECT_EQ(rows(2), 128);
  EXPECT_EQ(with_tile(o, 2).tile_n, 256);
  o.experts.wire = ExpertWire::kQuantised;
  o.experts.max_tokens = 384;
  EXPECT_EQ(rows(2), 32);
  o.experts.max_tokens = 385;
  EXPECT_EQ(rows(2), 128);
  o.tile_n = 64;
  EXPECT_EQ(rows(2), 0);  // refused later
}

TEST(ExpertGemms, RefuseARoutingOfAnotherPlan) {
  Simulation(load_machine("h200x4"), 1).run([](World& world) {
    ExpertGemmOptions options;
    options.experts = {.max_tokens = 2, .hidden = 64, .experts = 4, .top_k = 2};
    options.intermediate = 64;
    const auto plan = make_expert_gemms(world, options);
    options.experts.experts = 2;
    const auto other = make_expert_gemms(world, options);
    SymmetricHeap& heap = world.heap();
    auto* const routing = heap.allocate_local<std::int32_t>(plan->experts().routing_bytes() / 4, "routing");
    const Size elements = plan->experts().rows() * 64;
    const auto allocate = [&](Size count) { return heap.allocate_local<bf16>(count, "buffer"); };
    const auto error = [](const auto& call) {
      try {
        call();
      } catch (const InvalidArgument& caught) {
        return std::string(caught.what());
      }
      return std::string();
    };
    Stream stream = world.make_stream("main");
    other->route(stream, {.tokens = 0, .ids = routing, .routing = routing});
    const DispatchGemmCall there{.x = allocate(1),
                                 .routing = routing,
                                 .b = allocate(4 * 64 * 64),
                                 .rows = allocate(elements),
                                 .out = allocate(elements)};
    const GemmCombineCall back{.a = allocate(elements),
                               .routing = routing,
                               .b = allocate(4 * 64 * 64),
                               .y = allocate(elements),
                               .out = allocate(1)};
    const auto of_other =
        HasSubstr("routing: one of 2 tokens, top 2 of 2 experts, PEs 1, tp_size 1, align 128 given to experts of");
    EXPECT_THAT(error([&] { plan->dispatch_gemm(stream, there); }), of_other);
    EXPECT_THAT(error([&] { plan->gemm_combine(stream, back); }), of_other);
    plan->route(stream, {.tokens = 0, .ids = routing, .routing = routing});
    EXPECT_EQ(error([&] { plan->dispatch_gemm(stream, there); }), "");
    EXPECT_EQ(error([&] { plan->gemm_combine(stream, back); }), "");
    stream.synchronize();
  });
}

/// Returns the error of products on two PEs, one of which has changed options.
template <class Change>
std::string error_of_plans_that_differ(const Change& change) {
  std::string text;
  Simulation simulation(load_machine("h200x4"), 2);
  try {
    simulation.run([&](World& world) {
      ExpertGemmOptions options;
      options.experts = {.max_tokens = 1, .hidden = 64, .experts = 4, .top_k = 1};
      options.experts.transport = ExpertTransport::kPackets;
      options.intermediate = 64;
      if (world.pe() == 1) change(options);
      const auto plan = make_expert_gemms(world, options);
      SymmetricHeap& heap = world.heap();
      const auto allocate = [&](Size count) { return heap.allocate_local<bf16>(count, "buffer"); };
      auto* const routing = heap.allocate_local<std::int32_t>(plan->experts().routing_bytes() / 4, "routing");
      Stream stream = world.make_stream("main");
      plan->route(stream, {.tokens = 0, .routing = routing});
      const Size elements = plan->experts().rows() * 128;
      plan->dispatch_gemm(
          stream,
          {.routing = routing, .b = allocate(4 * 128 * 64), .rows = allocate(elements), .out = allocate(elements)});
      stream.synchronize();
    });
  } catch (const Error& error) {
    text = error.what();
  }
  return text;
}

TEST(ExpertGemms, RefusePesThatDiffer) {
  EXPECT_EQ(error_of_plans_that_differ([](auto&) {}), "");
  EXPECT_THAT(error_of_plans_that_differ([](auto& o) { o.intermediate = 128; }), HasSubstr("intermediate 128"));
  EXPECT_THAT(error_of_plans_that_differ([](auto& o) { o.activation = Activation::kRelu; }), HasSubstr("activation 1"));
  EXPECT_THAT(error_of_plans_that_differ([](auto& o) { o.experts.top_k = 2; }), HasSubstr("experts"));
}

TEST(ExpertGemms, RefuseOptionsByName) {
  Simulation simulation(load_machine("h200x4"), 2);
  simulation.run([](World& world) {
    const auto message = [&](const auto& change) {
      ExpertGemmOptions options = runs_of(kCases[4]).options;
      options.experts.experts = 4;
      change(options);
      try {
        make_expert_gemms(world, options);
      } catch (const Error& error) {
        return std::string(error.what());
      }
      return std::string();
    };
    EXPECT_EQ(message([](auto&) {}), "");
    EXPECT_THAT(message([](auto& o) { o.intermediate = 0; }), HasSubstr("intermediate: 0 given to experts"));
    EXPECT_THAT(message([](auto& o) { o.experts.align = 12; }), HasSubstr("align: 12 given to experts"));
    EXPECT_THAT(message([](auto& o) { o.experts.layout = ExpertLayout::kInPlace; }), HasSubstr("layout: in_place"));
    EXPECT_THAT(message([](auto& o) {
                  o.experts.wire = ExpertWire::kGiven;
                  o.tile_n = 128;
                }),
                HasSubstr("dispatch_gemm: overlapped given to experts, allowed is sequential with fp8 products"));
    EXPECT_THAT(message([](auto& o) {
                  o.experts.wire = ExpertWire::kQuantised;
                  o.experts.type = DType::kF16;
                }),
                HasSubstr("type: f16 given to experts, allowed is bf16 with fp8 products"));
    EXPECT_THAT(message([](auto& o) {
                  o.experts.wire = ExpertWire::kQuantised;
                  o.dispatch_gemm = kSequential;
                }),
                HasSubstr("tile_n: 16 given to experts, allowed are multiples of 128 with fp8 products"));
    EXPECT_THAT(message([](auto& o) { o.tile_m = 0; }), HasSubstr("tile_m: 0 given"));
    EXPECT_THAT(message([](auto& o) { o.tile_n = 0; }), HasSubstr("tile_n: 0 given"));
    EXPECT_THAT(message([](auto& o) {
                  o.tile_m = o.tile_n = 0;
                  o.experts.align = 16;
                }),
                HasSubstr("align: 16 given to experts, allowed are 1 and multiples of tile_m, 64"));
    EXPECT_THAT(message([](auto& o) { o.experts.batches = 1; }), HasSubstr("batches: 1 given"));
    EXPECT_THAT(message([](auto& o) { o.column_chunks = 4; }), HasSubstr("column_chunks: 4 given"));
    EXPECT_THAT(message([](auto& o) {
                  o.activation = Activation::kSwiGlu;
                  o.intermediate = 12;
                }),
                HasSubstr("intermediate: 12 given"));
    EXPECT_THAT(message([](auto& o) { o.communication_sms = 0; }), HasSubstr("communication_sms: 0 given"));
    EXPECT_THAT(message([](auto& o) { o.experts.transport = ExpertTransport::kPackets; }),
                HasSubstr("dispatch_gemm: overlapped given to experts, allowed is sequential with packets"));
  });
}

/// Also where a model predicts a gain of the overlapped form.
TEST(ExpertGemms, AreSequentialByRule) {
  Simulation simulation(load_machine("h200x8"), 8, {.phantom = true});
  simulation.run([&](World& world) {
    const ExpertOptions experts{.max_tokens = 4096, .hidden = 7168, .experts = 256, .top_k = 8};
    const auto plan = make_expert_gemms(world, {.experts = experts, .intermediate = 2048});
    EXPECT_EQ(plan->options().dispatch_gemm, kSequential);
    EXPECT_EQ(plan->options().gemm_combine, kSequential);
  });
}

}  // namespace
}  // namespace tandem::expert_gemms_test
