#pragma once
/// exchange_heads: every PE stores each peer's segments in that peer's outputs.
///
/// Blocks are small, since a segment is. `ready` allows a peer to write here, and `arrived` tells that it has; a PE
/// that ends a call has all segments of its peers. So no PE is more than one call ahead of another.

#include "base/gpu_kernel.h"
#include "tandem/block.h"
#include "tandem/layer/exchange_heads.h"

namespace tandem::kernels {

struct ExchangeSegments {
  static constexpr int kThreads = 64;
  static constexpr int kBlocksPerSm = 4;

  struct Tensor {
    const std::byte* in;
    Symm<std::byte> out;
    Size segment;  // bytes
  };
  struct Args {
    Tensor tensors[kExchangedTensors];
    int count = 0;
    Size rows = 0;
    bool to_heads = true;
    Signals ready;    // [block][PE]: that PE has begun this call: its outputs may be written
    Signals arrived;  // [block][PE]: that PE's segments are here
    Epochs epochs;    // [block]
  };

  template <class Setup>
  static void prepare(Setup& setup, Args& a) {
    a.ready = setup.slots("ready");
    a.arrived = setup.slots("arrived");
    a.epochs = setup.epochs();
  }

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const int pes = block.num_pes();
    const Range part = split(a.rows * pes, block.count())[block.index()];
    const Epoch epoch = block.next_epoch(a.epochs);

    block.notify_all(a.ready, epoch);
    block.wait_all(a.ready, epoch);
    for (Size i = part.begin; i < part.end; ++i) {
      const Size row = i / pes;
      const int pe = static_cast<int>((block.pe() + i) % pes);  // each PE begins with another one
      for (int t = 0; t < a.count; ++t)
        send(block, a.tensors[t], place(a, row, pe, pes), place_there(a, row, block.pe(), pes), pe);
    }
    block.notify_all(a.arrived, epoch);
    block.wait_all(a.arrived, epoch);
  }

 private:
  /// The place of a segment of `row` in an input, for PE `pe`.
  TANDEM_DEVICE static Size place(const Args& a, Size row, int pe, int pes) {
    return a.to_heads ? row * pes + pe : pe * a.rows + row;
  }
  /// The place of a segment of `row` in an output, from PE `pe`.
  TANDEM_DEVICE static Size place_there(const Args& a, Size row, int pe, int pes) {
    return a.to_heads ? pe * a.rows + row : row * pes + pe;
  }

  template <class Block>
  TANDEM_DEVICE static void send(Block& block, const Tensor& tensor, Size from, Size to, int pe) {
    const std::byte* const in = tensor.in + from * tensor.segment;
    std::byte* const out = tensor.out.on(pe) + to * tensor.segment;
    for (const Range tile : block.template tiles<std::byte>({0, tensor.segment}))
      block.store(out, tile, block.template load<std::byte>(in, tile));
  }
};

TANDEM_GPU_KERNEL(ExchangeSegments, 64);

}  // namespace tandem::kernels
