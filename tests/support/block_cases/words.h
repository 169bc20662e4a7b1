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

struct KeysArgs {
  const std::int32_t* values;  // [count]
  std::int32_t* counts;        // [rows][keys]: of each tile
  std::int32_t* at;            // [count]: each element's place in the order of keys
  std::int32_t* few;           // [5]: of the last tile
  Size count;
  int keys;
};

/// Elements in the order of their keys, which is stable, tile by tile. `P`: as a kernel of packets P would, or void.
template <class P, int kThreadsOfBlock>
struct Keys {
  using Args = KeysArgs;
  using Packet = P;
  static constexpr int kThreads = kThreadsOfBlock;

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    Size rows = 0;
    for (const Range tile : block.template tiles<std::int32_t>({0, a.count})) {
      const auto ranked = block.key_ranks(block.template load<std::int32_t>(a.values, tile), a.keys);
      block.store(a.counts + rows++ * a.keys, {0, a.keys}, ranked.counts);
      block.store(a.at, tile, ranked.ranks);
    }
    block.sync();
    const auto starts = block.exclusive_sum(block.column_sums(a.counts, {0, rows}, a.keys));
    Size row = 0;
    for (const Range tile : block.template tiles<std::int32_t>({0, a.count})) {
      const auto values = block.template load<std::int32_t>(a.values, tile);
      const auto keys = values.map([most = a.keys](std::int32_t key) { return key < most ? key : -1; });
      const auto before = starts + block.column_sums(a.counts, {0, row++}, a.keys);
      const auto places = block.template load<std::int32_t>(a.at, tile) + block.look_up(before, keys);
      block.store(a.at, tile,
                  places.zip(keys, [](std::int32_t place, std::int32_t key) { return key < 0 ? -1 : place; }));
      block.sync();
      store_few(block, a, tile, block.pick(keys, min(2, tile.size() - 1), 1).at(0),
                block.load_few(a.values + tile.begin, 3));
    }
  }
  template <class Block, class Few>
  TANDEM_DEVICE static void store_few(Block& block, const Args& a, Range tile, std::int32_t picked, const Few& few) {
    block.store_scalar(a.few, picked);
    block.store_scalar(a.few + 1, few.at(2));
    block.store_scalar(a.few + 2, static_cast<std::int32_t>(few.mask([](std::int32_t x) { return x > 20; })));
    block.store_scalar(
        a.few + 3, static_cast<std::int32_t>(few.join([](std::int32_t x) { return std::uint64_t{1} << (x & 31); })));
    block.store_scalar(a.few + 4, static_cast<std::int32_t>(tile.begin));
  }

  static Size wrong(World& world) {
    constexpr Size kCount = 5003;
    constexpr int kKeys = 300;
    std::vector<std::int32_t> values;
    for (Size i = 0; i < kCount; ++i) {
      const auto key = static_cast<std::int32_t>(mix(17, 0, world.pe(), i) % (i % 2 == 0 ? kKeys + 9 : 3));
      values.push_back(i % 7 == 0 ? -1 : key);
    }
    const Args args{device_copy(world, values, "values"),
                    device_copy(world, std::vector<std::int32_t>(kCount * kKeys), "counts"),
                    device_copy(world, std::vector<std::int32_t>(kCount), "at"),
                    device_copy(world, std::vector<std::int32_t>(5), "few"),
                    kCount,
                    kKeys};
    Stream stream = world.make_stream("keys");
    stream.launch<Keys>({1, kThreads}, args);
    stream.synchronize();
    return wrong_places(values, host_copy(world, args.at, kCount), kKeys) +
           wrong_few(values, host_copy(world, args.few, 5));
  }

 private:
  static Size wrong_places(const std::vector<std::int32_t>& values, const std::vector<std::int32_t>& at, int keys) {
    Size wrong = 0;
    std::int32_t next = 0;
    for (std::int32_t key = 0; key < keys; ++key)
      for (std::size_t i = 0; i < values.size(); ++i) wrong += values[i] == key && at[i] != next++ ? 1 : 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      wrong += (values[i] < 0 || values[i] >= keys) && at[i] != -1 ? 1 : 0;
    return wrong;
  }
  static Size wrong_few(const std::vector<std::int32_t>& values, const std::vector<std::int32_t>& few) {
    const std::int32_t* const last = values.data() + few[4];
    std::uint32_t mask = 0;
    std::uint32_t joined = 0;
    for (int i = 0; i < 3; ++i) {
      mask |= (last[i] > 20 ? 1U : 0U) << i;
      joined |= 1U << (last[i] & 31);
    }
    return (few[0] == (last[2] < 300 ? last[2] : -1) ? 0 : 1) + (few[1] == last[2] ? 0 : 1) +
           (static_cast<std::uint32_t>(few[2]) == mask ? 0 : 1) +
           (static_cast<std::uint32_t>(few[3]) == joined ? 0 : 1);
  }
};

/// Pieces of 16-bit elements as fp8 with a scale for each 128, which `group_firsts` gives. `P`: as above.
template <class P>
struct Quantised {
  struct Args {
    const bf16* from;
    fp8_e4m3* to;
    float* firsts;
    Size count;
  };
  using Packet = P;
  static constexpr int kThreads = 64;
  static constexpr Size kStep = 256;  // fewer than a block holds

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    for (const Range tile : Tiles({0, a.count}, kStep)) {
      const auto values = block.template load_as<fp8_e4m3, float>(a.from, tile);
      const auto most = block.template group_greatest<128>(values.map([](float x) { return x < 0 ? -x : x; }));
      const auto firsts = block.template group_firsts<128>(most);
      block.store(a.firsts, {tile.begin / 128, ceil_div(tile.end, 128)}, firsts);
      block.store(a.to, tile, values.zip(most, [](float x, float greatest) { return x / greatest * 256; }));
    }
  }

  static Size wrong(World& world) {
    constexpr Size kCount = 2'505;
    std::vector<bf16> values;
    for (Size i = 0; i < kCount; ++i)
      values.push_back(convert<bf16>(static_cast<float>(mix(19, 0, world.pe(), i) % 64) - 31.5F));
    const Args args{device_copy(world, values, "from"), device_copy(world, std::vector<fp8_e4m3>(kCount), "to"),
                    device_copy(world, std::vector<float>(ceil_div(kCount, 128)), "firsts"), kCount};
    Stream stream = world.make_stream("quantised");
    stream.launch<Quantised>({1, kThreads}, args);
    stream.synchronize();
    const auto to = host_copy(world, args.to, kCount);
    const auto firsts = host_copy(world, args.firsts, ceil_div(kCount, 128));
    Size wrong = 0;
    for (Size group = 0; group * 128 < kCount; ++group) {
      float greatest = 0;
      const Range its{group * 128, min(kCount, (group + 1) * 128)};
      for (Size i = its.begin; i < its.end; ++i) {
        const float x = convert<float>(values[static_cast<std::size_t>(i)]);
        greatest = x > greatest ? x : -x > greatest ? -x : greatest;
      }
      wrong += firsts[static_cast<std::size_t>(group)] == greatest ? 0 : 1;
      for (Size i = its.begin; i < its.end; ++i) {
        const auto at = static_cast<std::size_t>(i);
        wrong += same_bits(to[at], convert<fp8_e4m3>(convert<float>(values[at]) / greatest * 256)) ? 0 : 1;
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
