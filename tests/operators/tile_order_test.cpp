#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tandem/advanced/gemm_order.h"

namespace tandem {
namespace {

constexpr TileOrder kOrders[] = {TileOrder::kRowMajor,    TileOrder::kOwnFirst,   TileOrder::kRing,
                                 TileOrder::kInterleaved, TileOrder::kPeersFirst, TileOrder::kOtherNodesFirst,
                                 TileOrder::kOwnNodeFirst};

Gemm problem(Size m, Size n, int shards, int splits, int me, int node_size, TileOrder order) {
  Gemm gemm;
  gemm.m = m;
  gemm.n = n;
  gemm.k = 1;
  gemm.tile_m = 8;
  gemm.tile_n = 16;
  gemm.rows = {m, shards, splits, gemm.tile_m};
  gemm.me = me;
  gemm.node_size = node_size;
  gemm.order = order;
  return gemm;
}

/// Owners in the order in which their first tiles come.
std::vector<int> owners(const Gemm& gemm) {
  const TileSequence sequence(gemm);
  std::vector<int> result;
  for (Size i = 0; i < sequence.tiles(); ++i) {
    const int owner = gemm.rows.owner_of(sequence.tile(i).rows.begin);
    if (result.empty() || result.back() != owner) result.push_back(owner);
  }
  return result;
}

TEST(TileSequence, EveryOrderCoversEveryElementOnce) {
  for (const TileOrder order : kOrders)
    for (const Size m : {1, 7, 8, 9, 64, 67})
      for (const int splits : {1, 3, 8})
        for (const int me : {0, 3, 5}) {
          Gemm gemm = problem(m, 33, 6, splits, me, 3, order);
          gemm.panel_group = me;
          const TileSequence sequence(gemm);
          std::vector<int> seen(static_cast<std::size_t>(m * gemm.n));
          for (Size i = 0; i < sequence.tiles(); ++i) {
            const GemmTile tile = sequence.tile(i);
            for (Size row = tile.rows.begin; row < tile.rows.end; ++row)
              for (Size col = tile.cols.begin; col < tile.cols.end; ++col)
                ++seen[static_cast<std::size_t>(row * gemm.n + col)];
          }
          EXPECT_EQ(std::vector<int>(seen.size(), 1), seen) << static_cast<int>(order) << " m=" << m << " me=" << me;
        }
}

TEST(TileSequence, WhoTakesTilesInTurnFindsTheSameOnes) {
  for (const TileOrder order : kOrders)
    for (const int step : {1, 3}) {
      const TileSequence sequence(problem(67, 33, 6, 3, 3, 3, order));
      TileSequence::Place from;
      for (Size i = 0; i < sequence.tiles(); i += step) {
        const GemmTile tile = sequence.tile(i);
        const GemmTile in_turn = sequence.tile(i, from);
        EXPECT_EQ(std::pair(in_turn.rows.begin, in_turn.rows.end), std::pair(tile.rows.begin, tile.rows.end));
        EXPECT_EQ(std::pair(in_turn.cols.begin, in_turn.cols.end), std::pair(tile.cols.begin, tile.cols.end));
        EXPECT_LE(from.first, i);
      }
      EXPECT_EQ(from.chunk > 0, order != TileOrder::kRowMajor);
    }
}

TEST(TileSequence, GroupsOfPanelsAreDoneOneAfterAnother) {
  Gemm gemm = problem(40, 32, 1, 1, 0, 1, TileOrder::kOwnFirst);
  gemm.panel_group = 2;
  const TileSequence sequence(gemm);
  std::vector<std::pair<Size, Size>> places;
  for (Size i = 0; i < sequence.tiles(); ++i)
    places.emplace_back(sequence.tile(i).rows.begin / 8, sequence.tile(i).cols.begin / 16);
  EXPECT_EQ(places, (std::vector<std::pair<Size, Size>>{
                        {0, 0}, {1, 0}, {0, 1}, {1, 1}, {2, 0}, {3, 0}, {2, 1}, {3, 1}, {4, 0}, {4, 1}}));
}

TEST(TileSequence, PiecesHaveTheTilesThatTheyAnnounce) {
  const Gemm gemm = problem(61, 33, 3, 4, 1, 3, TileOrder::kPeersFirst);
  const TileSequence sequence(gemm);
  std::vector<Size> tiles(static_cast<std::size_t>(gemm.rows.slots()));
  for (Size i = 0; i < sequence.tiles(); ++i) {
    const Size row = sequence.tile(i).rows.begin;
    ++tiles[static_cast<std::size_t>(gemm.rows.slot(gemm.rows.owner_of(row), gemm.rows.part_of(row)))];
  }
  for (int owner = 0; owner < 3; ++owner)
    for (int part = 0; part < 4; ++part)
      EXPECT_EQ(tiles[static_cast<std::size_t>(gemm.rows.slot(owner, part))], gemm.tiles_of_chunk(owner, part));
}

TEST(TileSequence, OrdersFollowTheirNames) {
  const auto order = [](TileOrder which) { return owners(problem(48, 16, 6, 1, 4, 3, which)); };
  EXPECT_EQ(order(TileOrder::kOwnFirst), (std::vector{4, 5, 0, 1, 2, 3}));
  EXPECT_EQ(order(TileOrder::kRing), (std::vector{4, 3, 2, 1, 0, 5}));
  EXPECT_EQ(order(TileOrder::kPeersFirst), (std::vector{5, 0, 1, 2, 3, 4}));
  EXPECT_EQ(order(TileOrder::kOwnNodeFirst), (std::vector{4, 5, 3, 1, 2, 0}));
  EXPECT_EQ(order(TileOrder::kOtherNodesFirst), (std::vector{2, 0, 1, 5, 3, 4}));
  EXPECT_EQ(owners(problem(48, 16, 3, 2, 1, 3, TileOrder::kInterleaved)), (std::vector{1, 2, 0, 2, 0}));
}

TEST(RowPartition, PartsAreCutAtTiles) {
  const RowPartition rows{1024, 4, 8, 128};
  EXPECT_EQ(rows.part(1, 0), (Range{256, 384}));
  EXPECT_EQ(rows.part(1, 1), (Range{384, 512}));
  EXPECT_TRUE(rows.part(1, 2).empty());
  EXPECT_EQ(rows.part_of(500), 1);
  EXPECT_EQ(rows.shard_rows(), 256);
}

}  // namespace
}  // namespace tandem
