#pragma once
/// Second half of the two-shot GEMM + AllReduce. Each PE adds its own shard chunk by chunk as the partial sums of all
/// PEs arrive. Meanwhile it fetches the sums of the other shards from their owners.
///
/// Fixed order, in f32: PEs 0, 1, ..., rounded once by the owner, so all PEs get the same bits. Sums are fetched and
/// not stored to the peers, so that the result may lie anywhere in a PE's memory.

#include "base/gpu_kernel.h"
#include "gemm/contract/activation.h"
#include "operators/plan/chunk_order.h"
#include "tandem/block.h"

namespace tandem::ops {

template <class T>
struct SumAndFetch {
  /// Warps of the role that adds (at memory's rate) and of the role that fetches (at a link's rate).
  static constexpr int kAddWarps = 8, kFetchWarps = 8;

  struct Args {
    bool staged;       // tiles are in their owner's staging; otherwise where they were computed
    bool fetch;        // otherwise copy engines fetch
    Symm<T> partials;  // m x n: each PE's GEMM
    Symm<T> staging;   // [PE] x shard_rows x n: every PE's partial sums of this PE's shard
    Symm<T> sums;      // shard_rows x n: the sums of this PE's shard
    T* out;            // m x n
    Signals arrived;   // [PE][part]: its complete tiles of partial sums, counted over all calls
    Signals summed;    // [chunk]: blocks that put their share into its owner's `sums`, counted over all calls
    Epoch* expected;   // [block][part]: value of `arrived` up to the last call
    const Epoch* epoch;
    RowPartition rows;
    Size n;
    int tile_m;  // arrivals of a chunk: its tiles, tile_m rows by one of `columns`; tile_m 0: one
    Size columns;
    Activation activation;  // of the sum
  };

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    if (!a.fetch) return add_all(block, a);
    block.template parallel<kAddWarps, kFetchWarps>([&](auto& adder) { add_all(adder, a); },
                                                    [&](auto& fetcher) { fetch_all(fetcher, a); });
  }

 private:
  /// Returns this block's share of a chunk, in elements from the start of its shard.
  template <class Block>
  TANDEM_DEVICE static Range share(const Block& block, const Args& a, int owner, int part) {
    const Range chunk = bytes_of(a.rows.part(owner, part), a.n);
    const Size begin = shard_begin(a, owner);
    return split({chunk.begin - begin, chunk.end - begin}, block.count(), 16)[block.index()];
  }
  TANDEM_DEVICE static Size shard_begin(const Args& a, int owner) { return a.rows.shard(owner).begin * a.n; }

  /// Returns the start of this PE's shard in the product of `pe`.
  template <class Block>
  TANDEM_DEVICE static const T* partial(const Block& block, const Args& a, int pe) {
    if (a.staged) return a.staging.local() + pe * a.rows.shard_rows() * a.n;
    return block.remote(a.partials, pe) + shard_begin(a, block.pe());
  }

  template <class Block>
  TANDEM_DEVICE static void add_all(Block& block, const Args& a) {
    for (int part = 0; part < a.rows.splits; ++part) add(block, a, part);
  }

  template <class Block>
  TANDEM_DEVICE static void fetch_all(Block& block, const Args& a) {
    const Epoch all_blocks = block.load_scalar(a.epoch) * static_cast<Epoch>(block.count());
    for (int part = 0; part < a.rows.splits; ++part)
      for (const int owner : block.peers_from_self()) fetch(block, a, owner, part, all_blocks);
  }

  template <class Block>
  TANDEM_DEVICE static void add(Block& block, const Args& a, int part) {
    using A = Accumulator<T>;
    const Range chunk = a.rows.part(block.pe(), part);
    const auto tiles = static_cast<Epoch>(a.tile_m == 0 ? 1 : ceil_div(chunk.size(), a.tile_m) * a.columns);
    Epoch* const counter = a.expected + Size{block.index()} * a.rows.splits + part;
    const Epoch expected = block.fetch_add(counter, tiles, Scope::kGpu, Order::kRelaxed) + tiles;
    for (const int pe : block.pes_from_self()) block.wait(a.arrived + a.rows.slot(pe, part), 1, expected);
    for (const Range tile : block.template tiles<T>(share(block, a, block.pe(), part))) {
      auto sum = block.template load<A>(partial(block, a, 0), tile);
      for (int pe = 1; pe < block.num_pes(); ++pe)
        sum = block.combine(ReduceOp::kSum, sum, block.template load<A>(partial(block, a, pe), tile));
      const auto result = activated(a.activation, std::move(sum));
      block.store(a.out + shard_begin(a, block.pe()), tile, result);
      block.store(a.sums.local(), tile, result);
    }
    for (const int pe : block.peers_from_self())
      block.notify(a.summed + a.rows.slot(block.pe(), part), 1, pe, SignalOp::kAdd);
  }

  template <class Block>
  TANDEM_DEVICE static void fetch(Block& block, const Args& a, int owner, int part, Epoch all_blocks) {
    const Range mine = share(block, a, owner, part);
    block.wait(a.summed + a.rows.slot(owner, part), 1, all_blocks);
    block.get(a.out + shard_begin(a, owner) + mine.begin, a.sums + mine.begin, mine.size(), owner);
  }
};

TANDEM_GPU_KERNEL(SumAndFetch<float>, 512);
TANDEM_GPU_KERNEL(SumAndFetch<f16>, 512);
TANDEM_GPU_KERNEL(SumAndFetch<bf16>, 512);
TANDEM_GPU_BETWEEN_NODES(SumAndFetch<float>);
TANDEM_GPU_BETWEEN_NODES(SumAndFetch<f16>);
TANDEM_GPU_BETWEEN_NODES(SumAndFetch<bf16>);

}  // namespace tandem::ops
