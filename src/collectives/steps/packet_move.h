#pragma once
/// Common parts of LL kernels that move bytes without reducing them. P is LLPacket or LL128Line.

#include "collectives/steps/packet_rounds.h"

namespace tandem::kernels {

template <class P>
struct PacketArgs {
  Symm<const std::byte> in;
  Symm<std::byte> out;
  Size count;  // bytes: of each PE, or of each pair
  PacketStaging<P> staging;
};

template <class P>
struct PacketKernel {
  using Packet = P;
  using Args = PacketArgs<P>;
  static constexpr bool kEpochFirst = true;

  template <class Setup>
  static Args prepare(Setup& setup) {
    Args args{};
    args.staging = PacketStaging<P>::of(setup, setup.max_count());
    return args;
  }
};

/// Receives round i of every PE into that PE's place in the output. `own` is the place of this PE's input.
template <class P, class Block>
TANDEM_DEVICE void receive_from_all(Block& block, const PacketArgs<P>& a, const PacketRounds<P, std::byte>& rounds,
                                    const std::byte* own, Size i) {
  const Range chunk = rounds.chunk(i);
  block.template ll_get_all<std::byte>(block.template load<std::byte>(own, chunk),
                                       static_cast<const P*>(rounds.packets(i, 0).local()), rounds.stride(),
                                       rounds.flag(i), [&](int pe, const auto& values) {
                                         // In place, this PE's bytes are there.
                                         if (own != a.out.local() + pe * a.count)
                                           block.store(a.out.local() + pe * a.count, chunk, values);
                                       });
}

}  // namespace tandem::kernels
