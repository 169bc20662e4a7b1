#pragma once
/// Common parts of LL kernels that reduce. P is LLPacket or LL128Line.

#include "collectives/steps/packet_rounds.h"
#include "collectives/steps/reduce_input.h"

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
  static constexpr bool kEpochFirst = true;

  template <class Setup>
  static Args prepare(Setup& setup) {
    Args a;
    a.staging = PacketStaging<P>::of(setup, setup.max_count() * Size{sizeof(T)});
    return a;
  }
};

/// Returns `own` and the packets of every peer, PE p's at `from + p * stride`, reduced in PE order and finished. With
/// `kPair`, sums of two PEs have code of their own. On H200s calls of few KB take 0.2 us less so, but the two-shot
/// all-reduce of 1 MB 0.2 us more.
template <class T, bool kPair = true, class P, class Block, class Values>
TANDEM_DEVICE auto reduce_packets(Block& block, const Values& own, const P* from, Size stride, Epoch flag,
                                  ReduceOp op) {
  using A = Accumulator<T>;
  auto sum = own.template convert<A>();
  const auto add = [&](ReduceOp known, int pe, const auto& values) {
    sum = pe == 0 ? values.copy() : block.combine(known, sum, values);
  };
  if (kPair && adds(op) && block.num_pes() == 2) {  // the order of two does not matter
    sum = block.combine(ReduceOp::kSum, sum,
                        block.template ll_get<A, T>(from + (1 - block.pe()) * stride, own.size(), flag));
  } else if (adds(op)) {
    // The common case has little code, which matters for calls of two microseconds.
    block.template ll_get_all<T>(own, from, stride, flag, [&](int pe, const Values& values) {
      add(ReduceOp::kSum, pe, values.template convert<A>());
    });
  } else {
    for (int pe = 0; pe < block.num_pes(); ++pe)
      add(op, pe,
          pe == block.pe() ? own.template convert<A>()
                           : block.template ll_get<A, T>(from + pe * stride, own.size(), flag));
  }
  return finished(std::move(sum), op, block.num_pes());
}

}  // namespace tandem::kernels
