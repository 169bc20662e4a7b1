#pragma once
/// The Block on CPUs: typed operations above an engine (BlockCore). The promises of each operation are written once, in
/// tandem/block.h.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>

#include "tandem/impl/block_ops.h"
#include "tandem/impl/cpu/block_core.h"
#include "tandem/impl/cpu/few.h"
#include "tandem/impl/cpu/fragment.h"
#include "tandem/reduce_op.h"

namespace tandem::cpu {

class Block : public BlockOps<Block> {
 public:
  /// `core` has to live as long as the block.
  explicit Block(BlockCore& core) : core_(&core) {}
  template <class T>
  using FragmentOf = Fragment<T>;
  template <class T>
  using FewOf = Few<T>;

  TANDEM_DEVICE int pe() const { return core_->pe(); }
  TANDEM_DEVICE int num_pes() const { return core_->num_pes(); }
  TANDEM_DEVICE int index() const { return core_->index(); }
  TANDEM_DEVICE int count() const { return core_->count(); }
  const Team& team() const { return core_->team(); }
  bool reachable(int pe) const { return core_->reachable(pe); }
  bool has_multicast() const { return core_->has_multicast(); }

  // --- loops -------------------------------------------------------------------------------------------------------

  template <class T>
  Tiles tiles(Range range) const {
    return {range, max(1, core_->tile_bytes() / static_cast<Size>(sizeof(T)))};
  }

  // --- memory ------------------------------------------------------------------------------------------------------

  template <class T>
  T* remote(Symm<T> symm, int pe) const {
    return reachable(pe) ? symm.on(pe) : nullptr;
  }

  template <class A, class T>
  Fragment<A> load(const T* from, Range range, Site site = Site::here()) {
    core_->require_tile(range.size(), sizeof(T), "load", site);
    core_->read(from + range.begin, range.size() * Size{sizeof(T)}, site);
    return gather<A>(from, range);
  }

  template <class U, class A, class T>
  Fragment<A> load_as(const T* from, Range range, Site site = Site::here()) {
    static_assert(sizeof(U) <= sizeof(T));
    core_->require_tile(range.size(), sizeof(U), "load_as", site);
    core_->read(from + range.begin, range.size() * Size{sizeof(T)}, site);
    Fragment<A> result(range.size(), core_->backed(from), core_->layout(sizeof(U)));
    if (result.backed() && !range.empty()) impl::convert_all(result.data(), from + range.begin, range.size());
    return result;
  }

  template <class T>
  T load_scalar(const T* from, Site site = Site::here()) {
    T value{};
    core_->read_scalar(&value, from, sizeof(T), site);
    return value;
  }

  template <class T>
  Few<T> load_few(const T* from, int count, Site site = Site::here()) {
    Few<T> few(count);
    for (int i = 0; i < count; ++i) few.set(i, load_scalar(from + i, site));
    return few;
  }

  template <class A, class T>
  Fragment<A> load_reduce(Symm<T> from, Range range, ReduceOp op, Site site = Site::here()) {
    core_->require_tile(range.size(), sizeof(T), "load_reduce", site);
    core_->read_all((from + range.begin).template as<const std::byte>(), range.size() * Size{sizeof(T)}, site);
    return gather_all<A>(from, range, op);
  }

  template <class T, class A>
  void store(T* to, Range range, const Fragment<A>& values, Site site = Site::here()) {
    core_->require_fragment(values.size(), values.layout(), range.size(), 0, "store", site);
    if (core_->stores_at_once())
      unload(to + range.begin, values);
    else
      core_->write(to + range.begin, pack<T>(to, values), range.size() * Size{sizeof(T)}, site);
  }

  template <class T>
  void store_scalar(T* to, T value, Site site = Site::here()) {
    core_->write_scalar(to, &value, sizeof(T), site);
  }

  template <class T>
  void copy(T* to, const std::type_identity_t<T>* from, Size count, Site site = Site::here()) {
    core_->copy(to, from, count * Size{sizeof(T)}, site);
  }

  template <class A>
  Fragment<A> combine(ReduceOp op, const Fragment<A>& a, const Fragment<A>& b) const {
    Fragment<A> result = a.template joined<A>(b);
    if (result.backed()) impl::combine_all(op, result.data(), a.data(), b.data(), result.size());
    return result;
  }

  template <class T>
  T sum(const Fragment<T>& values, Site site = Site::here()) {
    sync(site);
    return sum_of(values);
  }

  template <class T>
  T greatest(const Fragment<T>& values, Site site = Site::here()) {
    sync(site);
    return greatest_of(values);
  }
  template <int Group, class T>
  Fragment<T> group_greatest(const Fragment<T>& values, Site site = Site::here()) {
    sync(site);
    Fragment<T> result(values.size(), values.backed(), values.layout());
    if (!result.backed()) return result;
    for (const Range group : Tiles({0, values.size()}, Group)) {
      const T most = greatest_of(values.data() + group.begin, group.size());
      for (Size i = group.begin; i < group.end; ++i) result.data()[i] = most;
    }
    return result;
  }
  template <int Group, class T, class A>
  void store_group_firsts(T* to, const Fragment<A>& values, Site site = Site::here()) {
    const Size groups = ceil_div(values.size(), Group);
    Fragment<A> firsts(groups, values.backed(), values.layout());
    if (firsts.backed())
      for (Size i = 0; i < groups; ++i) firsts.data()[i] = values.data()[i * Group];
    store(to, {0, groups}, firsts, site);
  }
  template <int Group, class T>
  Fragment<T> group_firsts(const Fragment<T>& values, Site site = Site::here()) {
    static_assert(sizeof(T) == 4);
    sync(site);
    Fragment<T> firsts(ceil_div(values.size(), Group), values.backed(), core_->layout(sizeof(T)));
    if (firsts.backed())
      for (Size i = 0; i < firsts.size(); ++i) firsts.data()[i] = values.data()[i * Group];
    return firsts;
  }
  template <int Group, class T, class A>
  Fragment<T> load_groups(const T* from, const Fragment<A>& like, Site site = Site::here()) {
    core_->read(from, ceil_div(like.size(), Group) * Size{sizeof(T)}, site);
    Fragment<T> result(like.size(), core_->backed(from), like.layout());
    if (result.backed())
      for (Size i = 0; i < like.size(); ++i) result.data()[i] = from[i / Group];
    return result;
  }

  template <class T>
  Fragment<T> exclusive_sum(const Fragment<T>& values, Site site = Site::here()) {
    sync(site);
    Fragment<T> result(values.size(), values.backed(), values.layout());
    if (!result.backed()) return result;
    T total{};
    for (Size i = 0; i < values.size(); ++i) {
      result.data()[i] = total;
      total = apply(ReduceOp::kSum, total, values.data()[i]);
    }
    return result;
  }
  KeyRanks<Fragment<std::int32_t>> key_ranks(const Fragment<std::int32_t>& values, int keys, Site site = Site::here()) {
    core_->require_tile(keys, sizeof(std::int32_t), "key_ranks", site);
    sync(site);
    KeyRanks<Fragment<std::int32_t>> result{{values.size(), values.backed(), values.layout()},
                                            {keys, values.backed(), core_->layout(sizeof(std::int32_t))}};
    if (!values.backed()) return result;
    std::fill_n(result.counts.data(), keys, 0);
    for (Size i = 0; i < values.size(); ++i) {
      const std::int32_t key = values.data()[i];
      result.ranks.data()[i] = key >= 0 && key < keys ? result.counts.data()[key]++ : 0;
    }
    return result;
  }
  template <class T>
  Fragment<T> look_up(const Fragment<T>& table, const Fragment<std::int32_t>& at, Site site = Site::here()) {
    static_assert(sizeof(T) == 4);
    sync(site);
    Fragment<T> result(at.size(), table.backed() && at.backed(), at.layout());
    if (result.backed())
      for (Size i = 0; i < at.size(); ++i) result.data()[i] = at.data()[i] < 0 ? T{} : table.data()[at.data()[i]];
    return result;
  }
  Fragment<std::int32_t> column_sums(const std::int32_t* table, Range rows, Size columns, Site site = Site::here()) {
    core_->require_tile(columns, sizeof(std::int32_t), "column_sums", site);
    if (!rows.empty()) core_->read(table + rows.begin * columns, rows.size() * columns * Size{sizeof(*table)}, site);
    sync(site);
    Fragment<std::int32_t> sums(columns, core_->backed(table), core_->layout(sizeof(*table)));
    if (!sums.backed()) return sums;
    std::fill_n(sums.data(), columns, 0);
    for (Size row = rows.begin; row < rows.end; ++row)
      for (Size i = 0; i < columns; ++i)
        sums.data()[i] = apply(ReduceOp::kSum, sums.data()[i], table[row * columns + i]);
    return sums;
  }
  template <class T>
  Few<T> pick(const Fragment<T>& values, Size first, int count, Site site = Site::here()) {
    sync(site);
    Few<T> few(count);
    if (values.backed())
      for (int i = 0; i < count; ++i) few.set(i, values.data()[first + i]);
    return few;
  }
  template <class T, class A>
  void store_at(T* to, const Fragment<std::int32_t>& at, const Fragment<A>& values, Site site = Site::here()) {
    core_->require_fragment(values.size(), values.layout(), at.size(), 0, "store_at", site);
    if (!at.backed() || !values.backed()) return;
    for (Size i = 0; i < at.size(); ++i)
      if (at.data()[i] >= 0) store_scalar(to + at.data()[i], tandem::convert<T>(values.data()[i]), site);
  }

  // --- put, get ----------------------------------------------------------------------------------------------------

  template <class T>
  void put(Symm<T> to, const std::type_identity_t<T>* from, Size count, int pe, Site site = Site::here()) {
    core_->put(to.on(pe), from, count * Size{sizeof(T)}, Completion::kBlocking, nullptr, site);
  }
  template <class T>
  void put_nbi(Symm<T> to, const std::type_identity_t<T>* from, Size count, int pe, Site site = Site::here()) {
    core_->put(to.on(pe), from, count * Size{sizeof(T)}, Completion::kNonBlocking, nullptr, site);
  }
  template <class T>
  void put_signal(Symm<T> to, const std::type_identity_t<T>* from, Size count, Signals word, Epoch value, int pe,
                  SignalOp op = SignalOp::kSet, Site site = Site::here()) {
    const SignalUpdate update{word.on(pe), value, op};
    core_->put(to.on(pe), from, count * Size{sizeof(T)}, Completion::kBlocking, &update, site);
  }
  template <class T>
  void put_signal_nbi(Symm<T> to, const std::type_identity_t<T>* from, Size count, Signals word, Epoch value, int pe,
                      SignalOp op = SignalOp::kSet, Site site = Site::here()) {
    const SignalUpdate update{word.on(pe), value, op};
    core_->put(to.on(pe), from, count * Size{sizeof(T)}, Completion::kNonBlocking, &update, site);
  }
  template <class T>
  void get(T* to, std::type_identity_t<Symm<const T>> from, Size count, int pe, Site site = Site::here()) {
    core_->get(to, from.on(pe), count * Size{sizeof(T)}, Completion::kBlocking, site);
  }
  template <class T>
  void get_nbi(T* to, std::type_identity_t<Symm<const T>> from, Size count, int pe, Site site = Site::here()) {
    core_->get(to, from.on(pe), count * Size{sizeof(T)}, Completion::kNonBlocking, site);
  }

  // --- signals -----------------------------------------------------------------------------------------------------

  void signal(Signals word, Epoch value, int pe, SignalOp op = SignalOp::kSet, Site site = Site::here()) {
    core_->signal({word.on(pe), value, op}, Order::kRelaxed, site);
  }
  void notify(Signals word, Epoch value, int pe, SignalOp op = SignalOp::kSet, Site site = Site::here()) {
    core_->signal({word.on(pe), value, op}, Order::kRelease, site);
  }
  void signal_after_reads(Signals word, Epoch value, int pe, Site site = Site::here()) {
    core_->signal({word.on(pe), value, SignalOp::kSet, true}, Order::kRelaxed, site);
  }
  void notify_all(Signals words, Epoch value, Site site = Site::here()) {
    core_->require_slots(words, "notify_all", site);
    for (int other : pes_from_self()) notify(slots(words) + pe(), value, other, SignalOp::kSet, site);
  }
  Token wait(Signals words, Size n, Epoch value, Site site = Site::here()) {
    core_->wait(words.local(), n, 1, Cmp::kGe, value, Order::kAcquire, site);
    return {};
  }
  Token wait_all(Signals words, Epoch value, Site site = Site::here()) {
    core_->require_slots(words, "wait_all", site);
    return wait(slots(words), num_pes(), value, site);
  }
  void signal_wait_until(Signals word, Cmp cmp, Epoch value, Site site = Site::here()) {
    core_->wait(word.local(), 1, 1, cmp, value, Order::kAcquire, site);
  }
  bool signal_test(Signals word, Cmp cmp, Epoch value, Site site = Site::here()) {
    return core_->test(word.local(), cmp, value, site);
  }
  template <class T>
  T* consume_token(T* pointer, Token) const {
    return pointer;
  }
  Epoch next_epoch(Epochs epochs, Epoch count = 1, Site site = Site::here()) {
    return core_->next_epoch(epochs, count, site);
  }
  void fence(Site site = Site::here()) { core_->fence(site); }
  void quiet(Site site = Site::here()) { core_->quiet(site); }
  void sync(Site site = Site::here()) { core_->sync(site); }

  // --- atomics -----------------------------------------------------------------------------------------------------

  template <class T>
  T fetch_add(T* word, T value, Scope scope = Scope::kSystem, Order order = Order::kAcqRel, Site site = Site::here()) {
    return atomic_op(word, AtomicOp::kAdd, value, T{}, scope, order, site);
  }
  template <class T>
  T exchange(T* word, T value, Scope scope = Scope::kSystem, Order order = Order::kAcqRel, Site site = Site::here()) {
    return atomic_op(word, AtomicOp::kExchange, value, T{}, scope, order, site);
  }
  template <class T>
  T compare_swap(T* word, T expected, T value, Scope scope = Scope::kSystem, Order order = Order::kAcqRel,
                 Site site = Site::here()) {
    return atomic_op(word, AtomicOp::kCompareSwap, value, expected, scope, order, site);
  }

  // --- packets -----------------------------------------------------------------------------------------------------

  template <class P, class T>
  void ll_put(Symm<P> to, const T* from, Size count, Epoch epoch, int pe, Site site = Site::here()) {
    core_->read(from, count * Size{sizeof(T)}, site, true);
    send_packets(to.on(pe), core_->backed(from) ? from : nullptr, count * Size{sizeof(T)}, epoch, site);
  }
  template <class T, class P, class A>
  void ll_put_fragment(Symm<P> to, const Fragment<A>& values, Epoch epoch, int pe, Site site = Site::here()) {
    core_->require_fragment(values.size(), values.layout(), values.size(), sizeof(T), "ll_put_fragment", site);
    const Fragment<T> converted = values.template convert<T>();
    const T* bytes = converted.size() > 0 && converted.backed() ? converted.data() : nullptr;
    send_packets(to.on(pe), bytes, values.size() * Size{sizeof(T)}, epoch, site);
  }
  template <class T, class P, class A>
  void ll_put_peers(Symm<P> to, const Fragment<A>& values, Epoch epoch, Site site = Site::here()) {
    for (const int other : peers_from_self()) ll_put_fragment<T>(to, values, epoch, other, site);
  }
  template <class A, class T, class P>
  Fragment<A> ll_get(const P* from, Size count, Epoch epoch, Site site = Site::here()) {
    core_->require_tile(count, sizeof(T), "ll_get", site);
    wait_for_packets(from, packets_for<P>(count * Size{sizeof(T)}), epoch, site);
    Fragment<T> raw(count, !core_->phantom() || std::is_same_v<T, Index>, core_->layout(sizeof(T)));
    if (raw.backed() && count > 0) unpack_packets(raw.data(), from, count * Size{sizeof(T)});
    return raw.template convert<A>();
  }
  template <class T, class A, class P, class F>
  void ll_get_all(const Fragment<A>& own, const P* from, Size stride, Epoch epoch, const F& on_pe,
                  Site site = Site::here()) {
    core_->require_fragment(own.size(), own.layout(), own.size(), sizeof(T), "ll_get_all", site);
    for (int other = 0; other < num_pes(); ++other) {
      if (other == pe())
        on_pe(other, own);
      else
        on_pe(other, ll_get<A, T>(from + other * stride, own.size(), epoch, site));
    }
  }
  float sum_of_parts(const Fragment<float>& values, LLPacket* packets, int part, int parts, Epoch epoch,
                     Site site = Site::here()) {
    return sum_of(of_parts(sum(values, site), packets, part, parts, epoch, site));
  }
  float greatest_of_parts(const Fragment<float>& values, LLPacket* packets, int part, int parts, Epoch epoch,
                          Site site = Site::here()) {
    return greatest_of(of_parts(greatest(values, site), packets, part, parts, epoch, site));
  }
  /// Waits for packets and passes them on as they are.
  template <class P>
  void ll_forward(Symm<P> to, const P* from, Size packets, Epoch epoch, int pe, Site site = Site::here()) {
    wait_for_packets(from, packets, epoch, site);
    Buffer copy(packets * Size{sizeof(P)});
    if (packets > 0) std::memcpy(copy.data(), from, static_cast<std::size_t>(copy.bytes()));
    core_->write_packets(to.on(pe), std::move(copy), PacketForm::of<P>(), site);
  }

  // --- multicast ---------------------------------------------------------------------------------------------------

  template <class T, class A>
  void multimem_store(Symm<T> to, Range range, const Fragment<A>& values, Site site = Site::here()) {
    core_->require_fragment(values.size(), values.layout(), range.size(), 0, "multimem_store", site);
    core_->multimem((to + range.begin).template as<std::byte>(), range.size() * Size{sizeof(T)}, MultimemOp::kStore,
                    site);
    for (int other = 0; other < num_pes(); ++other) {
      if (core_->stores_at_once())
        unload(to.on(other) + range.begin, values);
      else
        core_->deliver_multimem(to.on(other) + range.begin, pack<T>(to.on(other), values), site);
    }
  }
  template <class A, class T>
  Fragment<A> multimem_load_reduce(Symm<T> from, Range range, ReduceOp op, Site site = Site::here()) {
    core_->require_tile(range.size(), sizeof(T), "multimem_load_reduce", site);
    core_->multimem((from + range.begin).template as<std::byte>(), range.size() * Size{sizeof(T)}, MultimemOp::kLoad,
                    site);
    return gather_all<A>(from, range, op);
  }
  /// Reduces the values into every PE's copy by `op`.
  template <class T, class A>
  void multimem_reduce(Symm<T> to, Range range, const Fragment<A>& values, ReduceOp op, Site site = Site::here()) {
    core_->require_fragment(values.size(), values.layout(), range.size(), 0, "multimem_reduce", site);
    core_->multimem((to + range.begin).template as<std::byte>(), range.size() * Size{sizeof(T)}, MultimemOp::kReduce,
                    site);
    for (int other = 0; other < num_pes(); ++other)
      if (values.backed() && core_->backed(to.on(other)))
        impl::reduce_atomically(op, to.on(other) + range.begin, values.data(), values.size());
  }

  // --- roles -------------------------------------------------------------------------------------------------------

  /// Runs roles of the given widths in warps, one function each.
  template <int... Widths, class... F>
  void parallel(F&&... bodies) {
    static_assert(sizeof...(Widths) == sizeof...(F) && sizeof...(F) <= 15);
    constexpr std::array<int, sizeof...(Widths)> widths{Widths...};
    core_->run_roles(
        sizeof...(F), widths.data(),
        [&](int role, BlockCore& core) {
          Block block(core);
          int at = 0;
          ((at++ == role ? void(bodies(block)) : void()), ...);
        },
        Site::here());
  }
  /// Runs `n` roles (at most 15) of `Width` warps each by body(role, index).
  template <int Width, class F>
  void parallel_for(int n, F&& body, Site site = Site::here()) {
    std::array<int, 15> widths;
    widths.fill(Width);
    core_->run_roles(
        n, widths.data(),
        [&](int role, BlockCore& core) {
          Block block(core);
          body(block, role);
        },
        site);
  }

 private:
  template <class T>
  static T sum_of(const Fragment<T>& values) {
    T total{};
    if (values.backed())
      for (Size i = 0; i < values.size(); ++i) total = apply(ReduceOp::kSum, total, values.data()[i]);
    return total;
  }
  template <class T>
  static T greatest_of(const Fragment<T>& values) {
    return values.backed() ? greatest_of(values.data(), values.size()) : T{};
  }
  template <class T>
  static T greatest_of(const T* values, Size count) {
    T most{};
    for (Size i = 0; i < count; ++i) most = apply(ReduceOp::kMax, most, values[i]);
    return most;
  }

  template <class A, class T>
  Fragment<A> gather(const T* from, Range range) const {
    Fragment<A> result(range.size(), core_->backed(from), core_->layout(sizeof(T)));
    if (result.backed() && !range.empty()) impl::convert_all(result.data(), from + range.begin, range.size());
    return result;
  }
  template <class A, class T>
  Fragment<A> gather_all(Symm<T> from, Range range, ReduceOp op) const {
    if (num_pes() == 1) return gather<A>(from.on(0), range);
    Fragment<A> result(range.size(), core_->backed(from.on(0)), core_->layout(sizeof(T)));
    if (!result.backed() || range.empty()) return result;
    const auto values = [&](int other) { return from.on(other) + range.begin; };
    impl::combine_all(op, result.data(), values(0), values(1), range.size());
    for (int other = 2; other < num_pes(); ++other) impl::combine_into(op, result.data(), values(other), range.size());
    return result;
  }

  template <class T, class A>
  Buffer pack(const T* to, const Fragment<A>& values) const {
    if (values.size() == 0 || !values.backed() || !core_->backed(to)) return {};
    Buffer payload(values.size() * Size{sizeof(T)});
    unload(reinterpret_cast<T*>(payload.data()), values);
    return payload;
  }
  template <class T, class A>
  static void unload(T* to, const Fragment<A>& values) {
    if (values.size() > 0) impl::convert_all(to, values.data(), values.size());
  }

  template <class T>
  T atomic_op(T* word, AtomicOp op, T operand, T expected, Scope scope, Order order, Site site) {
    static_assert(std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
    using Bits = std::make_unsigned_t<T>;  // a negative value of 4 bytes has no others
    return static_cast<T>(core_->atomic(word, sizeof(T), op, static_cast<Bits>(operand), static_cast<Bits>(expected),
                                        scope, order, site));
  }

  /// Returns the values of all parts in order. Each has a pair of packets, the second of which carries 0.
  Fragment<float> of_parts(float own, LLPacket* packets, int part, int parts, Epoch epoch, Site site) {
    const std::array<float, 2> pair{own, 0};
    send_packets(packets + 2 * part, core_->phantom() ? nullptr : pair.data(), sizeof(pair), epoch, site);
    return ll_get<float, float>(static_cast<const LLPacket*>(packets), Size{2} * parts, epoch, site);
  }

  template <class P>
  void send_packets(P* to, const void* from, Size bytes, Epoch epoch, Site site) {
    if (bytes <= 0) return;
    core_->check_packets(to, packets_for<P>(bytes) * Size{sizeof(P)}, site);
    core_->write_packets(to, pack_packets<P>(from, bytes, epoch), PacketForm::of<P>(), site);
  }
  template <class P>
  static Buffer pack_packets(const void* from, Size bytes, Epoch epoch) {
    const Size n = packets_for<P>(bytes);
    Buffer packets(n * Size{sizeof(P)});
    for (Size i = 0; i < n; ++i) {
      // It is made in place. A packet that is read as a whole right after its parts were written stalls the processor.
      P& packet = *new (packets.data() + i * Size{sizeof(P)}) P;
      if (from == nullptr || i == n - 1) packet = P{};
      if constexpr (requires { packet.unused; }) packet.unused = 0;
      packet.flag = static_cast<decltype(packet.flag)>(epoch);
      if (from != nullptr) move_data<P>(&packet.data, static_cast<const std::byte*>(from) + i * kData<P>, bytes, i);
    }
    return packets;
  }
  template <class P>
  static void unpack_packets(void* to, const P* from, Size bytes) {
    const Size n = packets_for<P>(bytes);
    for (Size i = 0; i < n; ++i) move_data<P>(static_cast<std::byte*>(to) + i * kData<P>, &from[i].data, bytes, i);
  }
  template <class P>
  static constexpr Size kData = Size{sizeof(P::data)};
  /// Moves the part of `bytes` bytes that packet `i` carries. All packets but the last one carry a known number.
  template <class P>
  static void move_data(void* to, const void* from, Size bytes, Size i) {
    if (const Size left = bytes - i * kData<P>; left < kData<P>)
      std::memcpy(to, from, static_cast<std::size_t>(left));
    else
      std::memcpy(to, from, sizeof(P::data));
  }
  template <class P>
  void wait_for_packets(const P* from, Size packets, Epoch epoch, Site site) {
    core_->wait_packets(from, packets, PacketForm::of<P>(), static_cast<decltype(P::flag)>(epoch), site);
  }

  BlockCore* core_;
};

}  // namespace tandem::cpu
