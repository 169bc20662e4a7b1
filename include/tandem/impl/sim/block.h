#pragma once
/// The simulator's Block. What each operation promises is written once, in tandem/block.h.

#include <array>
#include <cstring>
#include <type_traits>

#include "tandem/impl/block_ops.h"
#include "tandem/impl/sim/block_core.h"
#include "tandem/impl/sim/fragment.h"
#include "tandem/reduce_op.h"

namespace tandem::sim {

class Block : public BlockCore, public BlockOps<Block> {
 public:
  using BlockCore::BlockCore;
  explicit Block(BlockCore core) : BlockCore(core) {}
  template <class T>
  using FragmentOf = Fragment<T>;

  // --- loops -------------------------------------------------------------------------------------------------------

  template <class T>
  Tiles tiles(Range range) const {
    return {range, max(1, tile_bytes() / static_cast<Size>(sizeof(T)))};
  }

  // --- memory ------------------------------------------------------------------------------------------------------

  template <class T>
  T* remote(Symm<T> symm, int pe) const {
    return reachable(pe) ? symm.on(pe) : nullptr;
  }

  template <class A, class T>
  Fragment<A> load(const T* from, Range range, Site site = Site::here()) {
    require_tile(range.size(), sizeof(T), "load", site);
    read(from + range.begin, range.size() * Size{sizeof(T)}, site);
    return gather<A>(from, range);
  }

  template <class T>
  T load_scalar(const T* from, Site site = Site::here()) {
    read_scalar(from, sizeof(T), site);
    return backed(from) ? *from : T{};
  }

  template <class A, class T>
  Fragment<A> load_reduce(Symm<T> from, Range range, ReduceOp op, Site site = Site::here()) {
    require_tile(range.size(), sizeof(T), "load_reduce", site);
    read_all((from + range.begin).template as<const std::byte>(), range.size() * Size{sizeof(T)}, site);
    Fragment<A> result = gather<A>(from.on(0), range);
    for (int other = 1; other < num_pes(); ++other) result = combine(op, result, gather<A>(from.on(other), range));
    return result;
  }

  template <class T, class A>
  void store(T* to, Range range, const Fragment<A>& values, Site site = Site::here()) {
    require_fragment(values.size(), values.layout(), range.size(), 0, "store", site);
    write(to + range.begin, pack<T>(to, values), range.size() * Size{sizeof(T)}, site);
  }

  template <class T>
  void store_scalar(T* to, T value, Site site = Site::here()) {
    Buffer payload = backed(to) ? Buffer(sizeof(T)) : Buffer();
    if (payload) std::memcpy(payload.data(), &value, sizeof(T));
    write(to, std::move(payload), sizeof(T), site);
  }

  template <class T>
  void copy(T* to, const std::type_identity_t<T>* from, Size count, Site site = Site::here()) {
    BlockCore::copy(to, from, count * Size{sizeof(T)}, site);
  }

  template <class A>
  Fragment<A> combine(ReduceOp op, const Fragment<A>& a, const Fragment<A>& b) const {
    return a.zip(b, [op](A x, A y) { return apply(op, x, y); });
  }

  template <class T>
  T sum(const Fragment<T>& values, Site site = Site::here()) {
    sync(site);
    T total{};
    if (values.backed())
      for (Size i = 0; i < values.size(); ++i) total = apply(ReduceOp::kSum, total, values.data()[i]);
    return total;
  }

  // --- put, get ----------------------------------------------------------------------------------------------------

  template <class T>
  void put(Symm<T> to, const std::type_identity_t<T>* from, Size count, int pe, Site site = Site::here()) {
    BlockCore::put(to.on(pe), from, count * Size{sizeof(T)}, Completion::kBlocking, nullptr, site);
  }
  template <class T>
  void put_nbi(Symm<T> to, const std::type_identity_t<T>* from, Size count, int pe, Site site = Site::here()) {
    BlockCore::put(to.on(pe), from, count * Size{sizeof(T)}, Completion::kNonBlocking, nullptr, site);
  }
  template <class T>
  void put_signal(Symm<T> to, const std::type_identity_t<T>* from, Size count, Signals word, Epoch value, int pe,
                  SignalOp op = SignalOp::kSet, Site site = Site::here()) {
    const SignalUpdate update{word.on(pe), value, op};
    BlockCore::put(to.on(pe), from, count * Size{sizeof(T)}, Completion::kBlocking, &update, site);
  }
  template <class T>
  void put_signal_nbi(Symm<T> to, const std::type_identity_t<T>* from, Size count, Signals word, Epoch value, int pe,
                      SignalOp op = SignalOp::kSet, Site site = Site::here()) {
    const SignalUpdate update{word.on(pe), value, op};
    BlockCore::put(to.on(pe), from, count * Size{sizeof(T)}, Completion::kNonBlocking, &update, site);
  }
  template <class T>
  void get(T* to, std::type_identity_t<Symm<const T>> from, Size count, int pe, Site site = Site::here()) {
    BlockCore::get(to, from.on(pe), count * Size{sizeof(T)}, Completion::kBlocking, site);
  }
  template <class T>
  void get_nbi(T* to, std::type_identity_t<Symm<const T>> from, Size count, int pe, Site site = Site::here()) {
    BlockCore::get(to, from.on(pe), count * Size{sizeof(T)}, Completion::kNonBlocking, site);
  }

  // --- signals -----------------------------------------------------------------------------------------------------

  void signal(Signals word, Epoch value, int pe, SignalOp op = SignalOp::kSet, Site site = Site::here()) {
    BlockCore::signal({word.on(pe), value, op}, Order::kRelaxed, site);
  }
  void notify(Signals word, Epoch value, int pe, SignalOp op = SignalOp::kSet, Site site = Site::here()) {
    BlockCore::signal({word.on(pe), value, op}, Order::kRelease, site);
  }
  void signal_after_reads(Signals word, Epoch value, int pe, Site site = Site::here()) {
    BlockCore::signal({word.on(pe), value, SignalOp::kSet, true}, Order::kRelaxed, site);
  }
  void notify_all(Signals words, Epoch value, Site site = Site::here()) {
    require_slots(words, "notify_all", site);
    for (int other : pes_from_self()) notify(slots(words) + pe(), value, other, SignalOp::kSet, site);
  }
  Token wait(Signals words, Size n, Epoch value, Site site = Site::here()) {
    BlockCore::wait(words.local(), n, 1, Cmp::kGe, value, Order::kAcquire, site);
    return {};
  }
  Token wait_all(Signals words, Epoch value, Site site = Site::here()) {
    require_slots(words, "wait_all", site);
    return wait(slots(words), num_pes(), value, site);
  }
  void signal_wait_until(Signals word, Cmp cmp, Epoch value, Site site = Site::here()) {
    BlockCore::wait(word.local(), 1, 1, cmp, value, Order::kAcquire, site);
  }
  bool signal_test(Signals word, Cmp cmp, Epoch value, Site site = Site::here()) {
    return BlockCore::test(word.local(), cmp, value, site);
  }
  template <class T>
  T* consume_token(T* pointer, Token) const {
    return pointer;
  }
  Epoch next_epoch(Epochs epochs, Epoch count = 1, Site site = Site::here()) {
    return BlockCore::next_epoch(epochs, count, site);
  }
  void fence(Site site = Site::here()) { BlockCore::fence(site); }
  void quiet(Site site = Site::here()) { BlockCore::quiet(site); }
  void sync(Site site = Site::here()) { BlockCore::sync(site); }

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
    read(from, count * Size{sizeof(T)}, site, true);
    send_packets(to.on(pe), backed(from) ? from : nullptr, count * Size{sizeof(T)}, epoch, site);
  }
  template <class T, class P, class A>
  void ll_put_fragment(Symm<P> to, const Fragment<A>& values, Epoch epoch, int pe, Site site = Site::here()) {
    require_fragment(values.size(), values.layout(), values.size(), sizeof(T), "ll_put_fragment", site);
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
    require_tile(count, sizeof(T), "ll_get", site);
    wait_for_packets(from, packets_for<P>(count * Size{sizeof(T)}), epoch, site);
    Fragment<T> raw(count, !phantom(), layout(sizeof(T)));
    if (raw.backed() && count > 0) unpack_packets(raw.data(), from, count * Size{sizeof(T)});
    return raw.template convert<A>();
  }
  template <class T, class A, class P, class F>
  void ll_get_all(const Fragment<A>& own, const P* from, Size stride, Epoch epoch, const F& on_pe,
                  Site site = Site::here()) {
    require_fragment(own.size(), own.layout(), own.size(), sizeof(T), "ll_get_all", site);
    for (int other = 0; other < num_pes(); ++other) {
      if (other == pe())
        on_pe(other, own);
      else
        on_pe(other, ll_get<A, T>(from + other * stride, own.size(), epoch, site));
    }
  }
  /// Waits for packets and passes them on as they are.
  template <class P>
  void ll_forward(Symm<P> to, const P* from, Size packets, Epoch epoch, int pe, Site site = Site::here()) {
    wait_for_packets(from, packets, epoch, site);
    Buffer copy(packets * Size{sizeof(P)});
    if (packets > 0) std::memcpy(copy.data(), from, static_cast<std::size_t>(copy.bytes()));
    write_packets(to.on(pe), std::move(copy), site);
  }

  // --- multicast ---------------------------------------------------------------------------------------------------

  template <class T, class A>
  void multimem_store(Symm<T> to, Range range, const Fragment<A>& values, Site site = Site::here()) {
    require_fragment(values.size(), values.layout(), range.size(), 0, "multimem_store", site);
    multimem((to + range.begin).template as<std::byte>(), range.size() * Size{sizeof(T)}, MultimemOp::kStore, site);
    for (int other = 0; other < num_pes(); ++other)
      deliver_multimem(to.on(other) + range.begin, pack<T>(to.on(other), values), site);
  }
  template <class A, class T>
  Fragment<A> multimem_load_reduce(Symm<T> from, Range range, ReduceOp op, Site site = Site::here()) {
    require_tile(range.size(), sizeof(T), "multimem_load_reduce", site);
    multimem((from + range.begin).template as<std::byte>(), range.size() * Size{sizeof(T)}, MultimemOp::kLoad, site);
    Fragment<A> result = gather<A>(from.on(0), range);
    for (int other = 1; other < num_pes(); ++other) result = combine(op, result, gather<A>(from.on(other), range));
    return result;
  }
  /// Adds (or as `op` says) the values into every PE's copy.
  template <class T, class A>
  void multimem_reduce(Symm<T> to, Range range, const Fragment<A>& values, ReduceOp op, Site site = Site::here()) {
    require_fragment(values.size(), values.layout(), range.size(), 0, "multimem_reduce", site);
    multimem((to + range.begin).template as<std::byte>(), range.size() * Size{sizeof(T)}, MultimemOp::kReduce, site);
    for (int other = 0; other < num_pes(); ++other) {
      Fragment<A> sum = combine(op, gather<A>(to.on(other), range, values.layout()), values);
      write_now(to.on(other) + range.begin, pack<T>(to.on(other), sum));
    }
  }

  // --- roles -------------------------------------------------------------------------------------------------------

  /// Roles of the given widths in warps, one function each.
  template <int... Widths, class... F>
  void parallel(F&&... bodies) {
    static_assert(sizeof...(Widths) == sizeof...(F) && sizeof...(F) <= 15);
    constexpr std::array<int, sizeof...(Widths)> widths{Widths...};
    run_roles(
        sizeof...(F), widths.data(),
        [&](int role, BlockCore core) {
          Block block(core);
          int at = 0;
          ((at++ == role ? void(bodies(block)) : void()), ...);
        },
        Site::here());
  }
  /// `n` roles (at most 15) of `Width` warps each: body(role, index).
  template <int Width, class F>
  void parallel_for(int n, F&& body, Site site = Site::here()) {
    std::array<int, 15> widths;
    widths.fill(Width);
    run_roles(
        n, widths.data(),
        [&](int role, BlockCore core) {
          Block block(core);
          body(block, role);
        },
        site);
  }

 private:
  template <class A, class T>
  Fragment<A> gather(const T* from, Range range) const {
    return gather<A>(from, range, layout(sizeof(T)));
  }
  template <class A, class T>
  Fragment<A> gather(const T* from, Range range, const Layout& layout) const {
    Fragment<A> result(range.size(), backed(from), layout);
    if (result.backed() && !range.empty())
      for (Size i = 0; i < range.size(); ++i) result.data()[i] = tandem::convert<A>(from[range.begin + i]);
    return result;
  }

  template <class T, class A>
  Buffer pack(const T* to, const Fragment<A>& values) const {
    if (values.size() == 0 || !values.backed() || !backed(to)) return {};
    Buffer payload(values.size() * Size{sizeof(T)});
    T* out = reinterpret_cast<T*>(payload.data());
    for (Size i = 0; i < values.size(); ++i) out[i] = tandem::convert<T>(values.data()[i]);
    return payload;
  }

  static void write_now(void* to, const Buffer& payload) {
    if (payload) std::memcpy(to, payload.data(), static_cast<std::size_t>(payload.bytes()));
  }

  template <class T>
  T atomic_op(T* word, AtomicOp op, T operand, T expected, Scope scope, Order order, Site site) {
    static_assert(std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
    using Bits = std::make_unsigned_t<T>;  // a negative value of 4 bytes has no others
    return static_cast<T>(
        atomic(word, sizeof(T), op, static_cast<Bits>(operand), static_cast<Bits>(expected), scope, order, site));
  }

  template <class P>
  void send_packets(P* to, const void* from, Size bytes, Epoch epoch, Site site) {
    if (bytes <= 0) return;
    check_packets(to, packets_for<P>(bytes) * Size{sizeof(P)}, site);
    write_packets(to, pack_packets<P>(from, bytes, epoch), site);
  }
  template <class P>
  static Buffer pack_packets(const void* from, Size bytes, Epoch epoch) {
    const Size n = packets_for<P>(bytes);
    Buffer packets(n * Size{sizeof(P)});
    for (Size i = 0; i < n; ++i) {
      P packet{};
      packet.flag = static_cast<decltype(packet.flag)>(epoch);
      const Size at = i * Size{sizeof(packet.data)};
      if (from != nullptr)
        std::memcpy(&packet.data, static_cast<const std::byte*>(from) + at,
                    static_cast<std::size_t>(min(Size{sizeof(packet.data)}, bytes - at)));
      std::memcpy(packets.data() + i * Size{sizeof(P)}, &packet, sizeof(P));
    }
    return packets;
  }
  template <class P>
  static void unpack_packets(void* to, const P* from, Size bytes) {
    for (Size i = 0, at = 0; at < bytes; ++i, at += Size{sizeof(from->data)})
      std::memcpy(static_cast<std::byte*>(to) + at, &from[i].data,
                  static_cast<std::size_t>(min(Size{sizeof(from->data)}, bytes - at)));
  }
  template <class P>
  void wait_for_packets(const P* from, Size packets, Epoch epoch, Site site) {
    wait_packets(from, packets, sizeof(P), offsetof(P, flag), sizeof(P::flag), static_cast<decltype(P::flag)>(epoch),
                 site);
  }
};

}  // namespace tandem::sim
