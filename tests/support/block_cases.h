#pragma once
/// Operations of the block whose results the host knows, as kernels that run in the simulator and on GPUs: each case is
/// a kernel for blocks of `kThreads`, and says how many of its words are wrong on this PE.

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
}

}  // namespace tandem::test
