#pragma once
/// Cases for scalars, prefix sums, get_nbi and compare_swap.

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "support/block_cases/memory.h"
#include "support/collective_values.h"
#include "tandem/block.h"
#include "tandem/world.h"

namespace tandem::test {

template <class T>
struct Scalars {
  struct Args {
    const T* from;
    T* to;
    int count;
  };
  static constexpr int kThreads = 32;

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    for (int i = 0; i < a.count; ++i) block.store_scalar(a.to + a.count - 1 - i, block.load_scalar(a.from + i));
  }

  static Size wrong(World& world) {
    constexpr int kCount = 300;
    std::vector<T> values(kCount);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint64_t bits = mix(11, 0, world.pe(), i);
      std::memcpy(&values[i], &bits, sizeof(T));
    }
    const Args args{device_copy(world, values, "from"), device_copy(world, std::vector<T>(kCount), "to"), kCount};
    Stream stream = world.make_stream("scalars");
    stream.launch<Scalars>({1, kThreads}, args);
    stream.synchronize();
    const auto got = host_copy(world, args.to, kCount);
    Size wrong = 0;
    for (std::size_t i = 0; i < values.size(); ++i) wrong += same_bits(got[kCount - 1 - i], values[i]) ? 0 : 1;
    return wrong;
  }
};

struct PrefixSumsArgs {
  const std::int32_t* values;  // [count]
  const std::int32_t* places;  // [count]
  std::int32_t* sums;          // [count]: in each tile
  std::int32_t* moved;         // [count]: the sums at their places
  Size* tile;                  // elements of one, noted by the kernel
  Size count;
};

/// Prefix sums of tiles, by the block or by three roles. `P`: as a kernel of packets P would, or void.
template <class P, bool kRoles>
struct PrefixSums {
  using Args = PrefixSumsArgs;
  using Packet = P;
  static constexpr int kThreads = 192;
  static constexpr int kParts = kRoles ? 3 : 1;

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    if constexpr (kRoles)
      block.template parallel_for<2>(kParts, [&](auto& role, int i) { sum_part(role, a, split(a.count, kParts)[i]); });
    else
      sum_part(block, a, {0, a.count});
  }
  template <class Block>
  TANDEM_DEVICE static void sum_part(Block& block, const Args& a, Range part) {
    block.store_scalar(a.tile, (*block.template tiles<std::int32_t>({0, a.count}).begin()).size());
    for (const Range tile : block.template tiles<std::int32_t>(part)) {
      const auto sums = block.exclusive_sum(block.template load<std::int32_t>(a.values, tile));
      block.store(a.sums, tile, sums);
      block.store_at(a.moved, block.template load<std::int32_t>(a.places, tile), sums);
    }
  }

  static Size wrong(World& world) {
    constexpr Size kCount = 5003;
    std::vector<std::int32_t> values;
    std::vector<std::int32_t> places;
    for (Size i = 0; i < kCount; ++i) {
      values.push_back(static_cast<std::int32_t>(mix(13, 0, world.pe(), i) % 9) - 4);
      places.push_back(i % 3 == 0 ? -1 : static_cast<std::int32_t>(kCount - 1 - i));
    }
    const std::vector<std::int32_t> none(kCount, 12345);
    const Args args{device_copy(world, values, "values"),
                    device_copy(world, places, "places"),
                    device_copy(world, none, "sums"),
                    device_copy(world, none, "moved"),
                    device_copy(world, std::vector<Size>(1), "tile"),
                    kCount};
    Stream stream = world.make_stream("prefix sums");
    stream.launch<PrefixSums>({1, kThreads}, args);
    stream.synchronize();
    const Size step = host_copy(world, args.tile, 1)[0];
    const auto sums = host_copy(world, args.sums, kCount);
    const auto moved = host_copy(world, args.moved, kCount);
    Size wrong = 0;
    for (int part = 0; part < kParts; ++part) {
      std::int32_t sum = 0;
      const Range range = split(kCount, kParts)[part];
      for (Size i = range.begin; i < range.end; ++i) {
        if ((i - range.begin) % step == 0) sum = 0;
        const auto at = static_cast<std::size_t>(i);
        wrong += sums[at] == sum ? 0 : 1;
        wrong += moved[kCount - 1 - at] == (i % 3 == 0 ? 12345 : sum) ? 0 : 1;
        sum += values[at];
      }
    }
    return wrong;
  }
};

/// Every PE gets all PEs' values at once, and passes them on after quiet.
template <class T>
struct Gets {
  struct Args {
    Symm<const T> from;  // [count]
    T* got;              // [pe][count]
    T* out;              // [pe][count]
    Size count;
  };
  static constexpr int kThreads = 128;

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    for (const int pe : block.pes_from_self()) block.get_nbi(a.got + pe * a.count, a.from, a.count, pe);
    block.quiet();
    for (const Range tile : block.template tiles<T>({0, block.num_pes() * a.count}))
      block.store(a.out, tile, block.template load<T>(a.got, tile));
  }

  static Size wrong(World& world) {
    constexpr Size kCount = 1001;
    const auto value = [](int pe, Size i) { return static_cast<T>(mix(13, 0, pe, i)); };
    std::vector<T> values;
    for (Size i = 0; i < kCount; ++i) values.push_back(value(world.pe(), i));
    const auto from = world.heap().allocate<T>(kCount, "from");
    world.copy_in(from.local(), values.data(), kCount * Size{sizeof(T)});
    const Size all = world.num_pes() * kCount;
    const std::vector<T> none(static_cast<std::size_t>(all));
    const Args args{from, device_copy(world, none, "got"), device_copy(world, none, "out"), kCount};
    world.barrier();
    Stream stream = world.make_stream("gets");
    stream.launch<Gets>({1, kThreads}, args);
    stream.synchronize();
    const auto got = host_copy(world, args.out, all);
    Size wrong = 0;
    for (Size i = 0; i < all; ++i)
      wrong += got[static_cast<std::size_t>(i)] == value(static_cast<int>(i / kCount), i % kCount) ? 0 : 1;
    world.barrier();  // all have got their values
    return wrong;
  }
};

/// Blocks count on one word by compare_swap: those of one PE on its own, those of all PEs on PE 0's.
template <class T, Scope kScope>
struct CountBySwaps {
  struct Args {
    Symm<T> word;
    T* failed;  // what a swap that expects another value gives
  };
  static constexpr int kThreads = 32;
  static constexpr int kBlocks = 4;
  static constexpr int kTimes = 25;

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    T* const word = kScope == Scope::kSystem ? a.word.on(0) : a.word.local();
    T expected{};
    for (int i = 0; i < kTimes; ++i) {
      for (T seen; (seen = block.compare_swap(word, expected, static_cast<T>(expected + T{1}), kScope)) != expected;)
        expected = seen;
      expected = static_cast<T>(expected + T{1});
    }
    if (block.index() == 0)
      block.store_scalar(a.failed, block.compare_swap(word, T{0}, T{0}, kScope) == T{0} ? T{1} : T{0});
  }

  static Size wrong(World& world) {
    const Args args{world.heap().allocate<T>(1, "word"), device_copy(world, std::vector<T>{T{1}}, "failed")};
    const T none{};
    world.copy_in(args.word.local(), &none, sizeof(T));
    world.barrier();
    Stream stream = world.make_stream("swaps");
    stream.launch<CountBySwaps>({kBlocks, kThreads}, args);
    stream.synchronize();
    world.barrier();
    const bool has_word = kScope != Scope::kSystem || world.pe() == 0;
    const int counters = kScope == Scope::kSystem ? world.num_pes() : 1;
    const T count = host_copy(world, args.word.local(), 1)[0];
    return (has_word && count != static_cast<T>(counters * kBlocks * kTimes) ? 1 : 0) +
           (host_copy(world, args.failed, 1)[0] == T{0} ? 0 : 1);
  }
};

}  // namespace tandem::test
