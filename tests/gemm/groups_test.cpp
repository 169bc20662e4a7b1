// Grouped GEMMs of the simulator and of CPUs, with their tables of panels; against sums by definition.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "gemm/contract/activation.h"
#include "gemm/groups/make_panels.h"
#include "support/host_pes.h"
#include "tandem/advanced/gemm_order.h"
#include "tandem/error.h"
#include "tandem/layer/experts.h"
#include "tandem/layer/group_panels.h"
#include "tandem/machine.h"
#include "tandem/simulation.h"

namespace tandem {
namespace {

constexpr int kTileM = 8, kTileN = 16;

/// Small integers: sums of their products are exact in f32.
float element(int matrix, Size row, Size col) { return static_cast<float>((row * 7 + col * 3 + matrix * 5) % 7 - 3); }

struct Case {
  std::vector<std::int32_t> counts = {0, 1, kTileM - 1, kTileM, kTileM + 1, 0, 5 * kTileM + 3};
  Size n = 50, k = 23;
  DType type = DType::kBF16;
  BLayout layout = BLayout::kNxK;
  Size most_rows = 0;  ///< of each group; 0: groups behind one another
  bool indexed = false;
  bool gated = false;
  int column_chunks = 1;
  int together = 2;
  Activation activation = Activation::kNone;
  int room = 64;  ///< most_panels
};

template <class T>
T* on_device(World& world, const std::vector<T>& values, const char* name) {
  T* const memory = world.heap().allocate_local<T>(std::max<Size>(1, static_cast<Size>(values.size())), name);
  world.copy_in(memory, values.data(), static_cast<Size>(values.size() * sizeof(T)));
  return memory;
}

/// One PE's grouped GEMM.
template <class T>
class Groups {
 public:
  Groups(World& world, const Case& c)
      : world_(world), case_(c), stream_(world.make_stream("main")), copies_(world.make_stream("copies")) {
    std::int32_t row = 0;
    for (const std::int32_t count : c.counts) {
      starts_.push_back(row);
      row += static_cast<std::int32_t>(c.most_rows > 0 ? c.most_rows : round_up(count, kTileM));
    }
    m_ = row;
    rows_of_a_ = c.indexed ? 11 : m_;
    const int groups = static_cast<int>(c.counts.size());
    panels_ = make_group_panels(world, {.groups = groups,
                                        .tile_m = kTileM,
                                        .most_panels = c.room,
                                        .together = c.together,
                                        .most_rows = c.most_rows,
                                        .words = c.gated ? 1 : 0});
    make_gemm(groups);
  }

  void run() {
    const std::int32_t* const counts = on_device(world_, case_.counts, "counts");
    panels_->make(stream_, counts, case_.most_rows > 0 ? nullptr : on_device(world_, starts_, "starts"));
    stream_.gemm(gemm_, world_.team());
    if (case_.gated) send_rows();
    for (int i = 0; has_room() && i < case_.column_chunks; ++i) stream_.wait_signal(words_.local() + i, tiles_of(i));
    stream_.synchronize();
  }

  std::string problem() {
    const Size columns = columns_after(case_.activation, case_.n);
    std::vector<T> got(static_cast<std::size_t>(m_ * columns));
    world_.copy_out(got.data(), gemm_.destination.c(), static_cast<Size>(got.size() * sizeof(T)));
    for (std::size_t g = 0; g < case_.counts.size(); ++g)
      for (Size row = starts_[g]; row < starts_[g] + case_.counts[g]; ++row)
        for (Size col = 0; col < columns; ++col) {
          const auto found = convert<float>(got[static_cast<std::size_t>(row * columns + col)]);
          const auto want = convert<float>(convert<T>(expected(static_cast<int>(g), row, col)));
          if (found != want)
            return fmt::format("group {} row {} column {}: {} instead of {}", g, row, col, found, want);
        }
    return check_chunks();
  }

  Gemm& gemm() { return gemm_; }
  Stream& stream() { return stream_; }

 private:
  void make_gemm(int groups) {
    std::vector<T> b;
    const bool rows_of_b = case_.layout == BLayout::kNxK;
    for (int g = 0; g < groups; ++g)
      for (Size i = 0; i < (rows_of_b ? case_.n : case_.k); ++i)
        for (Size j = 0; j < (rows_of_b ? case_.k : case_.n); ++j)
          b.push_back(convert<T>(rows_of_b ? element(g + 1, i, j) : element(g + 1, j, i)));
    for (Size i = 0; i < rows_of_a_; ++i)
      for (Size j = 0; j < case_.k; ++j) a_values_.push_back(convert<T>(element(0, i, j)));
    a_ = on_device(world_, case_.gated ? std::vector<T>(a_values_.size()) : a_values_, "a");
    gemm_.m = m_;
    gemm_.n = case_.n;
    gemm_.k = case_.k;
    gemm_.type = gemm_.out_type = case_.type;
    gemm_.tile_m = kTileM;
    gemm_.tile_n = kTileN;
    gemm_.a = a_;
    gemm_.b = on_device(world_, b, "b");
    gemm_.b_layout = case_.layout;
    const Size columns = columns_after(case_.activation, case_.n);
    T* const c = on_device(world_, std::vector<T>(static_cast<std::size_t>(m_ * columns)), "c");
    gemm_.activation = case_.activation;
    gemm_.groups = panels_->groups();
    gemm_.groups.column_chunks = case_.column_chunks;
    words_ = world_.heap().signals(case_.column_chunks, "tiles");
    gemm_.destination = GemmLocal{c, {words_, true}};
    arrived_ = world_.heap().signals(groups, "arrived");
    if (case_.gated) gemm_.gate = {arrived_.local(), on_device(world_, std::vector<Epoch>{1}, "epoch"), 1};
    if (!case_.indexed) return;
    for (Size row = 0; row < m_; ++row) index_.push_back(static_cast<std::int32_t>(row * 5 % (rows_of_a_ + 1) - 1));
    gemm_.groups.a_rows = on_device(world_, index_, "index");
    gemm_.groups.rows_of_a = rows_of_a_;
  }

  /// The rows of A, group by group, while the GEMM runs.
  void send_rows() {
    const T* const source = on_device(world_, a_values_, "source");
    for (std::size_t g = 0; g < case_.counts.size(); ++g) {
      const Size begin = starts_[g] * case_.k;
      if (case_.counts[g] > 0)
        copies_.copy_async(a_ + begin, source + begin, case_.counts[g] * case_.k * Size{sizeof(T)});
      copies_.write_signal(arrived_.local() + g, 1);
    }
    copies_.synchronize();
  }

  float expected(int group, Size row, Size col) const {
    if (!is_gated(case_.activation)) return activate(case_.activation, sum(group, row, col));
    const Size gate = column_of_gate(col);
    return gated(case_.activation, sum(group, row, gate), sum(group, row, gate + kGateGroup));
  }
  float sum(int group, Size row, Size col) const {
    const Size of_a = case_.indexed ? index_[static_cast<std::size_t>(row)] : row;
    float sum = 0;
    for (Size i = 0; of_a >= 0 && i < case_.k; ++i) sum += element(0, of_a, i) * element(group + 1, col, i);
    return sum;
  }

  Size panels() const {
    Size panels = 0;
    for (const Size count : case_.counts)
      panels += ceil_div(case_.most_rows > 0 ? min(count, case_.most_rows) : count, kTileM);
    return panels;
  }
  bool has_room() const { return panels() <= case_.room; }
  /// Returns the tiles of a chunk of columns.
  Epoch tiles_of(int chunk) const {
    const Size columns = ceil_div(case_.n, kTileN);
    const Size of_chunk = ceil_div(columns, case_.column_chunks);
    return static_cast<Epoch>(max(0, min(of_chunk, columns - chunk * of_chunk)) * panels());
  }
  std::string check_chunks() {
    std::vector<Signal> tiles(static_cast<std::size_t>(case_.column_chunks));
    world_.copy_out(tiles.data(), words_.local(), static_cast<Size>(tiles.size() * sizeof(Signal)));
    for (int i = 0; i < case_.column_chunks; ++i)
      if (const Epoch found = tiles[static_cast<std::size_t>(i)].value; found != tiles_of(i))
        return fmt::format("chunk {}: {} tiles, {} expected", i, found, tiles_of(i));
    return "";
  }

  World& world_;
  Case case_;
  Stream stream_, copies_;
  std::unique_ptr<GroupPanels> panels_;
  Gemm gemm_;
  std::vector<std::int32_t> starts_, index_;
  std::vector<T> a_values_;
  T* a_ = nullptr;
  Signals words_, arrived_;
  Size m_ = 0, rows_of_a_ = 0;
};

enum class Backend { kSimulator, kHost };

void on(Backend backend, const std::function<void(World&)>& program) {
  if (backend == Backend::kSimulator)
    Simulation(load_machine("h200x8"), 1, {}).run(program);
  else
    test::HostPes(1, {.threads = 3}).run(program);
}

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
            ++seen.at(static_cast<std::size_t>(place.panel * 5 + place.column));
          const PanelOrder::Place other = order.place(unit, 0, panels, static_cast<int>(panels.size()));
          EXPECT_EQ(place.panel - other.panel, place.in_panel ? 0 : rank);
          EXPECT_EQ(place.column - other.column, place.in_panel ? rank : 0);
        }
      EXPECT_EQ(seen, std::vector<int>(seen.size(), 1)) << chunks << " chunks, width " << width;
    }
}

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
}  // namespace tandem
