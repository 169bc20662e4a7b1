#pragma once
/// The arguments of the storing kernel: destinations of tiles, their signals, and their epilogue.

#include "gemm/hopper/device_wait.cuh"
#include "gemm/hopper/host/gemm_targets.h"
#include "gemm/hopper/host/tensor_map.h"
#include "gemm/hopper/partial_sums.cuh"
#include "gemm/hopper/tile_walk.cuh"

namespace tandem::cuda {

/// The addend of a ring in the form that the kernel reads.
struct DeviceRing {
  const Signal* arrived = nullptr;  ///< [slot]; null: no ring
  const Epoch* epoch = nullptr;
  int first_owner = -1;   ///< owner whose sums start here: they have no addend
  int copied_owner = -1;  ///< owner whose rows are stored twice
  int last_owner = -1;    ///< owner whose sums are complete here: they are activated
};

/// Bias: the type of the bias' elements.
template <class Bias>
struct TileStoreParams {
  CUtensorMap c[kMostShards];         ///< by owner: its rows, which clip its last tiles; or by copy: all rows
  CUtensorMap received[kMostShards];  ///< by owner: the sums that the ring delivers
  CUtensorMap own_copy;               ///< second destination of the own rows
  std::byte* to[kMostShards];         ///< addresses of `c`
  int shard_begin[kMostShards];
  Signal* word[kMostTableChunks];  ///< by the chunk's index in the table, or by copy; null: no signal
  int copies;                      ///< copies of each tile: 1, or with a GemmBroadcast one for each PE of the node
  DeviceRing ring;
  PartialSums partial;
  Context context;
  const Bias* bias;
  int m, n;
  Activation activation;
  GemmScales scales;
};

/// One block of rows of one owner.
template <class Bias>
void set_copies(TileStoreParams<Bias>& params, const Gemm& gemm, const GemmBroadcast& all, int rows, int cols) {
  params.copies = gemm.node_size;
  for (int i = 0; i < gemm.node_size; ++i) {
    const CopyOfTiles copy = copy_of_tiles(gemm, all, i);
    params.to[i] = copy.to;
    params.c[i] = tensor_map(copy.to, gemm.out_type, gemm.m, gemm.n, rows, cols);
    params.word[i] = copy.word;
  }
}

/// Boxes of a map have `rows` and `cols`.
template <class Bias>
TileStoreParams<Bias> tile_store_params(const Gemm& gemm, const TileTable& table, const Context& context, int rows,
                                        int cols) {
  TileStoreParams<Bias> params{};
  params.context = context;
  params.partial = PartialSums(gemm.workspace);
  params.bias = static_cast<const Bias*>(gemm.bias);
  params.m = static_cast<int>(gemm.m);
  params.n = static_cast<int>(gemm.n);
  params.activation = gemm.activation;
  params.scales = gemm.scales;
  params.copies = 1;
  if (const GemmBroadcast* const all = gemm.destination.broadcast()) {
    set_copies(params, gemm, *all, rows, cols);
    return params;
  }
  const GemmRing* const ring = gemm.destination.ring();
  const TileSequence sequence(gemm);
  for (int owner = 0; owner < sequence.owners(); ++owner) {
    const Range of_owner = sequence.rows_of_owner(owner);
    params.shard_begin[owner] = static_cast<int>(of_owner.begin);
    if (of_owner.empty()) continue;
    const auto map = [&](const std::byte* data) {
      return tensor_map(data, gemm.out_type, of_owner.size(), columns_after(gemm.activation, gemm.n), rows, cols);
    };
    params.to[owner] = destination_of(gemm, owner, of_owner.begin);
    params.c[owner] = map(params.to[owner]);
    if (owner == gemm.me && ring != nullptr && ring->own_copy != nullptr) {
      params.own_copy = map(ring->own_copy);
      params.ring.copied_owner = owner;
    }
    if (gemm.ring_adds_to(owner))
      params.received[owner] = map(ring->received + owner * gemm.rows.shard_rows() * gemm.n * size_of(gemm.out_type));
  }
  for (int i = 0; i < table.count; ++i) params.word[i] = notified_by(gemm, table.chunks[i]);
  if (ring == nullptr) return params;
  params.ring.arrived = ring->arrived;
  params.ring.epoch = ring->epoch;
  params.ring.first_owner = (gemm.me + 1) % gemm.rows.shards;
  params.ring.last_owner = gemm.me;
  return params;
}

}  // namespace tandem::cuda
