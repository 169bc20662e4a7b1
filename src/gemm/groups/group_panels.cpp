#include "tandem/layer/group_panels.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "gemm/groups/make_panels.h"
#include "tandem/error.h"

namespace tandem {

namespace {

using kernels::MakePanels;

constexpr const char* kName = "group panels";

void require(bool holds, const char* option, Size given, const std::string& allowed) {
  if (!holds) throw InvalidArgument(fmt::format("{}: {} given to {}, allowed are {}", option, given, kName, allowed));
}

void check(const GroupPanelOptions& o) {
  constexpr Size kMost = std::numeric_limits<std::int16_t>::max();
  constexpr Size kMostRows = Size{1} << 30;
  require(o.groups >= 1 && o.groups <= kMost, "groups", o.groups, fmt::format("1 to {}", kMost));
  require(o.tile_m >= 1 && o.tile_m <= kMost, "tile_m", o.tile_m, fmt::format("1 to {}", kMost));
  require(o.most_panels >= 1 && o.most_panels <= kMostRows / o.tile_m, "most_panels", o.most_panels,
          fmt::format("1 to {}", kMostRows / o.tile_m));
  require(o.together >= 1 && o.together <= kMost, "together", o.together, fmt::format("1 to {}", kMost));
  require(o.most_rows >= 0 && o.most_rows % o.tile_m == 0 && o.most_rows <= kMostRows / o.groups, "most_rows",
          o.most_rows, fmt::format("multiples of tile_m up to {}", kMostRows / o.groups));
  require(o.words >= 0 && o.words <= kMostRows / o.groups, "words", o.words,
          fmt::format("0 to {}", kMostRows / o.groups));
  require(o.groups_of_word >= 1 && o.groups_of_word <= kMost, "groups_of_word", o.groups_of_word,
          fmt::format("1 to {}", kMost));
}

/// Throws what a block of the kernel noted for the first group, and forgets it.
void throw_refused(World& world, std::int64_t* notes, int blocks, const GroupPanelOptions& o) {
  std::vector<std::int64_t> noted(std::size_t{2} * static_cast<std::size_t>(blocks));
  const auto bytes = static_cast<Size>(noted.size() * sizeof(noted[0]));
  world.copy_out(noted.data(), notes, bytes);
  const auto group_of = [](std::int64_t what) { return what > 0 ? what - 1 : -1 - what; };
  std::int64_t what = 0;
  std::int64_t value = 0;
  for (std::size_t i = 0; i < noted.size(); i += 2)
    if (noted[i] != 0 && (what == 0 || group_of(noted[i]) < group_of(what))) {
      what = noted[i];
      value = noted[i + 1];
    }
  if (what == 0) return;
  std::fill(noted.begin(), noted.end(), 0);
  world.copy_in(notes, noted.data(), bytes);
  if (what < 0)
    throw InvalidArgument(fmt::format("most_rows: PE {}, group {}: {} rows, allowed are {}", world.pe(), group_of(what),
                                      value, o.most_rows));
  throw InvalidArgument(fmt::format("most_panels: PE {}, group {}: {} panels up to this group, allowed are {}",
                                    world.pe(), group_of(what), value, o.most_panels));
}

class Panels final : public GroupPanels {
 public:
  Panels(World& world, const GroupPanelOptions& o)
      : options_(o),
        team_(world.team()),
        grid_{std::min(o.groups, world.machine().gpu.sm_count), MakePanels::kThreads} {
    world.check_launch<MakePanels>(grid_);
    detail::NotedAllocations allocations = world.note_allocations();
    auto* const panels = world.heap().allocate_local<Index>(o.most_panels * MakePanels::kWords, "panels");
    panels_ = reinterpret_cast<const GemmPanel*>(panels);
    args_.panels = reinterpret_cast<std::int32_t*>(panels);
    args_.panel_count = filled(world, std::vector<std::int32_t>(1), "number of panels");
    std::vector<std::int32_t> numbers(MakePanels::kTile);
    std::iota(numbers.begin(), numbers.end(), 0);
    args_.numbers = filled(world, numbers, "numbers of panels");
    args_.refused = filled(world, std::vector<std::int64_t>(std::size_t{2} * static_cast<std::size_t>(grid_.blocks)),
                           "refused groups");
    args_.groups = o.groups;
    args_.tile_m = o.tile_m;
    args_.together = o.together;
    args_.words = o.words;
    args_.groups_of_word = o.groups_of_word;
    args_.most_rows = o.most_rows;
    args_.most_panels = o.most_panels;
    refused_ = std::make_shared<const std::function<void()>>(
        [world, notes = args_.refused, blocks = grid_.blocks, o]() mutable { throw_refused(world, notes, blocks, o); });
    memory_ = allocations.take();
  }

  void make(Stream& stream, const std::int32_t* counts, const std::int32_t* starts) override {
    if (counts == nullptr) throw InvalidArgument(fmt::format("counts: null given to {}, allowed is an address", kName));
    if ((starts == nullptr) != (options_.most_rows > 0))
      throw InvalidArgument(fmt::format("starts: {} given to {}, allowed is {}",
                                        starts == nullptr ? "null" : "an address", kName,
                                        starts == nullptr ? "an address without most_rows" : "null with most_rows"));
    MakePanels::Args args = args_;
    args.counts = counts;
    args.starts = starts;
    stream.launch<MakePanels>(grid_, args, team_);
    stream.check_at_synchronize(refused_);
  }

  GemmGroups groups() const override {
    GemmGroups groups;
    groups.count = options_.groups;
    groups.panels = panels_;
    groups.panel_count = args_.panel_count;
    groups.most_panels = options_.most_panels;
    groups.words = options_.words;
    return groups;
  }

 private:
  /// Memory with these values, in phantom simulations, too.
  template <class T>
  static T* filled(World& world, const std::vector<T>& values, const char* what) {
    const auto bytes = static_cast<Size>(values.size() * sizeof(T));
    auto* const memory = world.heap().allocate_local<Index>(bytes / Size{sizeof(Index)}, what);
    world.copy_in(memory, values.data(), bytes);
    return reinterpret_cast<T*>(memory);
  }

  GroupPanelOptions options_;
  Team team_;
  Grid grid_;
  MakePanels::Args args_;
  const GemmPanel* panels_ = nullptr;
  std::shared_ptr<const std::function<void()>> refused_;
  detail::PlanMemory memory_;
};

}  // namespace

std::unique_ptr<GroupPanels> make_group_panels(World& world, const GroupPanelOptions& options) {
  check(options);
  return std::make_unique<Panels>(world, options);
}

}  // namespace tandem
