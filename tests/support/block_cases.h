#pragma once
/// Operations of the block whose results the host knows, as kernels for the simulator and for GPUs. Each case is a
/// kernel for blocks of `kThreads` threads and counts the wrong words on this PE.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "support/collective_values.h"
#include "tandem/block.h"
#include "tandem/world.h"

namespace tandem::test {

template <class T>
T* device_copy(World& world, const std::vector<T>& values, const char* name) {
  T* const memory = world.heap().allocate_local<T>(static_cast<Size>(values.size()), name);
  world.copy_in(memory, values.data(), static_cast<Size>(values.size() * sizeof(T)));
  return memory;
}
template <class T>
std::vector<T> host_copy(World& world, const T* memory, Size count) {
  std::vector<T> values(static_cast<std::size_t>(count));
  world.copy_out(values.data(), memory, count * Size{sizeof(T)});
  return values;
}

// --- sum -------------------------------------------------------------------------------------------------------------

template <class T>
struct SumArgs {
  const T* values;       // [count]
  Accumulator<T>* sums;  // [count]: the sum of the part in which it lies
  Size count;
};

/// Small sums, one after the other, and what they come to in every place of the part: what each thread has got.
template <class T, class Block>
TANDEM_DEVICE void sum_part(Block& block, const SumArgs<T>& a, Range part) {
  using A = Accumulator<T>;
  A total{};
  for (const Range tile : block.template tiles<T>(part))
    total = apply(ReduceOp::kSum, total, block.sum(block.template load<A>(a.values, tile)));
  for (const Range tile : block.template tiles<T>(part))
    block.store(a.sums, tile, block.template load<A>(a.values, tile).map([total](A) { return total; }));
}

/// Whole numbers, or sevenths of them.
template <class T>
std::vector<T> sum_values(int pe, Size count, bool whole) {
  using A = Accumulator<T>;
  std::vector<T> values;
  for (Size i = 0; i < count; ++i) {
    const auto x = static_cast<int>(mix(5, pe, count, i) % 17) - 8;
    values.push_back(convert<T>(whole ? static_cast<A>(x) : static_cast<A>(static_cast<double>(x) / 7)));
  }
  return values;
}

/// Places of `part` with another sum than that of its values: of whole numbers the very one, whatever the order.
template <class T>
Size wrong_in_part(const std::vector<T>& values, const std::vector<Accumulator<T>>& sums, Range part, bool whole) {
  Accumulator<T> exact{};
  double total = 0;
  double magnitude = 0;
  for (Size i = part.begin; i < part.end; ++i) {
    const auto x = convert<Accumulator<T>>(values[static_cast<std::size_t>(i)]);
    exact = apply(ReduceOp::kSum, exact, x);
    total += static_cast<double>(x);
    magnitude += std::abs(static_cast<double>(x));
  }
  Size wrong = 0;
  for (Size i = part.begin; i < part.end; ++i) {
    const auto got = sums[static_cast<std::size_t>(i)];
    const bool near = whole ? got == exact : std::abs(static_cast<double>(got) - total) <= 1e-6 * magnitude;
    wrong += near && same_bits(got, sums[static_cast<std::size_t>(part.begin)]) ? 0 : 1;
  }
  return wrong;
}

/// Runs a kernel that makes sums of `parts` parts, twice: the second call gives the same bits.
template <class K, class T>
Size wrong_sums(World& world, int parts, bool whole) {
  using Sums = std::vector<Accumulator<T>>;
  Size wrong = 0;
  Stream stream = world.make_stream("sums");
  for (const Size count : {1, 7, 250, 5001}) {
    const std::vector<T> values = sum_values<T>(world.pe(), count, whole);
    Sums first;
    for (int call = 0; call < 2; ++call) {
      const SumArgs<T> args{device_copy(world, values, "values"), device_copy(world, Sums(values.size()), "sums"),
                            count};
      stream.launch<K>({1, K::kThreads}, args);
      stream.synchronize();
      const Sums sums = host_copy(world, args.sums, count);
      if (call == 0) first = sums;
      wrong += std::memcmp(sums.data(), first.data(), sums.size() * sizeof(sums[0])) == 0 ? 0 : 1;
      for (int p = 0; p < parts; ++p) wrong += wrong_in_part(values, sums, split(count, parts)[p], whole);
      world.heap().free_local(args.values);
      world.heap().free_local(args.sums);
    }
  }
  return wrong;
}

/// By a block. `P`: as a kernel of packets P would, or void.
template <class T, int Threads, class P = void, bool kWhole = true>
struct BlockSum {
  using Args = SumArgs<T>;
  using Packet = P;
  static constexpr int kThreads = Threads;

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    sum_part(block, a, {0, a.count});
  }
  static Size wrong(World& world) { return wrong_sums<BlockSum, T>(world, 1, kWhole); }
};

/// By roles of 1, 2 and 4 warps, and then by three of 2, side by side.
template <class T, class P = void>
struct RoleSums {
  using Args = SumArgs<T>;
  using Packet = P;
  static constexpr int kThreads = 256;

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Split parts = split(a.count, 6);
    block.template parallel<1, 2, 4>([&](auto& role) { sum_part(role, a, parts[0]); },
                                     [&](auto& role) { sum_part(role, a, parts[1]); },
                                     [&](auto& role) { sum_part(role, a, parts[2]); });
    block.template parallel_for<2>(3, [&](auto& role, int i) { sum_part(role, a, parts[3 + i]); });
  }
  static Size wrong(World& world) { return wrong_sums<RoleSums, T>(world, 6, true); }
};

// --- packets that are passed on
// ----------------------------------------------------------------------------------------

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

// --- scalars
// -----------------------------------------------------------------------------------------------------------

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

// --- get_nbi
// -----------------------------------------------------------------------------------------------------------

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

// --- compare_swap
// ------------------------------------------------------------------------------------------------------

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

/// visit(std::type_identity<Case>()) for each of them.
template <class Visit>
void each_block_case(const Visit& visit) {
  visit(std::type_identity<BlockSum<float, 32>>());
  visit(std::type_identity<BlockSum<float, 96>>());
  visit(std::type_identity<BlockSum<float, 512, void, false>>());
  visit(std::type_identity<BlockSum<float, 512, LL128Line>>());
  visit(std::type_identity<BlockSum<double, 128, void, false>>());
  visit(std::type_identity<BlockSum<bf16, 256>>());
  visit(std::type_identity<BlockSum<bf16, 160, LLPacket>>());
  visit(std::type_identity<BlockSum<fp8_e4m3, 64>>());
  visit(std::type_identity<BlockSum<std::int8_t, 1024>>());
  visit(std::type_identity<BlockSum<std::uint64_t, 512>>());
  visit(std::type_identity<RoleSums<float>>());
  visit(std::type_identity<RoleSums<bf16, LL128Line>>());
  visit(std::type_identity<RoleSums<std::int64_t>>());
  visit(std::type_identity<Forward<LLPacket, false>>());
  visit(std::type_identity<Forward<LLPacket, true>>());
  visit(std::type_identity<Forward<LL128Line, false>>());
  visit(std::type_identity<Forward<LL128Line, true>>());
  visit(std::type_identity<Scalars<bf16>>());
  visit(std::type_identity<Scalars<fp8_e4m3>>());
  visit(std::type_identity<Scalars<std::int8_t>>());
  visit(std::type_identity<Scalars<std::uint64_t>>());
  visit(std::type_identity<Gets<std::uint32_t>>());
  visit(std::type_identity<CountBySwaps<std::uint32_t, Scope::kGpu>>());
  visit(std::type_identity<CountBySwaps<std::int64_t, Scope::kSystem>>());
}

}  // namespace tandem::test
