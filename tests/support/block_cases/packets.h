#pragma once
/// Cases for packets that are passed on.

#include <cstdint>
#include <vector>

#include "support/block_cases/memory.h"
#include "support/collective_values.h"
#include "tandem/block.h"
#include "tandem/world.h"

namespace tandem::test {

template <class P>
struct ForwardArgs {
  Symm<P> first, second;    // [2][stride]
  const std::uint32_t* in;  // [count]
  std::uint32_t* out;       // [count]: what the PE before the last one had
  Size count;
  Size stride;
  Epoch epoch;
};

/// Each PE's values go to the next one, which passes them on. In halves, by the block or by a role each.
template <class P, bool kRoles>
struct Forward {
  using Args = ForwardArgs<P>;
  using Packet = P;
  static constexpr int kThreads = 128;

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    if constexpr (kRoles) {
      block.template parallel<1, 2>([&](auto& role) { half(role, a, 0); }, [&](auto& role) { half(role, a, 1); });
    } else {
      half(block, a, 0);
      half(block, a, 1);
    }
  }

  template <class Block>
  TANDEM_DEVICE static void half(Block& block, const Args& a, int which) {
    const int next = (block.pe() + 1) % block.num_pes();
    const Range part = split(a.count, 2)[which];
    const Symm<P> first = a.first + which * a.stride;
    const Symm<P> second = a.second + which * a.stride;
    block.ll_put(first, a.in + part.begin, part.size(), a.epoch, next);
    block.ll_forward(second, first.local(), packets_for<P>(part.size() * 4), a.epoch, next);
    Size at = 0;
    for (const Range tile : block.template tiles<std::uint32_t>(part)) {
      block.store(a.out, tile,
                  block.template ll_get<std::uint32_t, std::uint32_t>(second.local() + at, tile.size(), a.epoch));
      at += packets_for<P>(tile.size() * 4);
    }
  }

  static std::vector<std::uint32_t> values(int pe, Size count, Epoch epoch) {
    std::vector<std::uint32_t> values;
    for (Size i = 0; i < count; ++i) values.push_back(static_cast<std::uint32_t>(mix(9, epoch, pe, i)));
    return values;
  }
  static Size wrong(World& world) {
    constexpr Size kMost = 9001;
    const Size stride = (packets_for<P>(kMost * 4) + 1) / 2 * 2;
    Args args{world.heap().allocate<P>(2 * stride, "first"),
              world.heap().allocate<P>(2 * stride, "second"),
              nullptr,
              nullptr,
              0,
              stride,
              0};
    Stream stream = world.make_stream("forward");
    Size wrong = 0;
    for (const Size count : {1, 2, 55, 57, 1000, 9001}) {
      ++args.epoch;
      args.count = count;
      args.in = device_copy(world, values(world.pe(), count, args.epoch), "in");
      args.out = device_copy(world, std::vector<std::uint32_t>(static_cast<std::size_t>(count)), "out");
      stream.launch<Forward>({1, kThreads}, args);
      stream.synchronize();
      const auto got = host_copy(world, args.out, count);
      const int pes = world.num_pes();
      const auto right = values((world.pe() + 2 * pes - 2) % pes, count, args.epoch);
      for (std::size_t i = 0; i < right.size(); ++i) wrong += got[i] == right[i] ? 0 : 1;
      world.heap().free_local(args.in);
      world.heap().free_local(args.out);
      world.barrier();  // all have read their packets
    }
    return wrong;
  }
};

}  // namespace tandem::test
