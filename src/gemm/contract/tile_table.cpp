#include "gemm/contract/tile_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "tandem/error.h"

namespace tandem {

TileTable make_tile_table(const Gemm& gemm, int cluster) {
  const TileSequence sequence(gemm);
  if (gemm.m > std::numeric_limits<int>::max() / 2)
    throw Unsupported(fmt::format("gemm: m is {}, the GPU's kernels take up to 2^30", gemm.m));
  if (sequence.owners() > kMostShards || sequence.chunks() > kMostTableChunks)
    throw Unsupported(fmt::format("gemm: {} shards in {} chunks, the GPU's kernels take {} and {}", sequence.owners(),
                                  sequence.chunks(), kMostShards, kMostTableChunks));
  TileTable table;
  table.columns = static_cast<int>(ceil_div(gemm.n, gemm.tile_n));
  table.tile_m = gemm.tile_m;
  table.cluster = cluster;
  const int group_rows = gemm.tile_m * cluster;
  // At most the existing panels, since products with other counts have 32 bits.
  const int groups = std::max(1, static_cast<int>(ceil_div(gemm.m, group_rows)));
  table.group = gemm.panel_group > 0 ? std::min(groups, static_cast<int>(ceil_div(gemm.panel_group, cluster))) : groups;
  for (int i = 0; i < sequence.chunks(); ++i) {
    const TileSequence::Chunk chunk = sequence.chunk(i);
    if (chunk.rows.empty()) continue;
    TableChunk& entry = table.chunks[table.count++];
    entry.first = table.units;
    entry.begin = static_cast<int>(chunk.rows.begin);
    entry.end = static_cast<int>(chunk.rows.end);
    entry.owner = static_cast<std::int16_t>(chunk.owner);
    entry.slot = static_cast<std::int16_t>(gemm.rows.slot(chunk.owner, chunk.part));
    table.units += panels_of(table, entry) * table.columns;
  }
  return table;
}

}  // namespace tandem
