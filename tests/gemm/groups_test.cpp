// Grouped GEMMs of the simulator and of CPUs, with their tables of panels; against sums by definition.

#include <gtest/gtest.h>

#include <vector>

#include "gemm/groups_case.h"
#include "tandem/error.h"
#include "tandem/layer/experts.h"

namespace tandem::groups_test {
namespace {

using test::Backend;
using test::Case;
using test::element;
using test::Groups;
using test::kTileM;
using test::kTileN;
using test::on;
using test::on_device;

void expect_right(const Case& c) {
  for (const Backend backend : {Backend::kSimulator, Backend::kHost})
    on(backend, [&](World& world) {
      dispatch(c.type, [&]<class T>() {
        Groups<T> groups(world, c);
        groups.run();
        EXPECT_EQ(groups.problem(), "") << name(c.type) << " most rows " << c.most_rows << " together " << c.together;
      });
    });
}

TEST(GroupedGemm, SortedGroupsOfEverySize) {
  expect_right({});
  expect_right({.type = DType::kF16, .column_chunks = 3, .together = 1, .activation = Activation::kRelu});
  expect_right({.k = 300, .type = DType::kF32, .layout = BLayout::kKxN, .together = 100});
  expect_right({.type = DType::kE4M3, .column_chunks = 4});
}

TEST(GroupedGemm, AllRowsToOneGroupOrNone) {
  expect_right({.counts = {0, 0, 99, 0}});
  expect_right({.counts = {0, 0, 0}, .indexed = true});
  expect_right({.counts = {7}, .column_chunks = 2});
}

TEST(GroupedGemm, RowsOfEachGroupApart) {
  expect_right({.counts = {3, 24, 0, 9}, .most_rows = 24, .column_chunks = 2});
  expect_right({.counts = {24, 24}, .layout = BLayout::kKxN, .most_rows = 24, .indexed = true});
}

TEST(GroupedGemm, RowsByIndex) {
  expect_right({.indexed = true});
  expect_right({.type = DType::kF32, .indexed = true, .column_chunks = 2, .together = 3});
}

TEST(GroupedGemm, RowsThatArriveGroupByGroup) { expect_right({.gated = true, .column_chunks = 2}); }

/// Gate and up as one B, half of its columns written.
TEST(GroupedGemm, GatedActivations) {
  expect_right({.n = 80, .column_chunks = 2, .activation = Activation::kSwiGlu});
  expect_right({.n = 64, .type = DType::kF32, .layout = BLayout::kKxN, .activation = Activation::kGeGlu});
  expect_right(
      {.counts = {0, 7, 24, 25}, .n = 48, .most_rows = 32, .indexed = true, .activation = Activation::kSwiGlu});
  expect_right({.n = 64, .gated = true, .activation = Activation::kGeGlu});
}

/// The first product of a layer's experts on two PEs: sorted rows, and rows by the routing's index.
class ExpertLayer {
 public:
  ExpertLayer(World& world, ExpertLayout layout)
      : world_(world),
        in_place_(layout == ExpertLayout::kInPlace),
        plan_(make_experts(world, {.max_tokens = kTokens,
                                   .hidden = kHidden,
                                   .experts = kExperts,
                                   .top_k = kTopK,
                                   .layout = layout,
                                   .align = kTileM})),
        panels_(make_group_panels(world, {.groups = kHere, .tile_m = kTileM, .most_panels = 2 * kTokens + kHere})) {}

  std::string problem() {
    const int me = world_.pe();
    std::vector<std::int32_t> ids;
    std::vector<bf16> x, b;
    for (Size token = 0; token < kTokens; ++token) {
      for (int k = 0; k < kTopK; ++k) ids.push_back(expert_of(me, token, k));
      for (Size i = 0; i < kHidden; ++i) x.push_back(convert<bf16>(element(me, token, i)));
    }
    for (int e = 0; e < kHere; ++e)
      for (Size col = 0; col < kColumns; ++col)
        for (Size i = 0; i < kHidden; ++i) b.push_back(convert<bf16>(element(me * kHere + e, col, i)));
    auto* const routing = world_.heap().allocate_local<std::int64_t>(ceil_div(plan_->routing_bytes(), 8), "routing");
    const std::vector<bf16> none(static_cast<std::size_t>(plan_->dispatched_rows() * kHidden));
    bf16* const rows = on_device(world_, none, "rows");
    const ExpertRouting made = plan_->routing(routing);
    Gemm gemm;
    gemm.m = plan_->rows();
    gemm.n = kColumns;
    gemm.k = kHidden;
    gemm.tile_m = kTileM;
    gemm.tile_n = kTileN;
    gemm.a = rows;
    gemm.b = on_device(world_, b, "b");
    bf16* const c = world_.heap().allocate_local<bf16>(gemm.m * gemm.n, "c");
    gemm.destination = GemmLocal{c};
    gemm.groups = panels_->groups();
    if (in_place_) gemm.groups.a_rows = made.slots, gemm.groups.rows_of_a = plan_->dispatched_rows();
    Stream stream = world_.make_stream("main");
    plan_->route(stream, {.tokens = kTokens, .ids = on_device(world_, ids, "ids"), .routing = routing});
    plan_->dispatch(stream, {.tokens = kTokens, .x = on_device(world_, x, "x"), .routing = routing, .out = rows});
    panels_->make(stream, made.counts, made.starts);
    stream.gemm(gemm, world_.team());
    stream.synchronize();
    return check(made, c, gemm.m);
  }

 private:
  static constexpr Size kTokens = 13, kHidden = 24, kColumns = 40;
  static constexpr int kExperts = 6, kHere = kExperts / 2, kTopK = 2;

  static std::int32_t expert_of(int pe, Size token, int k) {
    return static_cast<std::int32_t>((token * token + pe + k * 2) % kExperts);
  }

  std::string check(const ExpertRouting& made, const bf16* c, Size rows) {
    std::vector<std::int32_t> counts(kHere), starts(kHere), slots(static_cast<std::size_t>(rows));
    world_.copy_out(counts.data(), made.counts, kHere * 4);
    world_.copy_out(starts.data(), made.starts, kHere * 4);
    world_.copy_out(slots.data(), made.slots, rows * 4);
    std::vector<bf16> got(static_cast<std::size_t>(rows * kColumns));
    world_.copy_out(got.data(), c, rows * kColumns * 2);
    for (int e = 0; e < kHere; ++e)
      for (Size row = starts[static_cast<std::size_t>(e)];
           row < starts[static_cast<std::size_t>(e)] + counts[static_cast<std::size_t>(e)]; ++row)
        for (Size col = 0; col < kColumns; ++col) {
          const Size slot = slots[static_cast<std::size_t>(row)];
          float want = 0;
          for (Size i = 0; i < kHidden; ++i)
            want +=
                element(static_cast<int>(slot / kTokens), slot % kTokens, i) * element(world_.pe() * kHere + e, col, i);
          const auto found = convert<float>(got[static_cast<std::size_t>(row * kColumns + col)]);
          if (found != convert<float>(convert<bf16>(want)))
            return fmt::format("PE {} expert {} row {} column {}: {} instead of {}", world_.pe(), e, row, col, found,
                               want);
        }
    return "";
  }

  World& world_;
  const bool in_place_;
  std::unique_ptr<ExpertPlan> plan_;
  std::unique_ptr<GroupPanels> panels_;
};

TEST(GroupedGemm, ExpertsOfALayer) {
  for (const ExpertLayout layout : {ExpertLayout::kSorted, ExpertLayout::kInPlace}) {
    const auto program = [layout](World& world) {
      EXPECT_EQ(ExpertLayer(world, layout).problem(), "") << name(layout);
    };
    Simulation(load_machine("h200x8"), 2, {}).run(program);
    test::HostPes(2).run(program);
  }
}

/// More than a tile of groups, whose panels are counted in several steps.
TEST(GroupedGemm, ManyGroups) {
  std::vector<std::int32_t> counts(1100);
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = static_cast<std::int32_t>(i % 3);
  expect_right({.counts = counts, .n = 8, .k = 4, .room = 1100});
}

TEST(GroupedGemm, PlacesCoverEveryTileOnce) {
  GemmGroups groups;
  for (const int chunks : {1, 2, 3})
    for (const int width : {1, 2}) {
      groups.column_chunks = chunks;
      const PanelOrder order = PanelOrder::of(groups, 5 * 16, 16, width);
      std::vector<GemmPanel> panels;
      for (const int run : {1, 3, 2})
        for (int i = 0; i < run; ++i)
          panels.push_back({0, 1, 0, static_cast<std::int16_t>(i), static_cast<std::int16_t>(run), 0});
      std::vector<int> seen(panels.size() * 5);
      const int units = order.units_of_panel() * static_cast<int>(panels.size());
      for (int unit = 0; unit < units; ++unit)
        for (int rank = 0; rank < width; ++rank) {
          const PanelOrder::Place place = order.place(unit, rank, panels, static_cast<int>(panels.size()));
          if (place.column < order.end_of(place.chunk))
            ++seen.at(static_cast<std::size_t>(place.panel) * 5 + static_cast<std::size_t>(place.column));
          const PanelOrder::Place other = order.place(unit, 0, panels, static_cast<int>(panels.size()));
          EXPECT_EQ(place.panel - other.panel, place.in_panel ? 0 : rank);
          EXPECT_EQ(place.column - other.column, place.in_panel ? rank : 0);
        }
      EXPECT_EQ(seen, std::vector<int>(seen.size(), 1)) << chunks << " chunks, width " << width;
    }
}

/// Each B is read once.
TEST(GroupedGemm, TimeInTheSimulator) {
  const Machine machine = load_machine("h200x8");
  GemmShape shape{128, 8192, 8192, 2};
  shape.groups = 64;
  const GemmTileTimes times = gemm_tile_times(machine, 128, 256, shape, machine.gpu.sm_count);
  const double bytes = 64.0 * 2 * 8192 * 8192;
  EXPECT_GE(times.last_us, bytes / (machine.gemm.memory_gbps * 1e3));
  EXPECT_LT(times.last_us, 1.2 * bytes / (machine.gemm.memory_gbps * 1e3));
  shape.groups = 0;
  EXPECT_THROW(gemm_tile_times(machine, 128, 256, shape, 1), InvalidArgument);
}

}  // namespace
}  // namespace tandem::groups_test
