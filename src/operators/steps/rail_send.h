#pragma once
/// First stage between nodes (Triton-distributed, arXiv 2504.19442, tutorial 07). A few blocks send the own shard to
/// the PEs with this PE's number in all other nodes, chunk by chunk with put_signal. The next node comes first, so that
/// every node receives from its previous node first.

#include "base/gpu_kernel.h"
#include "operators/plan/chunk_order.h"
#include "tandem/block.h"

namespace tandem::ops {

struct RailSend {
  struct Args {
    const std::byte* own;      // this PE's shard
    Symm<std::byte> gathered;  // all shards
    Signals ready;             // [chunk], counted over all calls
    RowPartition rows;
    Size row_bytes;
    int arrivals;  // growth of a chunk's word in each call
  };

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Team& team = block.team();
    const Range shard = bytes_of(a.rows.shard(team.me), a.row_bytes);
    const int messages = (team.nodes() - 1) * a.rows.splits;
    for (int i = block.index(); i < messages; i += block.count()) {
      const int to = (team.me + (1 + i / a.rows.splits) * team.node_size) % team.size;
      const int part = i % a.rows.splits;
      const Range chunk = bytes_of(a.rows.part(team.me, part), a.row_bytes);
      block.put_signal_nbi(a.gathered + chunk.begin, a.own + (chunk.begin - shard.begin), chunk.size(),
                           a.ready + a.rows.slot(team.me, part), static_cast<Epoch>(a.arrivals), to, SignalOp::kAdd);
    }
    block.quiet();
  }
};

TANDEM_GPU_KERNEL(RailSend, 32);
TANDEM_GPU_BETWEEN_NODES(RailSend);

}  // namespace tandem::ops
