#pragma once
/// The ends of a collective whose bytes are moved by copy engines: one warp each, so that they fit beside any kernel.

#include "tandem/block.h"

namespace tandem::kernels {

struct CopyEngineArgs {
  Signals ready;     // [PE]: that PE has begun this call, so its buffers may be written and read
  Signals arrived;   // [PE]: push: that PE's bytes are here; pull: that PE has read all that it reads
  Epochs epochs;     // [1]
  int first_source;  // push: arrivals are awaited from the PEs first_source, first_source + 1, ...
  int sources;       // ... as many
};

/// Tells the peers that this call has begun here, and waits until it has begun everywhere.
struct CopyEngineBegin {
  using Args = CopyEngineArgs;
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch epoch = block.next_epoch(a.epochs);
    block.notify_all(a.ready, epoch);
    block.wait_all(a.ready, epoch);
  }
};

/// Waits for the signal that follows each source's copies. The epoch stays as the begin left it.
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

/// The same, with the copy of this PE's own bytes, which is quicker by some SMs than by a copy engine beside the
/// link's.
struct CopyOwnPart {
  using Args = CopyOwnPartArgs;
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Range part = split(a.bytes, block.count(), 16)[block.index()];
    block.copy(a.to + part.begin, a.from + part.begin, part.size());
    if (block.index() == 0) CopyEngineEndPush::run(block, a.engine);
  }
};

/// Nobody leaves while a peer still reads its input.
struct CopyEngineEndPull {
  using Args = CopyEngineArgs;
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch epoch = block.load_scalar(a.epochs.words);
    block.notify_all(a.arrived, epoch);
    block.wait_all(a.arrived, epoch);
  }
};

}  // namespace tandem::kernels
