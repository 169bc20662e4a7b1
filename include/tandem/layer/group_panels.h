#pragma once
/// The table of panels of a grouped GEMM, made on the device from the groups' numbers of rows.
///
///   auto panels = make_group_panels(world, {.groups = 32, .most_panels = 512});
///   plan->route(stream, ...);                                        // make_experts with layout kSorted, align 128
///   panels->make(stream, routing.counts, routing.starts);
///   gemm.groups = panels->groups();
///   stream.gemm(gemm, world.team());

#include <cstdint>
#include <functional>
#include <memory>

#include "tandem/advanced/gemm_groups.h"
#include "tandem/stream.h"
#include "tandem/world.h"

namespace tandem {

/// Options of a table.
struct GroupPanelOptions {
  int groups = 0;       ///< matrices B, 1 to 32,767
  int tile_m = 128;     ///< rows of a panel, as Gemm::tile_m
  int most_panels = 0;  ///< room in the table; ceil(most rows / tile_m) + groups - 1 panels always fit
  int together = 16;    ///< panels of a group that are computed together, column by column
  Size most_rows = 0;   ///< rows of each group in C, a multiple of tile_m; 0: `make` gets the groups' first rows
  int words = 0;        ///< words of the gate: group g waits for [w * words, (w + 1) * words), w = g / groups_of_word
  int groups_of_word = 1;  ///< neighbouring groups that wait for the same words
};

/// A table of panels in memory of this PE.
class GroupPanels {
 public:
  /// Returns the table's memory.
  virtual ~GroupPanels() = default;
  /// Enqueues a kernel that makes the table from the rows of each group, which the device reads. `starts` has the
  /// groups' first rows, multiples of tile_m, and is null with most_rows. CUDA graphs can capture it.
  ///
  /// If the table has no room for all panels, the stream's next `synchronize` throws InvalidArgument. It names the
  /// first group that lacks some, and the number of panels. The table then has fewer panels, and nothing is written
  /// behind it. It throws for a group with more than most_rows rows, too, which loses the last ones.
  virtual void make(Stream& stream, const std::int32_t* counts, const std::int32_t* starts = nullptr) = 0;
  /// Returns the groups for a GEMM, with the table and its gate's words.
  virtual GemmGroups groups() const = 0;
};

/// Makes a table. Throws InvalidArgument with the name of the option, the value given and the values allowed. In a
/// phantom simulation the numbers of rows need memory with contents (Index), as routings of experts have.
std::unique_ptr<GroupPanels> make_group_panels(World& world, const GroupPanelOptions& options);

}  // namespace tandem
