#pragma once
/// AllGather beside a GEMM, by SMs, push. This PE stores its shard, and the data that arrives for its rail from other
/// nodes, to the PEs of its node, chunk by chunk. All blocks work on the same chunk, each on its share. Chunks thus
/// arrive one after another in the order in which the peers' GEMMs consume them. On a full mesh, one role for each peer
/// keeps all links busy.

#include "base/gpu_kernel.h"
#include "operators/plan/chunk_order.h"
#include "tandem/block.h"

namespace tandem::ops {

struct AllGatherPush {
  static constexpr int kMostRoles = 15;
  static constexpr int kWarpsOfRole = 2;

  struct Args {
    const std::byte* own;      // this PE's shard
    Symm<std::byte> gathered;  // all shards; the peers have released the last call's
    Signals ready;             // [chunk]: grows by the number of blocks in each call
    const Epoch* epoch;
    RowPartition rows;
    Size row_bytes;
    ChunkOrder order;
    bool peers_at_once;  // one role for each peer
    int only_part = -1;  // the chunks of one part alone; -1: of all
  };

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    for (int hop = 0; hop < a.order.hops(); ++hop) {
      if (a.peers_at_once) {
        block.template parallel_for<kWarpsOfRole>(a.order.peers(), [&](auto& role, int peer_step) {
          for (int step = 0; step < a.order.steps(); ++step)
            if (a.order.at(hop, step).peer_step == peer_step) push(role, a, hop, a.order.at(hop, step));
        });
      } else {
        for (int step = 0; step < a.order.steps(); ++step) push(block, a, hop, a.order.at(hop, step));
      }
    }
  }

 private:
  template <class Block>
  TANDEM_DEVICE static void push(Block& block, const Args& a, int hop, ChunkStep step) {
    if (a.only_part >= 0 && step.part != a.only_part) return;
    const int owner = a.order.owner(block.pe(), hop);
    const Signals ready = a.ready + a.rows.slot(owner, step.part);
    if (hop > 0) block.wait(ready, 1, block.load_scalar(a.epoch) * static_cast<Epoch>(block.count()));
    const Range chunk = bytes_of(a.rows.part(owner, step.part), a.row_bytes);
    const Range mine = split(chunk, block.count(), 16)[block.index()];
    const Size shard_begin = a.rows.shard(owner).begin * a.row_bytes;
    const std::byte* const from = hop == 0 ? a.own + (mine.begin - shard_begin) : a.gathered.local() + mine.begin;
    block.copy(block.remote(a.gathered, step.peer) + mine.begin, from, mine.size());
    block.notify(ready, 1, step.peer, SignalOp::kAdd);
  }
};

TANDEM_GPU_KERNEL(AllGatherPush, 1024);
TANDEM_GPU_BETWEEN_NODES(AllGatherPush);

}  // namespace tandem::ops
