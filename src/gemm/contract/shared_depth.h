#pragma once
/// The last units of a TileTable, where they are fewer than clusters: if it pays, clusters that would be idle in the
/// last wave compute the first steps of these units, and the units' own clusters the others and the sum ("split-K" of
/// the last wave alone; Osama et al., "Stream-K", PPoPP 2023, cut it evenly). Which cluster computes what, and in which
/// order parts are added, depends on the problem and the number of clusters alone.

#include <cstdint>

#include "gemm/contract/tile_table.h"

namespace tandem {

/// Steps of one unit that one cluster computes.
struct UnitPart {
  static constexpr std::int16_t kGives = -1;

  std::int16_t unit = 0;  ///< counted from the first one that is shared
  std::int16_t first = 0;
  std::int16_t count = 0;
  std::int16_t place = 0;   ///< where its sums are left; of the part that finishes the unit: where the others' begin
  std::int16_t others = 0;  ///< how many parts' sums it adds, to finish the unit; kGives: it leaves its own
};

/// What each cluster has to do behind the whole units, which clusters take in turns. One that leaves sums has a smaller
/// number than those that wait for it, and waits for nobody itself: blocks start in the order of their numbers.
struct SharedDepth {
  static constexpr int kMostClusters = 96, kMostParts = 2 * kMostClusters;

  int whole = 0;                               ///< units that one cluster computes alone, the first ones
  int depth = 0;                               ///< steps of a unit
  int steps = 0;                               ///< that the last wave is expected to take: `depth` where none is shared
  int places = 0;                              ///< for parts' sums
  std::int16_t begin[kMostClusters + 1] = {};  ///< of each cluster's parts
  UnitPart parts[kMostParts] = {};
};

/// What exchanging sums costs, in steps of the mainloop.
struct SharingCost {
  int give = 6;   ///< what leaving a part's sums takes the cluster
  int add = 8;    ///< from there until they are added
  int least = 8;  ///< steps of a part; not fewer than boxes of a tile are written late
  int gain = 8;   ///< that have to be saved

  /// For tiles of `tile_n` columns.
  static SharingCost of(int tile_n);
};

/// For `units` units of `depth` steps on `clusters` clusters. Nothing is shared where that would not pay.
SharedDepth share_depth(int units, int depth, int clusters, const SharingCost& cost);
/// All units whole.
SharedDepth share_nothing(int units, int depth);

/// Problems that are less deep never share: no workspace is needed.
inline constexpr Size kLeastSharedDepth = 2560;

/// A tile table with the depth of the last units shared.
struct SharedTileTable : TileTable {
  static constexpr bool kShares = true;
  SharedDepth shared;
};

}  // namespace tandem
