#include "gemm/contract/groups.h"

#include <fmt/format.h>

#include <limits>

#include "tandem/error.h"

namespace tandem {

namespace {

constexpr Size kMostOfPanel = std::numeric_limits<std::int16_t>::max();

void require(bool holds, const std::string& field, Size given, const std::string& allowed) {
  if (!holds) throw InvalidArgument(fmt::format("gemm: {} is {}, allowed: {}", field, given, allowed));
}

/// Gates, destinations and epilogues that only a single product has.
void refuse_others(const Gemm& gemm) {
  const auto refuse = [](bool is_set, const char* field) {
    if (is_set) throw Unsupported(fmt::format("gemm: {} is set, which a GEMM with groups does not have", field));
  };
  refuse(gemm.order != TileOrder::kRowMajor, "order");
  refuse(gemm.own_a != nullptr, "own_a");
  refuse(gemm.bias != nullptr, "bias");
  refuse(gemm.destination.is_partial(), "a destination for partial sums");
  const GemmLocal* const local = gemm.destination.local();
  refuse(local != nullptr && local->notify.words && !local->notify.local, "a notification of other PEs");
}

}  // namespace

std::string gemm_name(const Gemm& gemm) {
  const std::string shape = fmt::format("gemm {}x{}x{}", gemm.m, gemm.n, gemm.k);
  return gemm.groups.count == 0 ? shape : fmt::format("{} of {} groups", shape, gemm.groups.count);
}

void check_groups(const Gemm& gemm) {
  const GemmGroups& groups = gemm.groups;
  require(groups.count >= 0 && groups.count <= kMostOfPanel, "groups.count", groups.count,
          fmt::format("0 to {}", kMostOfPanel));
  if (groups.count == 0) return;
  refuse_others(gemm);
  require(groups.panels != nullptr, "groups.panels", 0, "an address");
  require(groups.panel_count != nullptr, "groups.panel_count", 0, "an address");
  require(gemm.tile_m <= kMostOfPanel, "tile_m", gemm.tile_m, fmt::format("up to {} with groups", kMostOfPanel));
  require(gemm.m <= std::numeric_limits<std::int32_t>::max(), "m", gemm.m, "up to 2^31 - 1 with groups");
  require(groups.a_rows == nullptr || groups.rows_of_a >= 1, "groups.rows_of_a", groups.rows_of_a,
          "1 or more with a_rows");
  const Size columns = max(ceil_div(gemm.n, gemm.tile_n), 1);
  constexpr Size kMostTiles = Size{1} << 30;
  require(groups.most_panels >= 0 && groups.most_panels <= kMostTiles / columns, "groups.most_panels",
          groups.most_panels, fmt::format("0 to {}, for up to 2^30 tiles", kMostTiles / columns));
  require(groups.column_chunks >= 1 && groups.column_chunks <= columns, "groups.column_chunks", groups.column_chunks,
          fmt::format("1 to {}, the tiles in a row", columns));
  require(gemm.gate.words == nullptr ? groups.words == 0 : groups.words >= 1, "groups.words", groups.words,
          "1 or more with a gate, else 0");
}

void check_panel_count(const Gemm& gemm, int count) {
  require(count >= 0 && count <= gemm.groups.most_panels, "groups.panel_count", count,
          fmt::format("0 to most_panels, {}", gemm.groups.most_panels));
}

void check_panel(const Gemm& gemm, const GemmPanel& panel, int number, int count) {
  const auto require_in = [&](Size value, Size least, Size most, const char* field) {
    require(value >= least && value <= most, fmt::format("{} of panel {}", field, number), value,
            fmt::format("{} to {}", least, most));
  };
  require_in(panel.rows, 1, gemm.tile_m, "rows");
  require_in(panel.row, 0, gemm.m - panel.rows, "row");
  require_in(panel.group, 0, gemm.groups.count - 1, "group");
  require_in(panel.together, 1, count, "together");
  require_in(panel.place, max(0, number + panel.together - count), min(number, panel.together - 1), "place");
}

void check_a_row(const Gemm& gemm, Size at, Size row) {
  require(row >= -1 && row < gemm.groups.rows_of_a, fmt::format("groups.a_rows[{}]", at), row,
          fmt::format("-1 to {}", gemm.groups.rows_of_a - 1));
}

}  // namespace tandem
