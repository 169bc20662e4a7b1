#pragma once
/// Operations of the block whose results the host knows, as kernels for the simulator, CPUs and GPUs. Each case is a
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

// --- exclusive_sum and store_at
// -----------------------------------------------------------------------------------------------------------

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

// --- every other operation
// -------------------------------------------------------------------------------------------------------

/// The arguments of the cases below. `wrong` counts the wrong words of a call, one counter for each block.
struct OperationsArgs {
  Symm<std::uint32_t> data, got;  // [pe][count]
  Symm<LLPacket> packets;         // [pe][stride]
  Symm<LL128Line> lines;          // [pe][stride]
  Signals words;                  // [kWords][pe]
  Epochs epochs;
  std::uint32_t* local;  // [count]
  std::uint32_t* wrong;  // [1]
  Size count;
  Size stride;
};

/// The value of PE `pe` at element `i` in step `step`.
TANDEM_DEVICE inline std::uint32_t operand(int step, int pe, Size i) {
  return static_cast<std::uint32_t>(step * 1'000'003 + pe * 10'007 + static_cast<int>(i));
}

/// One block a PE goes through `Body::run(block, args, epoch)`, twice.
template <class Body, int Threads = 128>
struct Operations {
  using Args = OperationsArgs;
  using Packet = typename Body::Packet;
  static constexpr int kThreads = Threads;
  static constexpr int kWords = 4;

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch first = block.next_epoch(a.epochs, 2);
    for (Epoch e = first; e < first + 2; ++e) {
      Body::run(block, a, static_cast<int>(e));
      // All have read what the next step overwrites.
      const Signals last = a.words + Size{3} * block.num_pes();
      for (const int pe : block.pes_from_self()) block.notify(last + block.pe(), e, pe);
      block.wait(last, block.num_pes(), e);
    }
  }

  static Size wrong(World& world) {
    constexpr Size kCount = 777;
    const int pes = world.num_pes();
    const Size stride = round_up(packets_for<LLPacket>(kCount * 4), 2);
    Args args{world.heap().allocate<std::uint32_t>(pes * kCount, "data"),
              world.heap().allocate<std::uint32_t>(pes * kCount, "got"),
              world.heap().allocate<LLPacket>(pes * stride, "packets"),
              world.heap().allocate<LL128Line>(pes * stride, "lines"),
              world.heap().signals(Size{kWords} * pes, "words"),
              world.heap().epochs(1, "epochs"),
              device_copy(world, std::vector<std::uint32_t>(kCount), "local"),
              device_copy(world, std::vector<std::uint32_t>(1), "wrong"),
              kCount,
              stride};
    const std::vector<std::uint32_t> zeros(static_cast<std::size_t>(pes * kCount));
    world.copy_in(args.data.local(), zeros.data(), pes * kCount * 4);
    world.copy_in(args.got.local(), zeros.data(), pes * kCount * 4);
    world.barrier();
    Stream stream = world.make_stream("operations");
    for (int call = 0; call < 2; ++call) stream.launch<Operations>({1, kThreads}, args);
    stream.synchronize();
    world.barrier();
    return host_copy(world, args.wrong, 1)[0];
  }
};

/// Fills `to` with this PE's operands of a step.
template <class Block>
TANDEM_DEVICE void fill_operands(Block& block, std::uint32_t* to, Size count, int step) {
  for (Size i = 0; i < count; ++i) block.store_scalar(to + i, operand(step, block.pe(), i));
  block.sync();
}
/// Notes whether [0, count) at `at` are PE `pe`'s operands of a step.
template <class Block>
TANDEM_DEVICE void expect_operands(Block& block, const OperationsArgs& a, const std::uint32_t* at, int step, int pe) {
  std::uint32_t wrong = 0;
  for (Size i = 0; i < a.count; ++i) wrong += block.load_scalar(at + i) == operand(step, pe, i) ? 0 : 1;
  if (wrong > 0) block.store_scalar(a.wrong, wrong);
}
template <class Block>
TANDEM_DEVICE void expect(Block& block, const OperationsArgs& a, bool holds) {
  if (!holds) block.store_scalar(a.wrong, 1U);
}

/// Each form of put to the next PE, with the signal that belongs to it.
struct PutsAndSignals {
  using Packet = void;

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const OperationsArgs& a, int step) {
    const int n = block.num_pes();
    const int next = (block.pe() + 1) % n;
    const int before = (block.pe() + n - 1) % n;
    const auto e = static_cast<Epoch>(step);
    for (int form = 0; form < 7; ++form) {
      fill_operands(block, a.local, a.count, step * 7 + form);
      send(block, a, form, (e - 1) * 7 + static_cast<Epoch>(form) + 1, next);
      receive(block, a, form, (e - 1) * 7 + static_cast<Epoch>(form) + 1);
      expect_operands(block, a, a.got.local(), step * 7 + form, before);
      block.signal_after_reads(a.words + 1, (e - 1) * 7 + static_cast<Epoch>(form) + 1, before);
      block.wait(a.words + 1, 1, (e - 1) * 7 + static_cast<Epoch>(form) + 1);
    }
  }
  template <class Block>
  TANDEM_DEVICE static void send(Block& block, const OperationsArgs& a, int form, Epoch value, int next) {
    switch (form) {
      case 0:
        block.put(a.got, a.local, a.count, next);
        return block.notify(a.words, value, next);
      case 1:
        block.put_nbi(a.got, a.local, a.count, next);
        block.quiet();
        return block.signal(a.words, 1, next, SignalOp::kAdd);
      case 2:
        block.put_nbi(a.got, a.local, a.count, next);
        block.fence();
        return block.signal(a.words, value, next);
      case 3:
        return block.put_signal(a.got, a.local, a.count, a.words, value, next);
      case 4:
        block.put_signal_nbi(a.got, a.local, a.count, a.words, 1, next, SignalOp::kAdd);
        return block.quiet();
      case 5:
        block.copy(block.remote(a.got, next), a.local, a.count);
        return block.notify(a.words, 1, next, SignalOp::kAdd);
      default:
        block.copy(block.remote(a.got, next), a.local, a.count);
        block.sync();
        block.exchange(&a.words.on(next)->value, value, Scope::kSystem, Order::kRelease);
    }
  }
  template <class Block>
  TANDEM_DEVICE static void receive(Block& block, const OperationsArgs& a, int form, Epoch value) {
    if (form == 1) {
      while (!block.signal_test(a.words, Cmp::kGe, value)) {
      }
    } else if (form == 2) {
      while (block.fetch_add(&a.words.local()->value, Epoch{0}, Scope::kSystem, Order::kAcquire) < value) {
      }
    } else if (form == 3) {
      block.signal_wait_until(a.words, Cmp::kEq, value);
    } else {
      block.wait(a.words, 1, value);
    }
  }
};

/// Loads from and stores to all PEs, reductions, conversions, notify_all and wait_all.
struct LoadsAndStores {
  using Packet = void;

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const OperationsArgs& a, int step) {
    const int n = block.num_pes();
    fill_operands(block, a.data.local(), a.count, step);
    block.notify_all(a.words, static_cast<Epoch>(2 * step - 1));
    std::uint32_t* const data =
        block.consume_token(a.data.local(), block.wait_all(a.words, static_cast<Epoch>(2 * step - 1)));
    expect(block, a, data == a.data.local());
    for (const int pe : block.pes_from_self()) {
      expect(block, a, block.reachable(pe));
      for (const Range tile : block.template tiles<std::uint32_t>({0, a.count})) {
        const auto values = block.template load<std::int64_t>(block.remote(a.data, pe), tile);
        block.store(a.got.on(pe) + block.pe() * a.count, tile, values.template convert<std::uint32_t>().copy());
      }
    }
    for (const Range tile : block.template tiles<std::uint32_t>({0, a.count})) {
      const auto sum = block.template load_reduce<std::uint32_t>(a.data, tile, ReduceOp::kSum);
      auto each = block.template load<std::uint32_t>(a.data.on(0), tile);
      for (int pe = 1; pe < n; ++pe)
        each = block.combine(ReduceOp::kSum, each, block.template load<std::uint32_t>(a.data.on(pe), tile));
      block.store(a.local, tile, sum.zip(each, [](std::uint32_t x, std::uint32_t y) { return x - y; }));
    }
    block.notify_all(a.words, static_cast<Epoch>(2 * step));
    block.wait_all(a.words, static_cast<Epoch>(2 * step));
    for (int pe = 0; pe < n; ++pe) expect_operands(block, a, a.got.local() + pe * a.count, step, block.pe());
    for (Size i = 0; i < a.count; ++i) expect(block, a, block.load_scalar(a.local + i) == 0);
  }
};

/// Packets of all PEs to all, from memory and from fragments.
template <class P>
struct PacketsToAll {
  using Packet = P;

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const OperationsArgs& a, int step) {
    const auto e = static_cast<Epoch>(2 * step - 1);
    fill_operands(block, a.local, a.count, step);
    const Symm<P> buffer = of(a, P{});
    const Symm<P> mine = buffer + block.pe() * a.stride;
    for (const int pe : block.peers_from_self()) block.ll_put(mine, a.local, a.count, e, pe);
    for (const int pe : block.peers_from_self()) {
      Size at = 0;
      for (const Range tile : block.template tiles<std::uint32_t>({0, a.count})) {
        block.store(
            a.got.local() + pe * a.count, tile,
            block.template ll_get<std::uint32_t, std::uint32_t>(buffer.local() + pe * a.stride + at, tile.size(), e));
        at += packets_for<P>(tile.size() * 4);
      }
      block.sync();
      expect_operands(block, a, a.got.local() + pe * a.count, step, pe);
    }
    const Signals read = a.words + Size{2} * block.num_pes();
    for (const int pe : block.pes_from_self()) block.notify(read + block.pe(), e, pe);
    block.wait(read, block.num_pes(), e);
    from_fragments(block, a, step, e + 1, mine, buffer);
  }

  template <class Block>
  TANDEM_DEVICE static void from_fragments(Block& block, const OperationsArgs& a, int step, Epoch e, Symm<P> mine,
                                           Symm<P> buffer) {
    Size at = 0;
    for (const Range tile : block.template tiles<std::uint32_t>({0, a.count})) {
      const auto own = block.template load<std::uint32_t>(a.local, tile);
      block.template ll_put_peers<std::uint32_t>(mine + at, own, e);
      block.template ll_get_all<std::uint32_t>(own, buffer.local() + at, a.stride, e, [&](int pe, const auto& values) {
        block.store(a.got.local() + pe * a.count, tile, values);
      });
      at += packets_for<P>(tile.size() * 4);
    }
    block.sync();
    for (int pe = 0; pe < block.num_pes(); ++pe) expect_operands(block, a, a.got.local() + pe * a.count, step, pe);
  }

 private:
  TANDEM_DEVICE static Symm<LLPacket> of(const OperationsArgs& a, LLPacket) { return a.packets; }
  TANDEM_DEVICE static Symm<LL128Line> of(const OperationsArgs& a, LL128Line) { return a.lines; }
};

/// Through the switch, where there is one: a sum to all PEs, and then once more what each of them adds to it.
struct ThroughTheSwitch {
  using Packet = void;

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const OperationsArgs& a, int step) {
    const int n = block.num_pes();
    if (!block.has_multicast() || n == 1) return;
    const auto e = static_cast<Epoch>(4 * step);
    fill_operands(block, a.data.local(), a.count, step);
    meet(block, a, e - 3);
    const Range part = split(a.count, n)[block.pe()];
    for (const Range tile : block.template tiles<std::uint32_t>(part))
      block.multimem_store(a.got, tile,
                           block.template multimem_load_reduce<std::uint32_t>(a.data, tile, ReduceOp::kSum));
    meet(block, a, e - 2);
    for (const Range tile : block.template tiles<std::uint32_t>({0, a.count}))
      block.multimem_reduce(a.got, tile, block.template load<std::uint32_t>(a.data.local(), tile), ReduceOp::kSum);
    meet(block, a, e - 1);
    std::uint32_t sum = 0;
    for (int pe = 0; pe < n; ++pe) sum += operand(step, pe, 0);
    for (Size i = 0; i < a.count; ++i)
      expect(block, a,
             block.load_scalar(a.got.local() + i) ==
                 2 * (sum + static_cast<std::uint32_t>(n) * static_cast<std::uint32_t>(i)));
    meet(block, a, e);
  }

 private:
  template <class Block>
  TANDEM_DEVICE static void meet(Block& block, const OperationsArgs& a, Epoch e) {
    block.notify_all(a.words, e);
    block.wait_all(a.words, e);
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
  visit(std::type_identity<PrefixSums<void, false>>());
  visit(std::type_identity<PrefixSums<LL128Line, false>>());
  visit(std::type_identity<PrefixSums<LLPacket, true>>());
  visit(std::type_identity<Gets<std::uint32_t>>());
  visit(std::type_identity<CountBySwaps<std::uint32_t, Scope::kGpu>>());
  visit(std::type_identity<CountBySwaps<std::int64_t, Scope::kSystem>>());
  visit(std::type_identity<Operations<PutsAndSignals>>());
  visit(std::type_identity<Operations<LoadsAndStores>>());
  visit(std::type_identity<Operations<PacketsToAll<LLPacket>>>());
  visit(std::type_identity<Operations<PacketsToAll<LL128Line>>>());
  visit(std::type_identity<Operations<ThroughTheSwitch>>());
}

}  // namespace tandem::test
