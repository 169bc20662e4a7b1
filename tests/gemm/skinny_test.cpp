#include "gemm/contract/skinny.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace tandem {

namespace {

TEST(Skinny, NothingInTheMemoryOfSumsOverlaps) {
  for (const int n : {8192, 8072})
    for (const int pes : {1, 2, 3})
      for (const Size rows : {64, 256}) {
        const SkinnyExchange exchange(n, pes);
        std::vector<std::pair<Size, Size>> parts;
        for (int block = 0; block < (rows + kSkinnyBlock - 1) / kSkinnyBlock; ++block)
          for (int column = 0; column < exchange.columns; ++column)
            for (Epoch call : {0, 1})
              for (int pe = 0; pe < pes; ++pe)
                parts.emplace_back(exchange.place(call, pe, exchange.tile(column, block)), SkinnyExchange::kTileBytes);
        for (int column = 0; rows > kSkinnyBlock && column < exchange.columns; ++column)
          for (int to = 0; to < kSkinnySlices; ++to)
            parts.emplace_back(exchange.slice_place(column, to), SkinnyExchange::kSliceBytes);
        std::sort(parts.begin(), parts.end());
        for (std::size_t i = 0; i + 1 < parts.size(); ++i)
          ASSERT_LE(parts[i].first + parts[i].second, parts[i + 1].first) << n << ' ' << pes << ' ' << rows;
        EXPECT_EQ(parts.front().first, 0);
        EXPECT_EQ(parts.back().first + parts.back().second, exchange.bytes(rows));
      }
}

TEST(Skinny, OfMoreThanABlockOfRowsEachSmHasOneSliceAtMost) {
  constexpr int kSms = 132;
  EXPECT_TRUE(skinny_fills(65, 8192, kSms));
  EXPECT_TRUE(skinny_fills(65, 8448, kSms));   // 132 blocks
  EXPECT_FALSE(skinny_fills(65, 8456, kSms));  // 136
  EXPECT_FALSE(skinny_fills(65, 4096, kSms));
}

}  // namespace

}  // namespace tandem
