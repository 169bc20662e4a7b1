#pragma once
/// Every operation of tandem/block.h, called once: what a backend's block lacks does not compile. Nothing runs it.

#include "tandem/block.h"

namespace tandem::test {

template <class T, class P>
struct OperationArgs {
  Symm<T> symm;
  Symm<const T> constant;
  T* local;
  Accumulator<T>* result;
  Symm<P> packets;
  Signals words;
  Epochs epochs;
  std::uint32_t* u32;
  std::int32_t* i32;
  std::uint64_t* u64;
  std::int64_t* i64;
  Size count;
  ReduceOp op;
};

template <class Block, class Args>
TANDEM_DEVICE int who_and_where(Block& block, const Args&) {
  int pes = block.pe() + block.num_pes() + block.index() + block.count() + block.team().size;
  for (const int pe : block.pes_from_self()) pes += block.reachable(pe) ? 1 : 0;
  for (const int pe : block.peers_from_self()) pes += block.has_multicast() ? pe : 0;
  return pes;
}

template <class T, class Block, class Args>
TANDEM_DEVICE void memory(Block& block, const Args& a, int pe) {
  using A = Accumulator<T>;
  for (const Range tile : block.template tiles<T>({0, a.count})) {
    const auto values = block.template load<A>(block.remote(a.symm, pe), tile);
    const auto reduced = block.template load_reduce<A>(a.symm, tile, a.op);
    const auto combined = block.combine(a.op, values, reduced) * block.sum(values) + values.copy();
    if constexpr (std::is_same_v<A, float>) {
      block.template store_group_firsts<128>(a.result, block.template group_greatest<128>(values));
      block.store(a.result, tile, block.template load_groups<128>(a.result, values));
      block.store(a.result, {0, 1}, block.template group_firsts<128>(values));
      block.store_scalar(a.result, block.greatest(values));
      auto* const packets = reinterpret_cast<LLPacket*>(a.packets.local());
      block.store_scalar(a.result, block.sum_of_parts(values, packets, 0, 1, 1));
      block.store_scalar(a.result, block.greatest_of_parts(values, packets, 0, 1, 2));
    }
    const auto mapped = combined.map([](A x) { return static_cast<A>(x + A{1}); });
    const auto zipped = mapped.zip(values, [](A x, A y) { return x < y ? x : y; });
    block.store(a.local, {0, zipped.size()}, zipped);
    block.store(a.result, tile, zipped);  // of another size than T, where values meet in another type
    block.store(a.local, tile, zipped.template convert<T>());
    block.template store<T>(a.local, tile, block.template load<T>(a.constant.local(), tile));
    block.store(a.result, tile, block.template load_reduce<A>(a.constant, tile, a.op));
  }
  for (const Range tile : block.template tiles<std::int32_t>({0, a.count})) {
    const auto numbers = block.template load<std::int32_t>(a.i32, tile);
    block.store_at(a.i32, block.exclusive_sum(numbers), numbers);
    const auto ranked = block.key_ranks(numbers, 3);
    block.store_at(a.i32, ranked.ranks, block.look_up(ranked.counts, numbers));
    const auto few = block.pick(block.column_sums(a.i32, {0, 4}, 3), 0, 3);
    const auto pairs =
        few.map([](std::int32_t x) { return x + 1; }).zip(block.load_few(a.i32, 3), [](std::int32_t x, std::int32_t y) {
          return x * y;
        });
    const std::uint64_t bits = pairs.mask([](std::int32_t x) { return x > 0; }) |
                               pairs.join([](std::int32_t x) { return static_cast<std::uint64_t>(x); });
    block.store_scalar(a.u64, bits + static_cast<std::uint64_t>(pairs.at(lowest_bit(1)) + pairs.count()));
  }
  block.store(a.result, {0, 1}, block.template load_as<T, A>(a.local, {0, 1}));
  block.store_scalar(a.local + 1, block.load_scalar(a.local));
  block.copy(a.local, a.symm.local(), a.count);
}

template <class Block, class Args>
TANDEM_DEVICE void put_and_get(Block& block, const Args& a, int pe) {
  block.put(a.symm, a.local, a.count, pe);
  block.put_nbi(a.symm, a.local, a.count, pe);
  block.put_signal(a.symm, a.local, a.count, a.words, 1, pe);
  block.put_signal(a.symm, a.local, a.count, a.words, 1, pe, SignalOp::kAdd);
  block.put_signal_nbi(a.symm, a.local, a.count, a.words, 1, pe);
  block.put_signal_nbi(a.symm, a.local, a.count, a.words, 1, pe, SignalOp::kAdd);
  block.get(a.local, a.symm, a.count, pe);
  block.get_nbi(a.local, a.constant, a.count, pe);
  block.fence();
  block.quiet();
}

template <class T, class Block, class Args>
TANDEM_DEVICE void signals(Block& block, const Args& a, int pe) {
  const Epoch epoch = block.next_epoch(a.epochs);
  block.signal(block.slots(a.words), epoch, pe);
  block.signal(a.words, epoch, pe, SignalOp::kAdd);
  block.notify(a.words, epoch, pe);
  block.notify(a.words, epoch, pe, SignalOp::kAdd);
  block.signal_after_reads(a.words, epoch, pe);
  block.notify_all(a.words, epoch);
  T* local = block.consume_token(a.local, block.wait(a.words, 2, epoch));
  local = block.consume_token(local, block.wait_all(a.words, epoch));
  block.signal_wait_until(a.words, Cmp::kEq, epoch);
  if (block.signal_test(a.words, Cmp::kGt, epoch)) block.store_scalar(local, T{});
  block.sync();
}

template <class Word, class Block>
TANDEM_DEVICE void atomics(Block& block, Word* word) {
  const Word old = block.fetch_add(word, Word{1});
  block.exchange(word, old, Scope::kGpu, Order::kRelaxed);
  block.compare_swap(word, old, Word{2}, Scope::kBlock, Order::kRelease);
}

template <class T, class P, class Block>
TANDEM_DEVICE void packets(Block& block, const OperationArgs<T, P>& a, Epoch epoch, int pe) {
  using A = Accumulator<T>;
  block.ll_put(a.packets, a.local, a.count, epoch, pe);
  for (const Range tile : block.template tiles<T>({0, a.count})) {
    const auto values = block.template load<A>(a.local, tile);
    block.template ll_put_fragment<T>(a.packets, values, epoch, pe);
    block.template ll_put_peers<T>(a.packets, values, epoch);
    block.store(a.local, tile, block.template ll_get<A, T>(a.packets.local(), tile.size(), epoch));
    block.template ll_get_all<T>(values, a.packets.local(), 8, epoch,
                                 [&](int, const auto& fragment) { block.store(a.local, tile, fragment); });
  }
}

template <class T, class Block, class Args>
TANDEM_DEVICE void multicast(Block& block, const Args& a) {
  using A = Accumulator<T>;
  if (!block.has_multicast()) return;
  for (const Range tile : block.template tiles<T>({0, a.count})) {
    const auto values = block.template multimem_load_reduce<A>(a.symm, tile, a.op);
    block.multimem_store(a.symm, tile, values);
    block.multimem_reduce(a.symm, tile, values, a.op);
  }
}

template <class T, class Block, class Args>
TANDEM_DEVICE void all_but_packets(Block& block, const Args& a) {
  const int pe = who_and_where(block, a) % 2;
  memory<T>(block, a, pe);
  put_and_get(block, a, pe);
  signals<T>(block, a, pe);
  atomics(block, a.u32);
  atomics(block, a.i32);
  atomics(block, a.u64);
  atomics(block, a.i64);
  multicast<T>(block, a);
  block.ll_forward(a.packets, a.packets.local(), 3, 1, pe);
}

/// By a block of at least three warps.
template <class Block, class Body>
TANDEM_DEVICE void in_roles(Block& block, const Body& body) {
  block.template parallel<1, 2>([&](auto& role) { body(role); }, [&](auto& role) { body(role); });
  block.template parallel_for<1>(2, [&](auto& role, int) { body(role); });
}

/// `kRoles`: by the roles of a block of at least three warps.
template <class T, class P, bool kRoles = false>
struct EveryOperation {
  using Args = OperationArgs<T, P>;

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    if constexpr (kRoles)
      in_roles(block, [&](auto& role) { all_but_packets<T>(role, a); });
    else
      all_but_packets<T>(block, a);
  }
};

template <class T, class P, bool kRoles = false>
struct EveryPacketOperation {
  using Args = OperationArgs<T, P>;
  using Packet = P;

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    if constexpr (kRoles)
      in_roles(block, [&](auto& role) { packets(role, a, 1, 0); });
    else
      packets(block, a, 1, 0);
    block.store(a.result, {0, 4}, block.template load<Accumulator<T>>(a.local, {0, 4}));
    block.ll_forward(a.packets, a.packets.local(), 3, 1, 0);
  }
};

}  // namespace tandem::test
