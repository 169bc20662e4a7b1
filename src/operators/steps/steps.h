#pragma once
/// Steps of one warp between copies and GEMMs: they count the epoch, wait, and release. Each is a kernel, so that a
/// captured graph can be replayed (a stream's own wait has a fixed value). It is small enough to fit beside a
/// persistent GEMM that leaves an SM free.

#include "base/gpu_kernel.h"
#include "tandem/advanced/gemm.h"
#include "tandem/block.h"
#include "tandem/stream.h"

namespace tandem::ops {

inline constexpr Grid kOneWarp{1, 32};

/// SMs that a GEMM leaves to steps which have to run beside it. On Hopper its blocks leave no quarter of an SM enough
/// registers for a warp, and they come in pairs.
inline constexpr int kStepSms = 2;

/// Calls f(pe) for the PEs that exchange data with this one: those of its node, and those with its number in the other
/// nodes.
template <class Block, class F>
TANDEM_DEVICE void for_each_data_peer(const Block& block, F f) {
  const Team& team = block.team();
  for (int pe : block.pes_from_self())
    if (pe / team.node_size == team.me / team.node_size || pe % team.node_size == team.me % team.node_size) f(pe);
}

/// Ends a call: the peers may write to this PE's buffers again.
struct Release {
  struct Args {
    Signals released;  // [PE]: the last call that this PE has finished
    const Epoch* epoch;
  };
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch epoch = block.load_scalar(a.epoch);
    for_each_data_peer(block, [&](int pe) { block.notify(a.released + block.pe(), epoch, pe); });
  }
};

/// Counts a call.
struct NextEpoch {
  struct Args {
    Epochs epochs;
  };
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    block.next_epoch(a.epochs);
  }
};

/// Starts a call of one stream: counts it, and waits until all peers have released the previous one.
struct BeginReleased {
  struct Args {
    Signals released;
    Epochs epochs;
  };
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch epoch = block.next_epoch(a.epochs);
    for_each_data_peer(block, [&](int pe) { block.wait(a.released + pe, 1, epoch - 1); });
  }
};

/// Waits until all peers have released the previous call.
struct AwaitReleased {
  using Args = Release::Args;
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch epoch = block.load_scalar(a.epoch);
    for_each_data_peer(block, [&](int pe) { block.wait(a.released + pe, 1, epoch - 1); });
  }
};

/// Waits for one word that grows by `per_call` in each call. Later work on its stream takes no SM before that. Early
/// blocks (programmatic dependent launch) would take SMs that a GEMM needs before it can write the word.
struct AwaitWord {
  static constexpr bool kHoldsNext = true;
  struct Args {
    Signals word;
    const Epoch* epoch;
    Size per_call;
  };
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    block.wait(a.word, 1, block.load_scalar(a.epoch) * static_cast<Epoch>(a.per_call));
  }
};

/// Waits until `word` has grown by `arrivals` in this call. The number may differ between calls; `*expected`
/// accumulates it.
struct AwaitCount {
  struct Args {
    Signals word;
    Epoch* expected;  // value of the word up to the last call
    Size arrivals;
  };
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const auto arrivals = static_cast<Epoch>(a.arrivals);
    block.wait(a.word, 1, block.fetch_add(a.expected, arrivals, Scope::kGpu, Order::kRelaxed) + arrivals);
  }
};

/// Waits for all chunks of the shards [first, first + shards) except the own shard's.
struct AwaitShards {
  struct Args {
    Signals ready;  // [chunk]
    const Epoch* epoch;
    RowPartition rows;
    int arrivals;  // growth of a chunk's word in each call
    int first;
    int shards;
  };
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch expected = block.load_scalar(a.epoch) * static_cast<Epoch>(a.arrivals);
    for (int owner = a.first; owner < a.first + a.shards; ++owner)
      if (owner != block.pe()) block.wait(a.ready + a.rows.slot(owner, 0), a.rows.splits, expected);
  }
};

TANDEM_GPU_STEP(Release);
TANDEM_GPU_STEP(NextEpoch);
TANDEM_GPU_STEP(BeginReleased);
TANDEM_GPU_STEP(AwaitReleased);
TANDEM_GPU_STEP(AwaitWord);
TANDEM_GPU_STEP(AwaitCount);
TANDEM_GPU_STEP(AwaitShards);
TANDEM_GPU_BETWEEN_NODES(Release);

}  // namespace tandem::ops
