#pragma once
/// The tiles of one block in a grouped GEMM. Clusters take the units of a PanelTable one after the other. Each of the
/// two blocks of a cluster has one of a unit's tiles.

#include "gemm/contract/panel_table.h"
#include "gemm/hopper/tile_walk.cuh"

namespace tandem::cuda {

// The kernel before may still write the table when this one starts (programmatic dependent launch). So these loads must
// stay behind the kernel's wait. Loads by `__ldg` need not: ptxas moved one before the wait. Some warps of a block then
// found an older number of panels than the others, and waited for them without an end.

__device__ inline int load_count(const std::int32_t* from) {
  int count;
  asm volatile("ld.global.s32 %0, [%1];" : "=r"(count) : "l"(from));
  return count;
}
/// In one load.
__device__ inline GemmPanel load_panel(const GemmPanel* from) {
  int words[4];
  asm volatile("ld.global.v4.s32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "l"(from));
  GemmPanel panel;
  static_assert(sizeof panel == sizeof words);
  __builtin_memcpy(&panel, words, sizeof panel);
  return panel;
}

/// A tile of this block.
struct PanelTile : WalkedTile {
  int group;      ///< number of its B
  int rows;       ///< of the panel
  int word;       ///< first word of its gate
  bool in_panel;  ///< whether the cluster's blocks have one panel, or else one column
  bool empty;
  __device__ bool is_empty() const { return empty; }
};

template <>
class TileWalk<PanelTable> {
 public:
  /// For code behind the wait for the kernel before.
  __device__ explicit TileWalk(const PanelTable& table)
      : table_(table),
        panels_(load_count(table.groups.panel_count)),
        units_(panels_ * table.order.units_of_panel()),
        unit_(static_cast<int>(blockIdx.x) / table.cluster),
        step_(static_cast<int>(gridDim.x) / table.cluster) {}

  __device__ bool is_over() const { return unit_ >= units_; }
  __device__ bool is_last() const { return unit_ + step_ >= units_; }
  __device__ void advance() { unit_ += step_; }
  __device__ PanelTile tile() const {
    const Panels panels{table_.groups.panels};
    const PanelOrder::Place place =
        table_.order.place(unit_, static_cast<int>(blockIdx.x) % table_.cluster, panels, panels_);
    const GemmPanel panel = panels[place.panel];
    PanelTile tile{};
    tile.chunk = &table_.chunks[0];
    tile.number = place.chunk;
    tile.row = panel.row;
    tile.column = place.column;
    tile.group = panel.group;
    tile.rows = panel.rows;
    tile.word = panel.word;
    tile.in_panel = place.in_panel;
    tile.empty = place.column >= table_.order.end_of(place.chunk);
    return tile;
  }

 private:
  struct Panels {
    const GemmPanel* from;
    __device__ GemmPanel operator[](int i) const { return load_panel(from + i); }
  };

  const PanelTable& table_;
  const int panels_;
  const int units_;
  int unit_;
  const int step_;
};

}  // namespace tandem::cuda
