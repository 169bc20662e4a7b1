#pragma once
/// The table of panels from the groups' numbers of rows. A block writes the panels of one group at a time, behind those
/// of the groups before it, which it counts itself.

#include "base/gpu_kernel.h"
#include "tandem/advanced/gemm_groups.h"
#include "tandem/block.h"

namespace tandem::kernels {

struct MakePanels {
  static constexpr int kThreads = 128;
  static constexpr Size kTile = 512;
  static constexpr Size kWords = sizeof(GemmPanel) / sizeof(std::int32_t);

  struct Args {
    const std::int32_t* counts = nullptr;  // [group]
    const std::int32_t* starts = nullptr;  // [group]; null: multiples of most_rows
    int groups = 0;
    int tile_m = 0;
    int together = 0;
    int words = 0;
    int groups_of_word = 1;
    Size most_rows = 0;
    Size most_panels = 0;
    std::int32_t* panels = nullptr;         // [most_panels][kWords]
    std::int32_t* panel_count = nullptr;    // one
    const std::int32_t* numbers = nullptr;  // [kTile]: 0, 1, ...
    std::int64_t* refused = nullptr;        // [block][2]: group + 1 and its panels' end, or -1 - group and its rows
  };

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    for (int group = block.index(); group < a.groups; group += block.count()) make(block, a, group);
  }

 private:
  TANDEM_DEVICE static std::int32_t panels_of(std::int32_t rows, const Args& a) {
    if (rows <= 0) return 0;
    const Size kept = a.most_rows > 0 ? min(rows, a.most_rows) : Size{rows};
    return static_cast<std::int32_t>((kept + a.tile_m - 1) / a.tile_m);
  }

  template <class Block>
  TANDEM_DEVICE static void make(Block& block, const Args& a, int group) {
    std::int32_t first = 0;
    for (const Range before : Tiles({0, group}, kTile))
      first += block.sum(block.template load<std::int32_t>(a.counts, before).map([&a](std::int32_t rows) {
        return panels_of(rows, a);
      }));
    const std::int32_t rows = block.load_scalar(a.counts + group);
    const std::int32_t panels = panels_of(rows, a);
    const auto most = static_cast<std::int32_t>(a.most_panels);
    if (group == a.groups - 1) block.store_scalar(a.panel_count, first + panels < most ? first + panels : most);
    if (first <= most && first + panels > most) note(block, a, group + 1, first + panels);
    if (a.most_rows > 0 && rows > a.most_rows) note(block, a, -1 - group, rows);
    write(block, a, group, first, min(panels, max(0, Size{most} - first)));
  }

  /// Writes `panels` panels of a group from place `first` of the table on.
  template <class Block>
  TANDEM_DEVICE static void write(Block& block, const Args& a, int group, std::int32_t first, Size panels) {
    const std::int32_t rows = block.load_scalar(a.counts + group);
    const std::int32_t start =
        a.starts != nullptr ? block.load_scalar(a.starts + group) : static_cast<std::int32_t>(group * a.most_rows);
    const std::int32_t end = a.most_rows > 0 && rows > a.most_rows ? static_cast<std::int32_t>(a.most_rows) : rows;
    const std::int32_t tile_m = a.tile_m;
    const std::int32_t together = a.together;
    const auto count = static_cast<std::int32_t>(panels);
    for (const Range some : Tiles({0, panels}, kTile)) {
      const auto begin = static_cast<std::int32_t>(some.begin);
      const auto panel = block.template load<std::int32_t>(a.numbers, {0, some.size()}).map([begin](std::int32_t i) {
        return begin + i;
      });
      const auto at = panel.map([first](std::int32_t i) { return (first + i) * static_cast<std::int32_t>(kWords); });
      block.store_at(a.panels, at, panel.map([=](std::int32_t i) { return start + i * tile_m; }));
      block.store_at(a.panels + 1, at, panel.map([=](std::int32_t i) {
        const std::int32_t left = end - i * tile_m;
        return (left < tile_m ? left : tile_m) | group << 16;
      }));
      block.store_at(a.panels + 2, at, panel.map([=](std::int32_t i) {
        const std::int32_t place = i % together;
        const std::int32_t left = count - (i - place);
        return place | (left < together ? left : together) << 16;
      }));
      const std::int32_t word = group / a.groups_of_word * a.words;
      block.store_at(a.panels + 3, at, panel.map([word](std::int32_t) { return word; }));
    }
  }

  /// Keeps the first note of this block until the host has read it.
  template <class Block>
  TANDEM_DEVICE static void note(Block& block, const Args& a, std::int64_t what, std::int64_t value) {
    std::int64_t* const noted = a.refused + 2 * block.index();
    if (block.load_scalar(noted) != 0) return;
    block.store_scalar(noted + 1, value);
    block.store_scalar(noted, what);
  }
};

TANDEM_GPU_KERNEL(MakePanels, 128);

}  // namespace tandem::kernels
