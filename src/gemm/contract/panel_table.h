#pragma once
/// The tiles of a grouped GEMM in the form that a GPU's scheduler reads. `units` bounds the number of units, which only
/// the device knows. A unit is the work of one cluster of blocks: neighbouring tiles of one panel.

#include "gemm/contract/tile_table.h"

namespace tandem {

/// The chunks of the base class are the chunks of columns, at most kMostTableChunks. Each has all rows.
struct PanelTable : TileTable {
  static constexpr bool kOnDevice = true;
  GemmGroups groups;
  PanelOrder order;
};

/// Returns the table of a grouped GEMM for a kernel with `cluster` blocks in a cluster. Throws Unsupported if it does
/// not fit.
PanelTable make_panel_table(const Gemm& gemm, int cluster);

}  // namespace tandem
