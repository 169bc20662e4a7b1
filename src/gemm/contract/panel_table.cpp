#include "gemm/contract/panel_table.h"

#include <fmt/format.h>

#include <limits>

#include "tandem/error.h"

namespace tandem {

PanelTable make_panel_table(const Gemm& gemm, int cluster) {
  PanelTable table;
  table.groups = gemm.groups;
  table.order = PanelOrder::of(gemm.groups, gemm.n, gemm.tile_n, cluster);
  table.columns = table.order.columns;
  table.tile_m = gemm.tile_m;
  table.cluster = cluster;
  table.count = table.columns == 0 ? 0 : table.order.chunks();
  if (table.count == 0) return table;
  const Size units = Size{gemm.groups.most_panels} * table.order.units_of_panel();
  if (gemm.m > std::numeric_limits<int>::max() / 2)
    throw Unsupported(fmt::format("gemm: m is {}, the GPU's kernels take up to 2^30", gemm.m));
  table.units = static_cast<int>(units);
  for (int i = 0; i < table.count; ++i)
    table.chunks[i] = {0, 0, static_cast<int>(gemm.m), 0, static_cast<std::int16_t>(i)};
  return table;
}

}  // namespace tandem
