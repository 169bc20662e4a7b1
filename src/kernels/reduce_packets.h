#pragma once
/// What the LL kernels that reduce have in common. P: LLPacket or LL128Line.

#include "kernels/packet_rounds.h"
#include "kernels/reduce_input.h"

namespace tandem::kernels {

template <class T, class P>
struct ReducePacketArgs {
  Symm<const T> in;
  Symm<T> out;
  PacketStaging<P> staging;
  ReduceOp op = ReduceOp::kSum;
  Size count = 0;
  Accumulator<T> scale = 1;
};

template <class T, class P>
struct ReducePacketKernel {
  using Packet = P;
  using Args = ReducePacketArgs<T, P>;

  template <class Setup>
  static Args prepare(Setup& setup) {
    Args a;
    a.staging = PacketStaging<P>::of(setup, setup.max_count() * Size{sizeof(T)});
    return a;
  }
};

/// `own` and what the packets of every peer carry, PE p's at `from + p * stride`, reduced in PE order and finished.
template <class T, class P, class Block, class Values>
TANDEM_DEVICE Values reduce_packets(Block& block, const Values& own, const P* from, Size stride, Epoch flag,
                                    ReduceOp op) {
  const int me = block.pe();
  Values sum = own.copy();
  bool has_own = me == 0;
  block.template ll_get_peers<Accumulator<T>, T>(from, stride, own.size(), flag, [&](int pe, const Values& values) {
    if (pe == 0) {
      sum = values.copy();
      return;
    }
    if (!has_own && pe > me) {
      sum = block.combine(op, sum, own);
      has_own = true;
    }
    sum = block.combine(op, sum, values);
  });
  if (!has_own) sum = block.combine(op, sum, own);
  return finished(std::move(sum), op, block.num_pes());
}

}  // namespace tandem::kernels
