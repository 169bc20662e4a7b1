// Errors of grouped GEMMs: tables without room, fields and panels that are refused, and options of tables.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "gemm/groups/make_panels.h"
#include "gemm/groups_case.h"
#include "tandem/error.h"

namespace tandem::groups_errors_test {
namespace {

using test::Backend;
using test::Case;
using test::Groups;
using test::kTileM;
using test::on;
using test::on_device;

template <class Error>
std::string refusal(Backend backend, const Case& c, const std::function<void(World&, Gemm&)>& spoil) {
  std::string message = "nothing";
  try {
    on(backend, [&](World& world) {
      Groups<bf16> groups(world, c);
      spoil(world, groups.gemm());
      groups.run();
    });
  } catch (const Error& error) {
    message = error.what();
  }
  return message;
}

/// The next synchronize names the group and the panels.
TEST(GroupedGemmErrors, TableWithoutRoom) {
  for (const Backend backend : {Backend::kSimulator, Backend::kHost}) {
    EXPECT_THAT(refusal<InvalidArgument>(backend, {.room = 4}, [](World&, Gemm&) {}),
                testing::HasSubstr("most_panels: PE 0, group 4: 5 panels up to this group, allowed are 4"));
    EXPECT_THAT(refusal<InvalidArgument>(backend, {.counts = {3, 24, 17}, .most_rows = 16}, [](World&, Gemm&) {}),
                testing::HasSubstr("most_rows: PE 0, group 1: 24 rows, allowed are 16"));
  }
}

TEST(GroupedGemmErrors, NothingIsWrittenBehindTheTable) {
  on(Backend::kSimulator, [](World& world) {
    constexpr int kRoom = 5, kGuard = 3;
    const std::vector<std::int32_t> untouched(4 * (kRoom + kGuard), -7);
    std::vector<std::int32_t> numbers(kernels::MakePanels::kTile);
    std::iota(numbers.begin(), numbers.end(), 0);
    kernels::MakePanels::Args args;
    args.counts = on_device(world, std::vector<std::int32_t>{20, 0, 30, 9}, "counts");
    args.groups = 4;
    args.tile_m = kTileM;
    args.together = 2;
    args.most_rows = 64;
    args.most_panels = kRoom;
    args.panels = on_device(world, untouched, "panels");
    args.panel_count = on_device(world, std::vector<std::int32_t>{0}, "count");
    args.numbers = on_device(world, numbers, "numbers");
    args.refused = on_device(world, std::vector<std::int64_t>(2), "refused");
    Stream stream = world.make_stream("main");
    stream.launch<kernels::MakePanels>({1, kernels::MakePanels::kThreads}, args);
    stream.synchronize();
    std::vector<std::int32_t> words(untouched.size());
    world.copy_out(words.data(), args.panels, static_cast<Size>(words.size() * sizeof(words[0])));
    std::vector<GemmPanel> panels(kRoom);
    std::memcpy(static_cast<void*>(panels.data()), words.data(), kRoom * sizeof(GemmPanel));
    const auto fields = [](const GemmPanel& p) {
      return std::vector<int>{p.row, p.rows, p.group, p.place, p.together};
    };
    EXPECT_EQ(fields(panels[2]), (std::vector<int>{16, 4, 0, 0, 1}));
    EXPECT_EQ(fields(panels[4]), (std::vector<int>{136, 8, 2, 1, 2}));
    for (std::size_t i = 4 * kRoom; i < words.size(); ++i) EXPECT_EQ(words[i], -7) << i;
  });
}

TEST(GroupedGemmErrors, RunsAgainAfterATableWithoutRoom) {
  on(Backend::kSimulator, [](World& world) {
    Groups<bf16> groups(world, {.room = 4});
    EXPECT_THROW(groups.run(), InvalidArgument);
    groups.stream().synchronize();
  });
}

TEST(GroupedGemmErrors, EveryField) {
  struct Wrong {
    const char* what;
    std::function<void(Gemm&)> spoil;
  };
  const Wrong wrongs[] = {
      {"groups.count is 40000, allowed: 0 to 32767", [](Gemm& g) { g.groups.count = 40000; }},
      {"groups.panels is 0, allowed: an address", [](Gemm& g) { g.groups.panels = nullptr; }},
      {"groups.panel_count is 0, allowed: an address", [](Gemm& g) { g.groups.panel_count = nullptr; }},
      {"groups.most_panels is -1", [](Gemm& g) { g.groups.most_panels = -1; }},
      {"groups.rows_of_a is 0", [](Gemm& g) { g.groups.a_rows = g.groups.panel_count, g.groups.rows_of_a = 0; }},
      {"groups.column_chunks is 5, allowed: 1 to 4", [](Gemm& g) { g.groups.column_chunks = 5; }},
      {"groups.words is 1, allowed: 1 or more with a gate, else 0", [](Gemm& g) { g.groups.words = 1; }},
      {"tile_m is 40000, allowed: up to 32767", [](Gemm& g) { g.tile_m = 40000; }},
      {"order is set",
       [](Gemm& g) {
         g.order = TileOrder::kOwnFirst, g.rows = {g.m, 1, 1, 1};
       }},
      {"own_a is set",
       [](Gemm& g) {
         g.own_a = g.a, g.rows = {g.m, 1, 1, 1};
       }},
      {"bias is set", [](Gemm& g) { g.bias = g.a; }},
      {"n is 50 and tile_n 16, allowed with a gated activation: multiples of 16",
       [](Gemm& g) { g.activation = Activation::kSwiGlu; }},
      {"a notification of other PEs is set",
       [](Gemm& g) {
         g.destination = GemmLocal{g.destination.c(), {g.destination.local()->notify.words, false}};
       }},
  };
  for (const Wrong& wrong : wrongs)
    EXPECT_THAT(refusal<Error>(Backend::kSimulator, {}, [&](World&, Gemm& gemm) { wrong.spoil(gemm); }),
                testing::HasSubstr(wrong.what));
}

/// Tables of programs that make their own.
TEST(GroupedGemmErrors, PanelsThatTheGemmDoesNotHave) {
  struct Wrong {
    const char* what;
    GemmPanel panel;
    std::int32_t count;
  };
  const Wrong wrongs[] = {
      {"rows of panel 0 is 9, allowed: 1 to 8", {0, 9, 0, 0, 1, 0}, 1},
      {"row of panel 0 is -1", {-1, 1, 0, 0, 1, 0}, 1},
      {"row of panel 0 is 81, allowed: 0 to 80", {81, 8, 0, 0, 1, 0}, 1},
      {"group of panel 0 is 7, allowed: 0 to 6", {0, 1, 7, 0, 1, 0}, 1},
      {"together of panel 0 is 2, allowed: 1 to 1", {0, 1, 0, 0, 2, 0}, 1},
      {"place of panel 0 is 1, allowed: 0 to 0", {0, 1, 0, 1, 2, 0}, 2},
      {"groups.panel_count is 65, allowed: 0 to most_panels, 64", {0, 1, 0, 0, 1, 0}, 65},
  };
  for (const Backend backend : {Backend::kSimulator, Backend::kHost})
    for (const Wrong& wrong : wrongs) {
      const auto spoil = [&](World& world, Gemm& gemm) {
        gemm.groups.panels = on_device(world, std::vector<GemmPanel>(64, wrong.panel), "own panels");
        gemm.groups.panel_count = on_device(world, std::vector<std::int32_t>{wrong.count}, "own count");
      };
      EXPECT_THAT(refusal<InvalidArgument>(backend, {}, spoil), testing::HasSubstr(wrong.what));
    }
  const auto spoil = [](World& world, Gemm& gemm) {
    gemm.groups.a_rows = on_device(world, std::vector<std::int32_t>(static_cast<std::size_t>(gemm.m), 11), "index");
  };
  EXPECT_THAT(refusal<InvalidArgument>(Backend::kSimulator, {.indexed = true}, spoil),
              testing::HasSubstr("is 11, allowed: -1 to 10"));
}

TEST(GroupedGemmErrors, OptionsOfTables) {
  on(Backend::kSimulator, [](World& world) {
    const auto message = [&](const GroupPanelOptions& options) {
      try {
        make_group_panels(world, options);
      } catch (const InvalidArgument& error) {
        return std::string(error.what());
      }
      return std::string();
    };
    const GroupPanelOptions right{.groups = 2, .most_panels = 3};
    EXPECT_EQ(message(right), "");
    const auto with = [&](auto&& change) {
      GroupPanelOptions options = right;
      change(options);
      return message(options);
    };
    using testing::HasSubstr;
    EXPECT_THAT(with([](auto& o) { o.groups = 0; }), HasSubstr("groups: 0 given to group panels, allowed are 1 to"));
    EXPECT_THAT(with([](auto& o) { o.tile_m = 0; }), HasSubstr("tile_m: 0 given"));
    EXPECT_THAT(with([](auto& o) { o.most_panels = 0; }), HasSubstr("most_panels: 0 given"));
    EXPECT_THAT(with([](auto& o) { o.together = 0; }), HasSubstr("together: 0 given"));
    EXPECT_THAT(with([](auto& o) { o.most_rows = 100; }), HasSubstr("most_rows: 100 given"));
    EXPECT_THAT(with([](auto& o) { o.words = -1; }), HasSubstr("words: -1 given"));
  });
}

}  // namespace
}  // namespace tandem::groups_errors_test
