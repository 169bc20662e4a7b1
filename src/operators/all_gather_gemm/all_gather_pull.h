#pragma once
/// AllGather beside a GEMM, by SMs, pull. This PE puts its shard into its own copy of the gathered buffer and signals
/// that. Then it loads the shards of its node's PEs, with the data that arrived for them from other nodes. The order is
/// that in which its GEMM consumes them.

#include "base/gpu_kernel.h"
#include "operators/plan/chunk_order.h"
#include "tandem/block.h"

namespace tandem::ops {

struct AllGatherPull {
  struct Args {
    const std::byte* own;      // this PE's shard; null: it is in the gathered buffer
    Symm<std::byte> gathered;  // all shards; the peers have released the last call's
    Signals in_place;          // [block][chunk]: its holder in this node has this block's share of the chunk
    Signals ready;             // [chunk]: grows by the number of blocks in each call
    const Epoch* epoch;
    RowPartition rows;
    Size row_bytes;
    ChunkOrder order;
  };

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch epoch = block.load_scalar(a.epoch);
    const Signals in_place = a.in_place + Size{block.index()} * a.rows.slots();
    for (int hop = 0; hop < a.order.hops(); ++hop) {
      for (int part = 0; part < a.rows.splits; ++part) notify(block, a, hop, part, in_place, epoch);
      for (int i = 0; i < a.order.steps(); ++i) pull(block, a, hop, a.order.at(hop, i), in_place, epoch);
    }
  }

 private:
  TANDEM_DEVICE static Range share(const Args& a, int owner, int part, int blocks, int block) {
    return split(bytes_of(a.rows.part(owner, part), a.row_bytes), blocks, 16)[block];
  }

  template <class Block>
  TANDEM_DEVICE static void notify(Block& block, const Args& a, int hop, int part, Signals in_place, Epoch epoch) {
    const int owner = a.order.owner(block.pe(), hop);
    const int slot = a.rows.slot(owner, part);
    const Range mine = share(a, owner, part, block.count(), block.index());
    const Size shard_begin = a.rows.shard(owner).begin * a.row_bytes;
    if (hop > 0)
      block.wait(a.ready + slot, 1, epoch * static_cast<Epoch>(block.count()));
    else if (a.own != nullptr)
      block.copy(a.gathered.local() + mine.begin, a.own + (mine.begin - shard_begin), mine.size());
    for (int i = 0; i < a.order.peers(); ++i)
      block.notify(in_place + slot, epoch, a.order.first_of_node() + (block.pe() + 1 + i) % a.order.team.node_size);
  }

  template <class Block>
  TANDEM_DEVICE static void pull(Block& block, const Args& a, int hop, ChunkStep step, Signals in_place, Epoch epoch) {
    const int owner = a.order.owner(step.peer, hop);
    const int slot = a.rows.slot(owner, step.part);
    const Range mine = share(a, owner, step.part, block.count(), block.index());
    block.wait(in_place + slot, 1, epoch);
    block.get(a.gathered.local() + mine.begin, a.gathered + mine.begin, mine.size(), step.peer);
    block.notify(a.ready + slot, 1, block.pe(), SignalOp::kAdd);
  }
};

TANDEM_GPU_KERNEL(AllGatherPull, 1024);

}  // namespace tandem::ops
