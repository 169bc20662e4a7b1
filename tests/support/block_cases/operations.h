#pragma once
/// Cases for every other operation, on operands that PE and step determine.

#include <cstdint>
#include <type_traits>
#include <vector>

#include "support/block_cases/memory.h"
#include "support/collective_values.h"
#include "tandem/block.h"
#include "tandem/world.h"

namespace tandem::test {

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

}  // namespace tandem::test
