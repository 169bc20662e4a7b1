#pragma once
/// First and last kernel of a collective of copy engines. Each is one warp, so that it fits beside any kernel.

#include "base/gpu_kernel.h"
#include "tandem/block.h"

namespace tandem::kernels {

struct CopyEngineArgs {
  Signals ready;     // [PE]: that PE has started this call, so its buffers may be written and read
  Signals arrived;   // [PE]: push: that PE's bytes are here; pull: that PE has finished its reads
  Epochs epochs;     // [1]
  int first_source;  // push: first of the PEs whose data arrives here
  int sources;       // number of these PEs
};

/// Signals to the peers that this call has started here, and waits until it has started everywhere.
struct CopyEngineBegin {
  using Args = CopyEngineArgs;
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch epoch = block.next_epoch(a.epochs);
    block.notify_all(a.ready, epoch);
    block.wait_all(a.ready, epoch);
  }
};

/// Waits for the signal after each source's copies. The first kernel has set the epoch.
struct CopyEngineEndPush {
  using Args = CopyEngineArgs;
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch epoch = block.load_scalar(a.epochs.words);
    for (int i = 0; i < a.sources; ++i) block.wait(a.arrived + (a.first_source + i) % block.num_pes(), 1, epoch);
  }
};

struct CopyOwnPartArgs {
  CopyEngineArgs engine;
  std::byte* to;
  const std::byte* from;
  Size bytes;
};

/// Does the same and copies this PE's own bytes. Some SMs do that faster than a copy engine beside the link's.
struct CopyOwnPart {
  using Args = CopyOwnPartArgs;
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Range part = split(a.bytes, block.count(), 16)[block.index()];
    block.copy(a.to + part.begin, a.from + part.begin, part.size());
    if (block.index() == 0) CopyEngineEndPush::run(block, a.engine);
  }
};

/// Waits until no peer reads this PE's input any more.
struct CopyEngineEndPull {
  using Args = CopyEngineArgs;
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch epoch = block.load_scalar(a.epochs.words);
    block.notify_all(a.arrived, epoch);
    block.wait_all(a.arrived, epoch);
  }
};

TANDEM_GPU_KERNEL(CopyEngineBegin, 32);
TANDEM_GPU_KERNEL(CopyEngineEndPush, 32);
TANDEM_GPU_KERNEL(CopyOwnPart, 512);
TANDEM_GPU_KERNEL(CopyEngineEndPull, 32);

}  // namespace tandem::kernels
