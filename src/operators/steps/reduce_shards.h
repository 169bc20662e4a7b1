#pragma once
/// Local reduction of GEMM + ReduceScatter: sums the partial sums of this node's PEs for the rows of this PE's rail, as
/// they arrive.
///
/// On one node that is the result. Between nodes it is the second of three stages. The node's sum for a PE of another
/// node is put to that PE while the GEMM still works (shards of other nodes first). The last stage adds the nodes'
/// sums. Fixed order, in f32: PEs 0, 1, ... of the node; then nodes 0, 1, ..., whose sums travel as T.

#include "base/gpu_kernel.h"
#include "gemm/contract/activation.h"
#include "operators/plan/chunk_order.h"
#include "tandem/block.h"

namespace tandem::ops {

/// The place of the partial sums that a collector adds.
enum class PartialsAt {
  kStaging,        ///< all in this PE's staging
  kStagingButOwn,  ///< the peers' there, its own in its GEMM's output
  kPeers,          ///< in the GEMMs' outputs, read over the links
};

template <class T>
struct ReduceShards {
  struct Args {
    PartialsAt partials_at;
    Symm<T> partials;   // m x n: each PE's GEMM
    Symm<T> staging;    // [shard's node, PE of this node] x shard_rows x n: a block each
    Symm<T> node_sums;  // [node] x shard_rows x n: sums for this PE's rows; between nodes only
    T* outgoing;        // [node] x shard_rows x n: this node's sums for the rail's rows; between nodes only
    T* out;             // this PE's rows x n
    Signals arrived;    // [block][part]: the collector's input, counted over all calls
    Epoch* expected;    // [block of the grid][node][part]: value of `arrived` up to the last call
    Signals crossed;    // [block of the grid][node][part]: a node's sum is in node_sums
    const Epoch* epoch;
    RowPartition rows;
    Size n;
    int tile_m;  // arrivals of a chunk: its tiles, tile_m rows by one of `columns`; tile_m 0: one
    Size columns;
    Activation activation;  // of the sum over all PEs
  };

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Team& team = block.team();
    const Epoch epoch = block.load_scalar(a.epoch);
    const int my_node = team.me / team.node_size;
    for (int step = 1; step <= team.nodes(); ++step) {
      const int node = (my_node + step) % team.nodes();
      for (int part = 0; part < a.rows.splits; ++part) {
        add_node(block, a, node, part);
        if (node != my_node) send(block, a, node, part, epoch);
      }
    }
    if (team.one_node()) return;
    for (int part = 0; part < a.rows.splits; ++part) add_nodes(block, a, part, epoch);
    block.quiet();
  }

 private:
  using A = Accumulator<T>;

  TANDEM_DEVICE static int owner_in(const Team& team, int node) {
    return node * team.node_size + team.me % team.node_size;
  }
  /// Returns this block's share of a chunk, in elements from the start of its shard.
  template <class Block>
  TANDEM_DEVICE static Range share(const Block& block, const Args& a, int owner, int part) {
    const Range chunk = bytes_of(a.rows.part(owner, part), a.n);
    const Size begin = a.rows.shard(owner).begin * a.n;
    return split({chunk.begin - begin, chunk.end - begin}, block.count(), 16)[block.index()];
  }
  TANDEM_DEVICE static Size shard_size(const Args& a) { return a.rows.shard_rows() * a.n; }
  TANDEM_DEVICE static Signals crossed(const Args& a, const Team& team, int block, int node, int part) {
    return a.crossed + ((Size{block} * team.nodes() + node) * a.rows.splits + part);
  }

  /// Returns the start of the owner's rows in the product of PE `local` of this node.
  template <class Block>
  TANDEM_DEVICE static const T* partial(const Block& block, const Args& a, int owner, int local) {
    const Team& team = block.team();
    const int pe = team.me - team.me % team.node_size + local;
    const bool staged =
        a.partials_at == PartialsAt::kStaging || (a.partials_at == PartialsAt::kStagingButOwn && pe != team.me);
    if (staged) return a.staging.local() + (owner - owner % team.node_size + local) * shard_size(a);
    return block.remote(a.partials, pe) + a.rows.shard(owner).begin * a.n;
  }

  /// Adds the PEs of this node, each chunk as soon as it is there.
  template <class Block>
  TANDEM_DEVICE static void add_node(Block& block, const Args& a, int node, int part) {
    const Team& team = block.team();
    const int owner = owner_in(team, node);
    const bool is_last = node == team.me / team.node_size;
    T* const to = team.one_node() ? a.out : (is_last ? a.node_sums.local() : a.outgoing) + node * shard_size(a);
    const Activation activation = team.one_node() ? a.activation : Activation::kNone;
    const auto tiles =
        static_cast<Epoch>(a.tile_m == 0 ? 1 : ceil_div(a.rows.part(owner, part).size(), a.tile_m) * a.columns);
    Epoch* const counter = a.expected + (Size{block.index()} * team.nodes() + node) * a.rows.splits + part;
    const Epoch expected = block.fetch_add(counter, tiles, Scope::kGpu, Order::kRelaxed) + tiles;
    for (int local = 0; local < team.node_size; ++local)
      block.wait(a.arrived + a.rows.slot(node * team.node_size + local, part), 1, expected);
    for (const Range tile : block.template tiles<T>(share(block, a, owner, part))) {
      auto sum = block.template load<A>(partial(block, a, owner, 0), tile);
      for (int local = 1; local < team.node_size; ++local)
        sum = block.combine(ReduceOp::kSum, sum, block.template load<A>(partial(block, a, owner, local), tile));
      block.store(to, tile, activated(activation, std::move(sum)));
    }
  }

  /// Puts this node's sum to the PE of the rail that owns the rows.
  template <class Block>
  TANDEM_DEVICE static void send(Block& block, const Args& a, int node, int part, Epoch epoch) {
    const Team& team = block.team();
    const int owner = owner_in(team, node);
    const int my_node = team.me / team.node_size;
    const Range mine = share(block, a, owner, part);
    block.put_signal_nbi(a.node_sums + (my_node * shard_size(a) + mine.begin),
                         a.outgoing + node * shard_size(a) + mine.begin, mine.size(),
                         crossed(a, team, block.index(), my_node, part), epoch, owner);
  }

  /// Adds the nodes' sums of this PE's rows.
  template <class Block>
  TANDEM_DEVICE static void add_nodes(Block& block, const Args& a, int part, Epoch epoch) {
    const Team& team = block.team();
    for (int node = 0; node < team.nodes(); ++node)
      if (node != team.me / team.node_size) block.wait(crossed(a, team, block.index(), node, part), 1, epoch);
    for (const Range tile : block.template tiles<T>(share(block, a, team.me, part))) {
      auto sum = block.template load<A>(a.node_sums.local(), tile);
      for (int node = 1; node < team.nodes(); ++node)
        sum = block.combine(ReduceOp::kSum, sum,
                            block.template load<A>(a.node_sums.local() + node * shard_size(a), tile));
      block.store(a.out, tile, activated(a.activation, std::move(sum)));
    }
  }
};

TANDEM_GPU_KERNEL(ReduceShards<float>, 1024);
TANDEM_GPU_KERNEL(ReduceShards<f16>, 1024);
TANDEM_GPU_KERNEL(ReduceShards<bf16>, 1024);
TANDEM_GPU_BETWEEN_NODES(ReduceShards<float>);
TANDEM_GPU_BETWEEN_NODES(ReduceShards<f16>);
TANDEM_GPU_BETWEEN_NODES(ReduceShards<bf16>);

}  // namespace tandem::ops
