#include "gemm/contract/tile_table.h"

#include <gtest/gtest.h>

#include <vector>

#include "tandem/error.h"

namespace tandem {
namespace {

Gemm problem(Size m, int shards, int splits, TileOrder order, int panel_group) {
  Gemm gemm;
  gemm.m = m;
  gemm.n = 40;
  gemm.k = 1;
  gemm.tile_m = 8;
  gemm.tile_n = 16;
  gemm.panel_group = panel_group;
  gemm.rows = {m, shards, splits, gemm.tile_m};
  gemm.me = shards / 2;
  gemm.order = order;
  return gemm;
}

struct Place {
  Size row, col;
  bool operator==(const Place& other) const = default;
};

/// Tiles as the blocks of `cluster` blocks each find them, one unit after the other.
std::vector<Place> by_table(const Gemm& gemm, int cluster) {
  const TileTable table = make_tile_table(gemm, cluster);
  std::vector<Place> places;
  int chunk = 0;
  for (int unit = 0; unit < table.units; ++unit)
    for (int rank = 0; rank < cluster; ++rank) {
      const TablePlace place = place_of(table, unit, rank, chunk);
      chunk = place.chunk;
      const Size row = table.chunks[chunk].begin + place.panel * gemm.tile_m;
      if (row < table.chunks[chunk].end) places.push_back({row, place.column * gemm.tile_n});
    }
  return places;
}

std::vector<Place> by_sequence(const Gemm& gemm) {
  const TileSequence sequence(gemm);
  std::vector<Place> places;
  for (Size i = 0; i < sequence.tiles(); ++i)
    places.push_back({sequence.tile(i).rows.begin, sequence.tile(i).cols.begin});
  return places;
}

constexpr TileOrder kOrders[] = {TileOrder::kRowMajor, TileOrder::kOwnFirst, TileOrder::kInterleaved,
                                 TileOrder::kPeersFirst};

TEST(TileTable, SingleBlocksFollowTheSequence) {
  for (const TileOrder order : kOrders)
    for (const Size m : {1, 8, 61, 200})
      for (const int splits : {1, 3})
        for (const int group : {0, 1, 3}) {
          const Gemm gemm = problem(m, 5, splits, order, group);
          EXPECT_EQ(by_table(gemm, 1), by_sequence(gemm)) << static_cast<int>(order) << " m=" << m;
        }
}

TEST(TileTable, PairsOfBlocksShareAColumnAndCoverEverythingOnce) {
  for (const TileOrder order : kOrders)
    for (const Size m : {1, 8, 61, 200})
      for (const int splits : {1, 3})
        for (const int group : {0, 1, 4}) {
          const Gemm gemm = problem(m, 5, splits, order, group);
          std::vector<int> seen(static_cast<std::size_t>(m * 3));
          for (const Place& place : by_table(gemm, 2))
            for (Size row = place.row; row < min(place.row + 8, gemm.rows.shard(gemm.rows.owner_of(place.row)).end);
                 ++row)
              if (order != TileOrder::kRowMajor) ++seen[static_cast<std::size_t>(row * 3 + place.col / 16)];
          if (order == TileOrder::kRowMajor) continue;
          EXPECT_EQ(seen, std::vector<int>(seen.size(), 1)) << static_cast<int>(order) << " m=" << m;
        }
  const TileTable table = make_tile_table(problem(24, 1, 1, TileOrder::kOwnFirst, 0), 2);
  EXPECT_EQ(table.units, 6);  // three panels in pairs, three columns
  EXPECT_EQ(place_of(table, 3, 1, 0).panel, 3);
  EXPECT_EQ(place_of(table, 3, 1, 0).column, 1);
}

TEST(TileTable, RefusesWhatDoesNotFit) {
  EXPECT_THROW(make_tile_table(problem(100, 9, 1, TileOrder::kOwnFirst, 0), 2), Unsupported);
  EXPECT_THROW(make_tile_table(problem(Size{1} << 31, 1, 1, TileOrder::kRowMajor, 0), 2), Unsupported);
}

}  // namespace
}  // namespace tandem
