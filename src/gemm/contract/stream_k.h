#pragma once
/// Stream-K for the last wave: the last units of a TileTable, if they are fewer than the clusters. If it pays, clusters
/// that would be idle compute the first steps of these units. The units' own clusters compute the other steps and the
/// sum. Osama et al., "Stream-K", PPoPP 2023, divide the whole problem evenly instead. The work of each cluster and the
/// order of additions depend on the problem and the number of clusters only.

#include <cstdint>

#include "gemm/contract/tile_table.h"

namespace tandem {

/// Steps of one unit that one cluster computes.
struct UnitPart {
  static constexpr std::int16_t kGives = -1;

  std::int16_t unit = 0;  ///< counted from the first unit that is split
  std::int16_t first = 0;
  std::int16_t count = 0;
  std::int16_t place = 0;   ///< place of its sums; for the part that completes the unit: first place of the other parts
  std::int16_t others = 0;  ///< number of parts whose sums it adds to complete the unit; kGives: it gives its own sums
};

/// The work of each cluster after the whole units. A cluster that gives sums waits for no other cluster. Its number is
/// smaller than that of the clusters that wait for it, since blocks start in the order of their numbers.
struct StreamK {
  static constexpr int kMostClusters = 96, kMostParts = 2 * kMostClusters;

  int whole = 0;                               ///< number of units that one cluster computes alone, the first ones
  int depth = 0;                               ///< steps of a unit
  int steps = 0;                               ///< expected steps of the last wave: `depth` if none is split
  int places = 0;                              ///< places for the sums of parts
  std::int16_t begin[kMostClusters + 1] = {};  ///< of each cluster's parts
  UnitPart parts[kMostParts] = {};
};

/// The cost of an exchange of sums, in steps of the mainloop.
struct StreamKCost {
  int give = 6;   ///< cost for the cluster that gives a part's sums
  int add = 8;    ///< delay until they are added
  int least = 8;  ///< least steps of a part; not fewer than boxes of a tile that are written late
  int gain = 8;   ///< least steps to be saved

  /// Returns the cost for tiles of `tile_n` columns.
  static StreamKCost of(int tile_n);
};

/// Divides `units` units of `depth` steps over `clusters` clusters. Nothing is split unless that pays.
StreamK split_last_wave(int units, int depth, int clusters, const StreamKCost& cost);
/// Keeps all units whole.
StreamK split_nothing(int units, int depth);

/// Problems of 16-bit types with less depth never share, so they need no workspace.
inline constexpr Size kLeastStreamKDepth = 2560;
/// Returns the same for any type: a step has 128 bytes of a row.
constexpr Size least_stream_k_depth(DType type) { return 2 * kLeastStreamKDepth / size_of(type); }

/// A tile table whose last units are split by stream-K.
struct StreamKTileTable : TileTable {
  static constexpr bool kIsStreamK = true;
  StreamK stream_k;
};

}  // namespace tandem
