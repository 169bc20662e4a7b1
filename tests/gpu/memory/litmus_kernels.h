#pragma once
/// Litmus tests with a kernel for each ordering that the programming model promises. Data and its signal travel around
/// a ring of PEs, round after round. Reads of early data are counted.

#include "tandem/block.h"

namespace tandem::test {

struct LitmusArgs {
  Symm<std::uint32_t> data;    // [block][count]
  Symm<LLPacket> packets;      // [2][block][packets_for(4 * count)]
  Symm<LL128Line> lines;       // [2][block][packets_for(4 * count)]
  const std::uint32_t* base;   // [count]
  std::uint32_t* differences;  // [block][count]: 0 as long as everything read was right
  Signals arrived, released;   // [block]
  Epochs epochs;               // [block]
  Size count;
  int rounds;
};

/// Common parts of the ordering kernels. `Send` transfers this PE's values of a round to the next PE, followed by the
/// signal. The values of round e are base + e.
template <class Send>
struct LitmusRing {
  using Args = LitmusArgs;

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const int n = block.num_pes();
    const int next = (block.pe() + 1) % n;
    const int previous = (block.pe() + n - 1) % n;
    const Signals arrived = a.arrived + block.index();
    const Signals released = a.released + block.index();
    const Symm<std::uint32_t> data = a.data + block.index() * a.count;
    const Epoch first = block.next_epoch(a.epochs, static_cast<Epoch>(a.rounds));
    for (Epoch e = first; e < first + static_cast<Epoch>(a.rounds); ++e) {
      block.wait(released, 1, e - 1);
      Send::send(block, a, data, arrived, e, next);
      Send::arrive(block, arrived, e);
      for (const Range tile : block.template tiles<std::uint32_t>({0, a.count}))
        note(block, a, tile, e, block.template load<std::uint32_t>(data.local(), tile));
      block.notify(released, e, previous);
    }
  }

  template <class Block, class Values>
  TANDEM_DEVICE static void note(Block& block, const Args& a, Range tile, Epoch e, const Values& values) {
    const auto right = values_of(block, a, tile, e);
    std::uint32_t* const differences = a.differences + block.index() * a.count;
    const auto difference = values.zip(right, [](std::uint32_t x, std::uint32_t y) { return x ^ y; });
    const auto before = block.template load<std::uint32_t>(differences, tile);
    block.store(differences, tile, before.zip(difference, [](std::uint32_t x, std::uint32_t y) { return x | y; }));
  }

  template <class Block>
  TANDEM_DEVICE static auto values_of(Block& block, const Args& a, Range tile, Epoch e) {
    const auto add = static_cast<std::uint32_t>(e);
    return block.template load<std::uint32_t>(a.base, tile).map([add](std::uint32_t x) { return x + add; });
  }
  template <class Block>
  TANDEM_DEVICE static void store_values(Block& block, const Args& a, std::uint32_t* to, Epoch e) {
    for (const Range tile : block.template tiles<std::uint32_t>({0, a.count}))
      block.store(to, tile, values_of(block, a, tile, e));
  }
};

/// Stores, then notify; wait, then loads.
struct StoreNotify : LitmusRing<StoreNotify> {
  template <class Block>
  TANDEM_DEVICE static void send(Block& block, const Args& a, Symm<std::uint32_t> data, Signals word, Epoch e, int pe) {
    store_values(block, a, data.on(pe), e);
    block.notify(word, e, pe);
  }
  template <class Block>
  TANDEM_DEVICE static void arrive(Block& block, Signals word, Epoch e) {
    block.wait(word, 1, e);
  }
};

/// Stores, fence, then a plain signal to the same PE.
struct StoreFenceSignal : LitmusRing<StoreFenceSignal> {
  template <class Block>
  TANDEM_DEVICE static void send(Block& block, const Args& a, Symm<std::uint32_t> data, Signals word, Epoch e, int pe) {
    store_values(block, a, data.on(pe), e);
    block.fence();
    block.signal(word, e, pe);
  }
  template <class Block>
  TANDEM_DEVICE static void arrive(Block& block, Signals word, Epoch e) {
    while (!block.signal_test(word, Cmp::kGe, e)) {
    }
  }
};

/// put_signal.
struct PutSignal : LitmusRing<PutSignal> {
  template <class Block>
  TANDEM_DEVICE static void send(Block& block, const Args& a, Symm<std::uint32_t> data, Signals word, Epoch e, int pe) {
    std::uint32_t* const outgoing = scratch(a, block.index());
    store_values(block, a, outgoing, e);
    block.put_signal(data, outgoing, a.count, word, e, pe);
  }
  template <class Block>
  TANDEM_DEVICE static void arrive(Block& block, Signals word, Epoch e) {
    block.signal_wait_until(word, Cmp::kGe, e);
  }
  /// The packets' memory, which this kernel does not need otherwise.
  TANDEM_DEVICE static std::uint32_t* scratch(const Args& a, int block) {
    return reinterpret_cast<std::uint32_t*>(a.packets.local()) + block * a.count;
  }
};

/// Packets that are their own signals, in two slots with credits.
template <class P>
struct Packets {
  using Args = LitmusArgs;
  using Packet = P;

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const int n = block.num_pes();
    const Signals released = a.released + block.index();
    const Epoch first = block.next_epoch(a.epochs, static_cast<Epoch>(a.rounds));
    const Size stride = packets_for<P>(a.count * 4);
    for (Epoch e = first; e < first + static_cast<Epoch>(a.rounds); ++e) {
      const Symm<P> slot = of(a, P{}) + (static_cast<Size>(e % 2) * block.count() + block.index()) * stride;
      if (e > 2) block.wait(released, 1, e - 2);
      Size at = 0;
      for (const Range tile : block.template tiles<std::uint32_t>({0, a.count})) {
        block.template ll_put_fragment<std::uint32_t>(slot + at, StoreNotify::values_of(block, a, tile, e), e,
                                                      (block.pe() + 1) % n);
        at += packets_for<P>(tile.size() * 4);
      }
      at = 0;
      for (const Range tile : block.template tiles<std::uint32_t>({0, a.count})) {
        StoreNotify::note(block, a, tile, e,
                          block.template ll_get<std::uint32_t, std::uint32_t>(slot.local() + at, tile.size(), e));
        at += packets_for<P>(tile.size() * 4);
      }
      block.notify(released, e, (block.pe() + n - 1) % n);
    }
  }

 private:
  TANDEM_DEVICE static Symm<LLPacket> of(const Args& a, LLPacket) { return a.packets; }
  TANDEM_DEVICE static Symm<LL128Line> of(const Args& a, LL128Line) { return a.lines; }
};

/// Stores of one PE reach a third PE through a second one, which only forwards the signal. It needs three PEs.
struct Transitive {
  using Args = LitmusArgs;

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Signals arrived = a.arrived + block.index();
    const Signals released = a.released + block.index();
    const Symm<std::uint32_t> data = a.data + block.index() * a.count;
    const Epoch first = block.next_epoch(a.epochs, static_cast<Epoch>(a.rounds));
    for (Epoch e = first; e < first + static_cast<Epoch>(a.rounds); ++e) {
      if (block.pe() == 0) {
        block.wait(released, 1, e - 1);
        StoreNotify::store_values(block, a, data.on(2), e);
        block.notify(arrived, e, 1);
      } else if (block.pe() == 1) {
        block.wait(arrived, 1, e);
        block.notify(arrived, e, 2);
      } else if (block.pe() == 2) {
        block.wait(arrived, 1, e);
        for (const Range tile : block.template tiles<std::uint32_t>({0, a.count}))
          StoreNotify::note(block, a, tile, e, block.template load<std::uint32_t>(data.local(), tile));
        block.notify(released, e, 0);
      }
    }
  }
};

/// One round whose data and signal come from a copy engine: the host enqueues them.
struct Copied {
  using Args = LitmusArgs;

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch e = block.load_scalar(a.epochs.words);  // as Fill left it
    block.wait(a.arrived, 1, e);
    const Range part = split(a.count, block.count(), 16)[block.index()];
    for (const Range tile : block.template tiles<std::uint32_t>(part)) {
      const auto right = StoreNotify::values_of(block, a, tile, e);
      const auto got = block.template load<std::uint32_t>(a.data.local(), tile);
      const auto before = block.template load<std::uint32_t>(a.differences, tile);
      const auto difference = got.zip(right, [](std::uint32_t x, std::uint32_t y) { return x ^ y; });
      block.store(a.differences, tile, before.zip(difference, [](std::uint32_t x, std::uint32_t y) { return x | y; }));
    }
  }
};

/// The values of the next round into local memory, for the copy engine to take; waits until the next PE has read the
/// last ones.
struct FillForCopy {
  using Args = LitmusArgs;

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch e = block.next_epoch(a.epochs);
    const int n = block.num_pes();
    block.notify(a.released, e, (block.pe() + n - 1) % n);
    block.wait(a.released, 1, e);
    StoreNotify::store_values(block, a, PutSignal::scratch(a, 0), e);
  }
};

}  // namespace tandem::test
