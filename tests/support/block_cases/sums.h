#pragma once
/// Cases for `sum`, by a block and by roles.

#include <cmath>
#include <cstring>
#include <vector>

#include "support/block_cases/memory.h"
#include "support/collective_values.h"
#include "tandem/block.h"
#include "tandem/world.h"

namespace tandem::test {

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

}  // namespace tandem::test
