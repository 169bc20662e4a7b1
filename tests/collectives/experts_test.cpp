/// Experts on the simulator and on CPUs against known results, and their errors.

#include "tandem/layer/experts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "collectives/experts/plan.h"
#include "collectives/experts/row_lines.h"
#include "support/error_of.h"
#include "support/expert_cases.h"
#include "support/host_pes.h"
#include "tandem/error.h"
#include "tandem/simulation.h"

namespace tandem::experts_test {
namespace {

using kernels::ExpertRuns;
using ::testing::HasSubstr;

/// Returns the first error, also if it is an exception.
std::string wrong(World& world, const ExpertRuns& runs) {
  try {
    return kernels::wrong_of_runs(world, runs);
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Experts, AreRightInTheSimulator) {
  constexpr int kPes[] = {2, 1, 3, 8, 5};
  for (std::size_t i = 0; const int pes : kPes) {
    const std::vector<ExpertRuns> cases = test::expert_cases(pes);
    for (std::size_t number = i++; number < cases.size(); number += std::size(kPes)) {
      SCOPED_TRACE(test::describe(cases[number], pes));
      Simulation simulation(load_machine("h200x8"), pes);
      simulation.run([&](World& world) { EXPECT_EQ(wrong(world, cases[number]), ""); });
    }
  }
}

/// Other numbers of PEs, and of choices in a token.
TEST(Experts, AreRightForOddNumbers) {
  constexpr int kPes[] = {4, 6, 7}, kTopK[] = {5, 6, 7};
  for (std::size_t i = 0; i < std::size(kPes); ++i) {
    const int pes = kPes[i];
    const std::vector<ExpertRuns> cases = test::expert_cases(pes);
    for (std::size_t number = 0; number < std::size(kTopK); ++number) {
      ExpertRuns runs = cases[(5 * i + 2 * number) % cases.size()];
      runs.options.top_k = kTopK[(i + number) % std::size(kTopK)];
      runs.options.experts = 7 * pes;
      if (runs.options.layout == ExpertLayout::kByExpert)
        runs.options.most_rows = pes * runs.options.max_tokens * runs.options.top_k;
      SCOPED_TRACE(test::describe(runs, pes));
      Simulation simulation(load_machine("h200x8"), pes);
      simulation.run([&](World& world) { EXPECT_EQ(wrong(world, runs), ""); });
    }
  }
}

/// Values that fp8 rounds, with scales that are no powers of two.
TEST(Experts, QuantiseFractionsAsTheHostDoes) {
  for (const ExpertTransport transport : {ExpertTransport::kPackets, ExpertTransport::kChunks, ExpertTransport::kFused})
    for (const DType type : {DType::kBF16, DType::kF16}) {
      ExpertRuns runs;
      runs.options = {.type = type, .max_tokens = 4, .hidden = 1500, .experts = 4, .top_k = 2};
      runs.options.wire = ExpertWire::kQuantised;
      runs.options.transport = transport;
      runs.input.fractions = true;
      runs.rounds = {{"random", 4, 2}, {"ragged", 4, 1}};
      SCOPED_TRACE(test::describe(runs, 2));
      Simulation simulation(load_machine("h200x8"), 2);
      simulation.run([&](World& world) { EXPECT_EQ(wrong(world, runs), ""); });
    }
}

TEST(Experts, AreRightForRowsOfALargeModel) {
  for (const ExpertTransport transport : {ExpertTransport::kPackets, ExpertTransport::kChunks})
    for (const ExpertWire wire : {ExpertWire::kType, ExpertWire::kQuantised}) {
      ExpertRuns runs;
      runs.options = {.max_tokens = 2, .hidden = 7168, .experts = 32, .top_k = 8, .wire = wire, .transport = transport};
      runs.input.fractions = true;
      runs.rounds = {{"random", 2, 2}};
      SCOPED_TRACE(test::describe(runs, 2));
      Simulation simulation(load_machine("h200x8"), 2);
      simulation.run([&](World& world) { EXPECT_EQ(wrong(world, runs), ""); });
    }
}

TEST(Experts, AreRightOnCpus) {
  int number = 0;
  for (const int pes : {1, 2, 3, 4}) {
    const std::vector<ExpertRuns> cases = test::expert_cases(pes);
    const ExpertRuns& runs = cases[static_cast<std::size_t>(number++ * 3) % cases.size()];
    SCOPED_TRACE(test::describe(runs, pes));
    test::HostPes(pes, {.timeout_s = 60, .arrival_timeout_s = 120}).run([&](World& world) {
      EXPECT_EQ(wrong(world, runs), "");
      world.barrier();
    });
  }
}

/// More choices than one tile of the routing kernel has, and rows of a large model.
TEST(Experts, AreRightForManyTokensAndWideRows) {
  ExpertRuns many;
  many.options = {.max_tokens = 600, .hidden = 4, .experts = 32, .top_k = 8};
  many.rounds = {{"random", 600, 1}, {"one", 450, 1}};
  ExpertRuns wide;
  wide.options = {.max_tokens = 2, .hidden = 7168, .experts = 256, .top_k = 8, .wire = ExpertWire::kQuantised};
  wide.rounds = {{"random", 2, 2}};
  many.options.transport = wide.options.transport = ExpertTransport::kPackets;
  ExpertRuns chunks = many;  // several rounds of chunks
  chunks.options.transport = ExpertTransport::kChunks;
  chunks.options.blocks = 7;
  chunks.rounds = {{"ragged", 600, 2}, {"one", 600, 1}};
  for (const ExpertRuns& runs : {many, wide, chunks}) {
    SCOPED_TRACE(test::describe(runs, 2));
    Simulation simulation(load_machine("h200x8"), 2);
    simulation.run([&](World& world) { EXPECT_EQ(wrong(world, runs), ""); });
  }
}

/// Few choices: the routing kernel keeps 2 * PEs times the average number of an expert's. An expert of all tokens has
/// more. Many choices: a tile has those of one expert alone.
TEST(Experts, AreRightIfAllTokensChooseOneExpert) {
  for (const int align : {1, 8})
    for (const Size tokens : {7, 1900}) {
      ExpertRuns runs;
      runs.options = {.max_tokens = tokens, .hidden = 8, .experts = 8, .top_k = 1, .align = align};
      runs.options.transport = ExpertTransport::kChunks;
      runs.rounds = {{"zipf:10", tokens, 1}};
      SCOPED_TRACE(test::describe(runs, 2));
      Simulation simulation(load_machine("h200x4"), 2);
      simulation.run([&](World& world) { EXPECT_EQ(wrong(world, runs), ""); });
    }
}

/// Blocks that rank the rows of several experts receive the peers' choices, too. Otherwise blocks without experts do.
/// Two tiles of choices have fewer blocks.
TEST(Experts, AreRightWithMoreExpertsThanSms) {
  for (const int align : {1, 8})
    for (const Size tokens : {40, 500}) {  // of one tile, and of two
      ExpertRuns runs;
      runs.options = {.max_tokens = tokens, .hidden = 4, .experts = 600, .top_k = 4, .align = align};
      runs.options.transport = ExpertTransport::kChunks;
      runs.rounds = {{"random", tokens, 1}, {"ragged", tokens, 1}};
      SCOPED_TRACE(test::describe(runs, 2));
      Simulation simulation(load_machine("h200x4"), 2);
      simulation.run([&](World& world) { EXPECT_EQ(wrong(world, runs), ""); });
    }
}

/// A block does not rank the rows of so many experts at once.
TEST(Experts, AreRightWithMoreExpertsThanABlockCounts) {
  for (const int align : {1, 8})
    for (const int pes : {1, 2}) {
      ExpertRuns runs;
      runs.options = {.max_tokens = 3, .hidden = 4, .experts = 2000 * pes, .top_k = 4, .align = align};
      runs.options.transport = ExpertTransport::kPackets;
      runs.rounds = {{"random", 3, 1}, {"ragged", 3, 1}, {"one", 2, 1}};
      SCOPED_TRACE(test::describe(runs, pes));
      Simulation simulation(load_machine("h200x4"), pes);
      simulation.run([&](World& world) { EXPECT_EQ(wrong(world, runs), ""); });
    }
}

/// GPUs have one word of bits, and hosts several.
template <int kWords>
void expect_neighbours(int first, int count) {
  kernels::PeSet<kWords> pes;
  pes.add(first, count);
  for (int pe = 0; pe < 64 * kWords; ++pe)
    EXPECT_EQ(pes.has(pe), pe >= first && pe < first + count) << first << " " << count << " " << pe;
}

TEST(Experts, SetsOfPesTakeNeighbours) {
  for (const auto& [first, count] : {std::pair{0, 1}, {63, 1}, {4, 4}, {0, 64}, {62, 2}})
    expect_neighbours<1>(first, count);
  for (const auto& [first, count] : {std::pair{0, 1}, {60, 8}, {64, 64}, {0, 128}}) expect_neighbours<2>(first, count);
}

/// A phantom run takes as long as the same run with data, up to the rounding of stores in steps.
TEST(Experts, TakeTheSameTimeWithoutData) {
  const auto time_of = [](bool phantom, ExpertTransport transport, const char* routing) {
    double time_us = 0;
    Simulation simulation(load_machine("h200x8"), 4, {.phantom = phantom});
    simulation.run([&](World& world) {
      const auto plan = make_experts(
          world, {.max_tokens = 6, .hidden = 2048, .experts = 32, .top_k = 4, .align = 2, .transport = transport});
      const auto trial = kernels::make_expert_trial(world, *plan, {.routing = routing, .tokens = 6});
      Stream stream = world.make_stream("main");
      trial->route_and_dispatch(stream);
      trial->combine(stream);
      stream.synchronize();
      time_us = std::max(time_us, world.time_us());
    });
    return time_us;
  };
  for (const ExpertTransport transport : {ExpertTransport::kFused, ExpertTransport::kPackets, ExpertTransport::kChunks})
    for (const char* const routing : {"one", "random", "none"}) {
      SCOPED_TRACE(std::string(name(transport)) + " " + routing);
      EXPECT_NEAR(time_of(true, transport, routing), time_of(false, transport, routing), 0.01);
    }
}

/// The rule takes one kernel for few tokens, packets for few bytes and chunks for many. All forms give the same bits,
/// which `expert_cases` check.
TEST(Experts, ChooseTheTransportByBytes) {
  Simulation simulation(load_machine("h200x4"), 4, {.phantom = true});
  simulation.run([](World& world) {
    const auto transport = [&](Size tokens) {
      return make_experts(world, {.max_tokens = tokens, .hidden = 7168, .experts = 256, .top_k = 8})
          ->options()
          .transport;
    };
    EXPECT_EQ(transport(1), ExpertTransport::kPackets);
    EXPECT_EQ(transport(128), ExpertTransport::kPackets);
    EXPECT_EQ(transport(4096), ExpertTransport::kChunks);
  });
}

struct Calls {
  ExpertOptions options{.max_tokens = 2, .hidden = 8, .experts = 4, .top_k = 2};
  RouteCall route;
  DispatchCall dispatch;
  CombineCall combine;
};

void make_all_calls(ExpertPlan& plan, Stream& stream, const Calls& calls) {
  plan.dispatch(stream, calls.dispatch);
  plan.combine(stream, calls.combine);
}

/// Runs calls that `change` has changed on both of two PEs: a routing, and what `use` makes. Returns the error of PE 0.
template <class Change, class Use = decltype(&make_all_calls)>
std::string refusal(const Change& change, const Use& use = &make_all_calls) {
  std::string text;
  Simulation simulation(load_machine("h200x4"), 2);
  simulation.run([&](World& world) {
    SymmetricHeap& heap = world.heap();
    auto* const ids = heap.allocate_local<std::int32_t>(4, "ids");
    std::fill_n(ids, 4, world.pe());
    Calls calls;
    calls.route = {.tokens = 2, .ids = ids, .routing = heap.allocate_local<std::int32_t>(256, "routing")};
    calls.dispatch = {.tokens = 2,
                      .x = heap.allocate_local<bf16>(16, "x"),
                      .routing = calls.route.routing,
                      .out = heap.allocate_local<bf16>(8 * 8, "rows")};
    calls.combine = {.tokens = 2,
                     .y = heap.allocate_local<bf16>(8 * 8, "y"),
                     .routing = calls.route.routing,
                     .out = heap.allocate_local<bf16>(16, "out")};
    change(calls, ids);
    Stream stream = world.make_stream("main");
    std::unique_ptr<ExpertPlan> plan;
    try {
      plan = make_experts(world, calls.options);
      plan->route(stream, calls.route);
      use(*plan, stream, calls);
      stream.synchronize();
    } catch (const Error& error) {
      if (world.pe() == 0) text = error.what();
      stream.synchronize();  // the plan outlives its work
    }
  });
  return text;
}

TEST(Experts, RefuseBadOptionsByName) {
  const auto option = [](auto change) { return refusal([change](Calls& c, std::int32_t*) { change(c.options); }); };
  EXPECT_EQ(option([](ExpertOptions&) {}), "");
  EXPECT_EQ(option([](ExpertOptions& o) { o.type = DType::kF32; }),
            "type: f32 given to experts, allowed are f16 and bf16");
  EXPECT_EQ(option([](ExpertOptions& o) { o.max_tokens = 0; }),
            "max_tokens: 0 given to experts, allowed are 1 to 65536");
  EXPECT_EQ(option([](ExpertOptions& o) { o.hidden = 0; }), "hidden: 0 given to experts, allowed are 1 to 65536");
  EXPECT_EQ(option([](ExpertOptions& o) { o.experts = 5; }),
            "experts: 5 given to experts, allowed are multiples of 2, the PEs over tp_size");
  EXPECT_EQ(option([](ExpertOptions& o) { o.tp_size = 0; }), "tp_size: 0 given to experts, allowed are 1 to 2");
  EXPECT_EQ(option([](ExpertOptions& o) { o.tp_size = 3; }), "tp_size: 3 given to experts, allowed are 1 to 2");
  EXPECT_THAT(test::error_of<InvalidArgument>(
                  [] { expert_sizes({.max_tokens = 1, .hidden = 8, .experts = 4, .tp_size = 3, .top_k = 1}, 4); }),
              HasSubstr("tp_size: 3 given to experts, allowed are divisors of the 4 PEs"));
  EXPECT_EQ(option([](ExpertOptions& o) { o.top_k = 17; }), "top_k: 17 given to experts, allowed are 1 to 16");
  EXPECT_EQ(option([](ExpertOptions& o) { o.align = 0; }), "align: 0 given to experts, allowed are 1 to 1024");
  EXPECT_EQ(option([](ExpertOptions& o) { o.align = 1025; }), "align: 1025 given to experts, allowed are 1 to 1024");
  EXPECT_EQ(option([](ExpertOptions& o) {
              o.layout = ExpertLayout::kByExpert;
              o.align = 2;
            }),
            "align: 2 given to experts, allowed is 1 with the layout by_expert");
  EXPECT_EQ(option([](ExpertOptions& o) { o.wire = static_cast<ExpertWire>(3); }),
            "wire: 3 given to experts, allowed are 0 to 2");
  EXPECT_EQ(option([](ExpertOptions& o) { o.layout = static_cast<ExpertLayout>(-1); }),
            "layout: -1 given to experts, allowed are 0 to 2");
  EXPECT_EQ(option([](ExpertOptions& o) { o.scales_by_group = true; }),
            "scales_by_group: true given to experts, allowed is false with wire type");
  EXPECT_EQ(option([](ExpertOptions& o) { o.most_rows = 4; }),
            "most_rows: 4 given to experts, allowed is 0 without the layout by_expert");
  EXPECT_THAT(option([](ExpertOptions& o) { o.blocks = 1'000'000; }), HasSubstr("blocks: 1000000 given"));
  EXPECT_EQ(option([](ExpertOptions& o) { o.batches = 9; }), "batches: 9 given to experts, allowed are 0 to 8");
  EXPECT_EQ(option([](ExpertOptions& o) { o.transport = static_cast<ExpertTransport>(4); }),
            "transport: 4 given to experts, allowed are 0 to 3");
  EXPECT_THAT(
      option([](ExpertOptions& o) {
        o.transport = ExpertTransport::kFused;
        o.batches = 1;
      }),
      HasSubstr("transport: fused given to experts of 2 tokens, top 2, 2 experts of a PE and batches 1, allowed"));
}

TEST(Experts, RefuseMoreRowsThanIndicesHave) {
  EXPECT_EQ(refusal([](Calls& c, std::int32_t*) {
              c.options.layout = ExpertLayout::kByExpert;
              c.options.experts = 65536;
              c.options.max_tokens = 65536;
              c.options.most_rows = 65537;
            }),
            "most_rows: 65537 given to experts, allowed are 0 to 65535");
}

TEST(Experts, RefuseBadCallsByName) {
  const auto call = [](auto change) { return refusal([change](Calls& c, std::int32_t*) { change(c); }); };
  EXPECT_EQ(call([](Calls& c) { c.route.tokens = 3; }), "tokens: 3 given to experts, allowed are 0 to 2");
  EXPECT_EQ(call([](Calls& c) { c.route.ids = nullptr; }), "ids: none given to experts, allowed is memory of this PE");
  EXPECT_EQ(call([](Calls& c) { c.route.id_type = DType::kU8; }),
            "id_type: u8 given to experts, allowed are i32 and i64");
  EXPECT_THAT(call([](Calls& c) { c.route.routing = static_cast<std::int32_t*>(c.route.routing) + 252; }),
              HasSubstr("routing: a buffer that has 16 bytes"));
  EXPECT_EQ(call([](Calls& c) { c.dispatch.x = nullptr; }), "x: none given to experts, allowed is memory of this PE");
  EXPECT_THAT(call([](Calls& c) { c.dispatch.x = c.dispatch.out; }), HasSubstr("x, out: buffers that overlap"));
  EXPECT_EQ(call([](Calls& c) { c.dispatch.out_scales = reinterpret_cast<float*>(c.combine.out); }),
            "out_scales: given to experts whose wire is type, allowed with fp8");
  EXPECT_EQ(call([](Calls& c) { c.combine.y = nullptr; }), "y: none given to experts, allowed is memory of this PE");
  EXPECT_THAT(call([](Calls& c) { c.combine.out = const_cast<void*>(c.combine.y); }),
              HasSubstr("y, out: buffers that overlap"));
}

TEST(Experts, RefuseOutputsThatOverlap) {
  EXPECT_THAT(refusal([](Calls& c, std::int32_t*) {
                c.options.wire = ExpertWire::kQuantised;
                c.dispatch.out_scales = static_cast<float*>(c.dispatch.out);
              }),
              HasSubstr("out, out_scales: buffers that overlap"));
}

/// Returns the error of route_and_dispatch with changed calls.
template <class Change>
std::string refusal_of_both(ExpertTransport transport, const Change& change) {
  return refusal([transport](Calls& c, std::int32_t*) { c.options.transport = transport; },
                 [change](ExpertPlan& plan, Stream& stream, const Calls& calls) {
                   Calls changed = calls;
                   change(changed);
                   plan.route_and_dispatch(stream, changed.route, changed.dispatch);
                 });
}

/// The kernel of both reads choices while it writes rows.
TEST(Experts, RefuseRowsOverChoices) {
  for (const ExpertTransport transport : {ExpertTransport::kFused, ExpertTransport::kChunks}) {
    const auto error = [&](auto change) { return refusal_of_both(transport, change); };
    EXPECT_THAT(error([](Calls& c) { c.route.ids = c.dispatch.out; }), HasSubstr("ids, out: buffers that overlap"));
    EXPECT_THAT(error([](Calls& c) { c.route.weights = static_cast<const float*>(c.dispatch.out); }),
                HasSubstr("weights, out: buffers that overlap"));
    EXPECT_THAT(error([](Calls& c) { c.route.tokens_on_device = static_cast<const std::int32_t*>(c.dispatch.out); }),
                HasSubstr("tokens_on_device, out: buffers that overlap"));
  }
}

TEST(Experts, RefuseRowsOfAnotherRouting) {
  const auto error = [](auto change) { return refusal_of_both(ExpertTransport::kRule, change); };
  EXPECT_EQ(error([](Calls&) {}), "");
  EXPECT_EQ(error([](Calls& c) { c.dispatch.tokens = 1; }),
            "tokens: 1 rows for 2 tokens given to experts, allowed is a row for each token");
  EXPECT_THAT(error([](Calls& c) { c.dispatch.routing = static_cast<std::int32_t*>(c.route.routing) + 4; }),
              HasSubstr("routing: "));
}

/// Returns the errors of a dispatch and a combine of a plan on one PE, whose routing a plan of other options has made.
template <class Change>
std::vector<std::string> refusals_of_routing(const Change& change) {
  std::vector<std::string> texts;
  Simulation(load_machine("h200x4"), 1).run([&](World& world) {
    const ExpertOptions options{.max_tokens = 2, .hidden = 8, .experts = 4, .top_k = 2};
    ExpertOptions others = options;
    change(others);
    const auto plan = make_experts(world, options), other = make_experts(world, others);
    SymmetricHeap& heap = world.heap();
    auto* const memory = heap.allocate_local<std::int32_t>(1024, "memory");
    auto* const routing = heap.allocate_local<std::int32_t>(1024, "routing");
    auto* const x = heap.allocate_local<bf16>(512, "x");
    auto* const rows = heap.allocate_local<bf16>(512, "rows");
    Stream stream = world.make_stream("main");
    other->route(stream, {.tokens = 0, .ids = memory, .routing = routing});
    stream.synchronize();
    const auto note = [&](const auto& call) {
      try {
        call();
        texts.emplace_back();
      } catch (const InvalidArgument& error) {
        texts.emplace_back(error.what());
      }
      stream.synchronize();
    };
    note([&] { plan->dispatch(stream, {.tokens = 0, .x = x, .routing = routing, .out = rows}); });
    note([&] { plan->combine(stream, {.tokens = 0, .y = rows, .routing = routing, .out = x}); });
    plan->route(stream, {.tokens = 0, .ids = memory, .routing = routing});
    note([&] { plan->dispatch(stream, {.tokens = 0, .x = x, .routing = routing, .out = rows}); });
  });
  return texts;
}

TEST(Experts, RefuseARoutingOfAnotherPlan) {
  const auto refused = [](const std::string& of) {
    const std::string text =
        "routing: one of " + of +
        " given to experts of 2 tokens, top 2 of 4 experts, PEs 1, tp_size 1, align 1, allowed are those "
        "of the plan's own sizes";
    return std::vector<std::string>{text, text, ""};
  };
  EXPECT_EQ(refusals_of_routing([](ExpertOptions& o) { o.experts = 8; }),
            refused("2 tokens, top 2 of 8 experts, PEs 1, tp_size 1, align 1"));
  EXPECT_EQ(refusals_of_routing([](ExpertOptions& o) { o.top_k = 1; }),
            refused("2 tokens, top 1 of 4 experts, PEs 1, tp_size 1, align 1"));
  EXPECT_EQ(refusals_of_routing([](ExpertOptions& o) { o.max_tokens = 3; }),
            refused("3 tokens, top 2 of 4 experts, PEs 1, tp_size 1, align 1"));
  EXPECT_EQ(refusals_of_routing([](ExpertOptions& o) { o.align = 4; }),
            refused("2 tokens, top 2 of 4 experts, PEs 1, tp_size 1, align 4"));
  const std::vector<std::string> none(3);
  EXPECT_EQ(refusals_of_routing([](ExpertOptions& o) { o.hidden = 16; }), none) << "its routings are the same";
}

/// Calls with halves on two PEs in the given order, of which each letter is one: s, r or w (whole). Returns the error.
std::string error_of_halves(int batches, const std::string& order) {
  return refusal([&](Calls& c, std::int32_t*) { c.options.batches = batches; },
                 [&](ExpertPlan& plan, Stream& stream, const Calls& c) {
                   for (const char letter : order) {
                     if (letter == 's') plan.dispatch_send(stream, c.dispatch);
                     if (letter == 'r') plan.dispatch_receive(stream, c.dispatch);
                     if (letter == 'w') plan.dispatch(stream, c.dispatch);
                   }
                 });
}

TEST(Experts, RefuseHalvesOutOfOrder) {
  EXPECT_EQ(error_of_halves(1, "wsrsrw"), "");
  EXPECT_EQ(error_of_halves(2, "ssrsrr"), "");
  EXPECT_EQ(error_of_halves(0, "s"), "dispatch_send: given to experts with 0 batches in flight, allowed are 0");
  EXPECT_EQ(error_of_halves(1, "ss"), "dispatch_send: given to experts with 1 batches in flight, allowed are 1");
  EXPECT_EQ(error_of_halves(1, "srr"),
            "dispatch_receive: given to experts with no batch in flight, allowed after a dispatch_send");
  EXPECT_EQ(error_of_halves(1, "sw"), "dispatch: given to experts with 1 batches in flight, allowed with none");
}

TEST(Experts, TellARefusedIdAtTheNextSynchronise) {
  const auto id = [](int choice, std::int32_t value) {
    return refusal([=](Calls&, std::int32_t* ids) { ids[choice] = value; });
  };
  EXPECT_EQ(id(2, -1), "");
  EXPECT_EQ(id(3, 4), "ids: PE 0, token 1, k 1: 4 given to experts, allowed are -1 to 3");
  EXPECT_EQ(id(0, -2), "ids: PE 0, token 0, k 0: -2 given to experts, allowed are -1 to 3");
  EXPECT_EQ(refusal([](Calls& c, std::int32_t* ids) {
              std::fill_n(ids, 4, 0);
              c.options.layout = ExpertLayout::kByExpert;
              c.options.most_rows = 3;
            }),
            "most_rows: PE 0, expert 0: 8 rows given to experts, allowed are 3");
}

/// A refused id counts as -1, and the next call is not affected.
TEST(Experts, GoOnAfterARefusedId) {
  Simulation simulation(load_machine("h200x4"), 2);
  simulation.run([](World& world) {
    auto plan = make_experts(world, {.max_tokens = 1, .hidden = 8, .experts = 2, .top_k = 1});
    auto* const ids = world.heap().allocate_local<std::int64_t>(1, "ids");
    auto* const routing = world.heap().allocate_local<std::int32_t>(256, "routing");
    Stream stream = world.make_stream("main");
    const RouteCall call{.tokens = 1, .ids = ids, .id_type = DType::kI64, .routing = routing};
    *ids = (std::int64_t{1} << 32) + 1;
    plan->route(stream, call);
    EXPECT_THROW(stream.synchronize(), InvalidArgument);
    EXPECT_EQ(plan->routing(routing).counts[0], 0);
    *ids = 1;
    plan->route(stream, call);
    stream.synchronize();
    EXPECT_EQ(plan->routing(routing).counts[0], world.pe() == 1 ? 2 : 0);
  });
}

TEST(Experts, RefusePesThatDiffer) {
  static constexpr ExpertOptions kOptions{
      .max_tokens = 1, .hidden = 8, .experts = 4, .top_k = 1, .transport = ExpertTransport::kPackets};
  const auto error = [](const ExpertOptions& other) {
    std::string text;
    Simulation simulation(load_machine("h200x4"), 2);
    try {
      simulation.run([&](World& world) {
        auto plan = make_experts(world, world.pe() == 0 ? kOptions : other);
        auto* const memory = world.heap().allocate_local<std::int32_t>(256, "routing");
        Stream stream = world.make_stream("main");
        plan->route(stream, {.routing = memory});
        stream.synchronize();
      });
    } catch (const Error& caught) {
      text = caught.what();
    }
    return text;
  };
  EXPECT_EQ(error(kOptions), "");
  ExpertOptions other = kOptions;
  other.align = 2;
  EXPECT_THAT(error(other), HasSubstr("align 2"));
  other = kOptions;
  other.hidden = 800;
  EXPECT_THAT(error(other), HasSubstr("experts"));
  other = kOptions;
  other.transport = ExpertTransport::kFused;
  EXPECT_THAT(error(other), HasSubstr("fused in 1 blocks"));
  const auto change = [&](const auto& set) {
    ExpertOptions changed = kOptions;
    set(changed);
    return error(changed);
  };
  EXPECT_THAT(change([](ExpertOptions& o) { o.type = DType::kF16; }), HasSubstr("experts f16"));
  EXPECT_THAT(change([](ExpertOptions& o) { o.max_tokens = 2; }), HasSubstr("experts"));
  EXPECT_THAT(change([](ExpertOptions& o) { o.experts = 2; }), HasSubstr("experts"));
  EXPECT_THAT(change([](ExpertOptions& o) { o.top_k = 2; }), HasSubstr("to 2 of 4"));
  EXPECT_THAT(change([](ExpertOptions& o) { o.tp_size = 2; }), HasSubstr("experts"));
  EXPECT_THAT(change([](ExpertOptions& o) { o.wire = ExpertWire::kQuantised; }), HasSubstr("experts"));
  EXPECT_THAT(change([](ExpertOptions& o) { o.layout = ExpertLayout::kInPlace; }), HasSubstr("in_place"));
  EXPECT_THAT(change([](ExpertOptions& o) {
                o.layout = ExpertLayout::kByExpert;
                o.most_rows = 1;
              }),
              HasSubstr("by_expert align 1 rows 1"));
  EXPECT_THAT(change([](ExpertOptions& o) { o.batches = 1; }), HasSubstr("experts"));
  EXPECT_THAT(change([](ExpertOptions& o) { o.blocks = 2; }), HasSubstr("in 2 blocks"));
  EXPECT_THAT(change([](ExpertOptions& o) { o.transport = ExpertTransport::kChunks; }), HasSubstr("experts"));
}

/// A plan on 4 PEs of a layer as DeepSeek-V3's, with the rule's transport, in a heap that has so many bytes.
std::string error_of_heap(Size tokens, Size bytes) {
  std::string text;
  Simulation(load_machine("h200x4"), 4, {.phantom = true, .heap_bytes = bytes}).run([&](World& world) {
    try {
      make_experts(world, {.max_tokens = tokens, .hidden = 7168, .experts = 256, .top_k = 8});
    } catch (const OutOfMemory& error) {
      if (world.pe() == 0) text = error.what();
    }
  });
  return text;
}

/// The bounds of the header: chunks take data memory, whose limit is the heap's.
TEST(Experts, StageManyTokensInTheBytesOfTheHeader) {
  EXPECT_EQ(error_of_heap(4096, Size{1'000'000'000}), "");
  EXPECT_EQ(error_of_heap(4096, Size{710'000'000}), "");
  EXPECT_NE(error_of_heap(4096, Size{700'000'000}), "");
}

/// Packets of rows there and sums back take the control memory.
TEST(Experts, StageFewTokensInTheBytesOfTheHeader) {
  const ExpertOptions options{.max_tokens = 128, .hidden = 7168, .experts = 256, .top_k = 8};
  const Size packets = 2 * kernels::RowLines::bytes(kernels::routing_shape(options, 4), 2 * options.hidden);
  EXPECT_LE(packets, 38'000'000);
  EXPECT_GE(packets, 30'000'000);
}

/// Sets of PEs have more than one word. Each PE has one expert, and all rows go to a few of them, or to any.
TEST(Experts, MoveRowsBetweenMorePesThanAWordHasBits) {
  for (const char* const routing : {"random", "one"}) {
    ExpertRuns runs;
    runs.options = {.max_tokens = 1, .hidden = 8, .experts = 70, .top_k = 3, .transport = ExpertTransport::kPackets};
    runs.rounds = {{routing, 1, 1}};
    Simulation simulation(load_machine("h200x8"), 70);
    simulation.run([&](World& world) { EXPECT_EQ(wrong(world, runs), ""); });
  }
}

TEST(Experts, NeedOneNode) {
  const ExpertOptions options{.max_tokens = 1, .hidden = 8, .experts = 4, .top_k = 1};
  Simulation(load_machine("h200x4"), 4, {.pes_per_node = 2}).run([&](World& world) {
    EXPECT_THROW(make_experts(world, options), Unsupported);
  });
}

}  // namespace
}  // namespace tandem::experts_test
