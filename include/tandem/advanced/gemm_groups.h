#pragma once
/// Many matrix products in one fused GEMM: the experts of a layer. They share n, k and the types. Each has a B of
/// its own, and rows of A that only the device knows.
///
/// A table in device memory holds panels: up to tile_m rows of one group. GroupPanels (tandem/layer/group_panels.h)
/// makes it from the groups' numbers of rows. A panel owns tile_m rows of C, as far as C has them. The rows behind its
/// own ones are undefined after the GEMM.

#include <cstdint>

#include "tandem/numeric.h"

namespace tandem {

/// Rows of one group that are computed together. Panels of a group lie behind one another in the table.
struct alignas(16) GemmPanel {
  std::int32_t row = 0;       ///< first row of C, and of A or of `a_rows`
  std::int16_t rows = 0;      ///< 1 to tile_m
  std::int16_t group = 0;     ///< number of its B
  std::int16_t place = 0;     ///< its place among the panels that are computed together, column by column
  std::int16_t together = 1;  ///< their number; all are of this group
  std::int32_t word = 0;      ///< the first of the gate's words for which it waits
};

/// The groups of a GEMM. Gemm::b has `count` matrices behind one another, and Gemm::m bounds the rows of C.
///
/// It needs the order kRowMajor. It has no own_a, bias or sums over PEs, and its notification is local.
struct GemmGroups {
  int count = 0;                              ///< matrices B; 0: one product, without groups
  const GemmPanel* panels = nullptr;          ///< in the order of computation, on the device
  const std::int32_t* panel_count = nullptr;  ///< their number, on the device
  int most_panels = 0;                        ///< the most panels of the table
  const std::int32_t* a_rows = nullptr;       ///< [m]: the row of A for each row of C, or -1: zeros; null: the same
  Size rows_of_a = 0;                         ///< rows of A if `a_rows` is set
  void* gathered = nullptr;                   ///< workspace of GPUs for `a_rows`, of gathered_bytes
  int words = 0;                              ///< words of the gate for which each panel waits
  /// Chunks of columns, each of ceil(tiles / column_chunks) tiles; the last one may have fewer. All panels of a chunk
  /// are computed before the next chunk. The notification has a word for each, which grows by one for each tile.
  int column_chunks = 1;
};

/// The order of the tiles of a grouped GEMM. Within a chunk of columns, panels that are computed together follow each
/// other, column by column. A unit of work is one tile, or two neighbouring tiles for the two blocks of a cluster.
struct PanelOrder {
  int columns = 0;        ///< tiles in a row
  int chunk_columns = 0;  ///< tiles of a chunk of columns
  int width = 1;          ///< tiles of a unit: 1 or 2

  /// The order for n columns in tiles of `tile_n`.
  TANDEM_DEVICE static PanelOrder of(const GemmGroups& groups, Size n, int tile_n, int width) {
    const int columns = static_cast<int>(ceil_div(n, tile_n));
    return {columns, static_cast<int>(ceil_div(max(columns, 1), groups.column_chunks)), width};
  }

  /// Returns the number of units of each panel in chunk `chunk`. All panels have the same.
  TANDEM_DEVICE int units_of(int chunk) const {
    const int left = columns - chunk * chunk_columns;
    return ((left < chunk_columns ? left : chunk_columns) + width - 1) / width;
  }
  /// Returns the number of chunks with columns.
  TANDEM_DEVICE int chunks() const { return (columns + chunk_columns - 1) / chunk_columns; }
  /// Returns the number of units of each panel.
  TANDEM_DEVICE int units_of_panel() const { return (chunks() - 1) * units_of(0) + units_of(chunks() - 1); }
  /// Returns the end of the columns of a chunk, in tiles.
  TANDEM_DEVICE int end_of(int chunk) const {
    const int end = (chunk + 1) * chunk_columns;
    return end < columns ? end : columns;
  }

  /// A tile of a unit.
  struct Place {
    int panel = 0;          ///< number in the table
    int chunk = 0;          ///< of columns
    int column = 0;         ///< in tiles; at the end of its chunk or behind it the tile is empty
    bool in_panel = false;  ///< whether the two tiles of the unit are neighbours in one panel, or else in one column
  };
  /// Returns tile `rank` of unit `unit` of a table with `count` panels; panels[i] is the i-th one.
  template <class Panels>
  TANDEM_DEVICE Place place(int unit, int rank, const Panels& panels, int count) const {
    const int of_chunk = count * units_of(0);
    const int chunk = unit / of_chunk;
    unit -= chunk * of_chunk;
    const int units = units_of(chunk);
    const int some = unit / units;
    const GemmPanel panel = panels[some];
    const int first = some - panel.place;
    unit -= first * units;
    const int step = unit / panel.together;
    unit -= step * panel.together;
    const int column = chunk * chunk_columns + step * width;
    if (width == 1) return {first + unit, chunk, column, true};
    // Two columns have `together` units: pairs of panels in each of them, and at last both columns of the odd panel.
    const int pairs = panel.together / 2;
    if (unit == 2 * pairs) return {first + unit, chunk, column + rank, true};
    const bool second = unit >= pairs;
    return {first + (unit - (second ? pairs : 0)) * 2 + rank, chunk, column + (second ? 1 : 0), false};
  }
};

}  // namespace tandem
