#pragma once
/// A case for sums and maxima over the blocks of a PE.

#include <algorithm>
#include <vector>

#include "support/block_cases/memory.h"
#include "tandem/block.h"
#include "tandem/world.h"

namespace tandem::test {

struct PartsArgs {
  const float* values;  // [count]
  float* sums;          // [round][block]
  float* greatest;      // [round][block]
  LLPacket* packets;    // [sum or greatest][block][kPartPackets]
  Size count;
  Epoch before;  ///< rounds of earlier calls
};

/// Each block has a part of the values, which may be empty. In round r they are r + 1 times as large. The packets of a
/// sum may be written again behind the greatest value, since all blocks have then read them.
template <class P>
struct SumsOfParts {
  using Args = PartsArgs;
  using Packet = P;
  static constexpr int kThreads = 160;
  static constexpr int kBlocks = 5;
  static constexpr int kRounds = 6;

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const int me = block.index();
    const auto own = block.template load<float>(a.values, split(a.count, kBlocks)[me]);
    for (int round = 0; round < kRounds; ++round) {
      const auto values = own * static_cast<float>(round + 1);
      const Epoch epoch = a.before + static_cast<Epoch>(round) + 1;
      const Size at = Size{round} * kBlocks + me;
      block.store_scalar(a.sums + at, block.sum_of_parts(values, a.packets, me, kBlocks, epoch));
      block.store_scalar(a.greatest + at,
                         block.greatest_of_parts(values, a.packets + kBlocks * kPartPackets, me, kBlocks, epoch));
    }
  }

  static Size wrong(World& world) {
    PartsArgs args{};
    args.packets = world.heap().allocate<LLPacket>(2 * kBlocks * kPartPackets, "packets").local();
    std::vector<float> none(kRounds * kBlocks);
    args.sums = device_copy(world, none, "sums");
    args.greatest = device_copy(world, none, "greatest");
    Stream stream = world.make_stream("parts");
    Size wrong = 0;
    for (const Size count : {1, 4, 37, 2001}) {
      std::vector<float> values;
      for (Size i = 0; i < count; ++i) values.push_back(static_cast<float>((i * 7 + world.pe()) % 13));
      float sum = 0;
      for (const float value : values) sum += value;
      const float most = *std::max_element(values.begin(), values.end());
      args.values = device_copy(world, values, "values");
      args.count = count;
      stream.launch<SumsOfParts>({kBlocks, kThreads}, args);
      stream.synchronize();
      args.before += kRounds;
      const auto sums = host_copy(world, args.sums, kRounds * kBlocks);
      const auto greatest = host_copy(world, args.greatest, kRounds * kBlocks);
      for (int i = 0; i < kRounds * kBlocks; ++i) {
        const auto factor = static_cast<float>(i / kBlocks + 1);
        wrong += sums[static_cast<std::size_t>(i)] == sum * factor ? 0 : 1;
        wrong += greatest[static_cast<std::size_t>(i)] == most * factor ? 0 : 1;
      }
      world.heap().free_local(args.values);
    }
    return wrong;
  }
};

}  // namespace tandem::test
