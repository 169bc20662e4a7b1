#pragma once
/// The Block of a kernel that records: the operations of block.cuh, each with a record of its begin and end.
///
/// It is a separate compilation of a kernel, so the usual variant has no extra cost. One warp reads the timer and
/// writes the record; the others jump over that code. The recording warp waits for nothing more than without recording,
/// and no other warp waits for it.
///
/// A record thus shows what that warp observed. A load begins when it is issued, a store when its data is there, and
/// both last until the next operation. A wait ends when all words are there. Warps alternate in recording waits, and
/// loads and stores in which all of them take part, so that none falls behind. The first warp records all else.

#include <utility>

#include "tandem/impl/cuda/block.cuh"
#include "tandem/impl/cuda/profiler.cuh"

namespace tandem::cuda {

template <class Group>
struct WarpsOf;
template <int Threads, int Barrier, class P>
struct WarpsOf<Group<Threads, Barrier, P>> {
  static constexpr int kWarps = Threads / 32;
  static constexpr bool kIsRole = Barrier != 0;
};

/// The place of a role: its number from 1, its first warp, and its slots, every `step`th.
struct RolePlace {
  int role = 0;
  int first_warp = 0;
  unsigned first_slot = 0;
  unsigned step = 1;
};

/// `Base` is a Group: the block's, or that of a role.
template <class Base>
class Profiled : public Base {
 public:
  __device__ Profiled(const Base& base, const Profiler& profiler, const RolePlace& place = {})
      : Base(base),
        profiler_(profiler),
        place_(place),
        turn_(turn_of(threadIdx.x / 32 - static_cast<unsigned>(place.first_warp))),
        turn_bits_(turn_ == kNever ? kNever
                   : turn_ == 0    ? kHalf - 1
                                   : kWarps - 1) {}

  /// Slots and operations so far, the same in all threads of the block.
  __device__ RecordCount record_count() const { return {number_, number_ - left_out_}; }

  // --- memory
  // ---------------------------------------------------------------------------------------------------------

  template <class A, class T>
  __device__ auto load(const T* from, Range range) {
    const Subject subject = of_tile(RecordKind::kLoad, from, range);
    if constexpr (std::is_same_v<A, std::remove_const_t<T>>) {
      // The record comes after the loads are issued, so that it is written before the data is here.
      auto values = Base::template load<A>(from, range);
      add_begin(turn<T>(range), subject);
      hold(values);
      return values;
    } else {
      add_begin(turn<T>(range), subject);
      return Base::template load<A>(from, range);
    }
  }
  template <class U, class A, class T>
  __device__ auto load_as(const T* from, Range range) {
    add_begin(turn<T>(range), of_tile(RecordKind::kLoad, from, range));
    return Base::template load_as<U, A>(from, range);
  }
  template <class T>
  __device__ T load_scalar(const T* from) {
    add_begin(first(), {RecordKind::kLoad, from, sizeof(T)});
    return Base::load_scalar(from);
  }
  template <class T>
  __device__ auto load_few(const T* from, int count) {
    add_begin(first(), of_tile(RecordKind::kLoad, from, Range{0, count}));
    return Base::load_few(from, count);
  }
  template <class A, class T>
  __device__ auto load_reduce(Symm<T> from, Range range, ReduceOp op) {
    Subject subject = of_tile(RecordKind::kLoad, from.local(), range);
    subject.unit *= static_cast<unsigned>(this->num_pes());
    add_begin(turn<std::remove_const_t<T>>(range), subject);
    return Base::template load_reduce<A>(from, range, op);
  }
  template <class T, class Values>
  __device__ void store(T* to, Range range, const Values& values) {
    add_begin(turn<T>(range), of_tile(RecordKind::kStore, to, range), low_bits(values.raw(0)));
    Base::template store<T>(to, range, values);
  }
  template <class T>
  __device__ void store_scalar(T* to, T value) {
    recorded({RecordKind::kStore, to, sizeof(T)}, [&] { Base::store_scalar(to, value); });
  }
  template <class T>
  __device__ void copy(T* to, const std::type_identity_t<T>* from, Size count) {
    recorded(of_array(RecordKind::kCopy, to, {0, count}), [&] { Base::copy(to, from, count); });
  }
  /// Recorded like the barrier that it contains.
  template <class Values>
  __device__ auto sum(const Values& values) {
    return recorded({RecordKind::kSync}, [&] { return Base::sum(values); });
  }
  template <class Values>
  __device__ auto greatest(const Values& values) {
    return recorded({RecordKind::kSync}, [&] { return Base::greatest(values); });
  }
  template <int kGroup, class Values>
  __device__ auto group_greatest(const Values& values) {
    return recorded({RecordKind::kSync}, [&] { return Base::template group_greatest<kGroup>(values); });
  }
  template <int kGroup, class T, class Values>
  __device__ void store_group_firsts(T* to, const Values& values) {
    const Range groups{0, ceil_div(values.size(), kGroup)};
    recorded(of_tile(RecordKind::kStore, to, groups), [&] { Base::template store_group_firsts<kGroup>(to, values); });
  }
  template <int kGroup, class T, class Values>
  __device__ auto load_groups(const T* from, const Values& like) {
    add_begin(first(), of_tile(RecordKind::kLoad, from, Range{0, ceil_div(like.size(), kGroup)}));
    return Base::template load_groups<kGroup>(from, like);
  }
  template <class Values>
  __device__ auto exclusive_sum(const Values& values) {
    return recorded({RecordKind::kSync}, [&] { return Base::exclusive_sum(values); });
  }
  template <int kGroup, class Values>
  __device__ auto group_firsts(const Values& values) {
    return recorded({RecordKind::kSync}, [&] { return Base::template group_firsts<kGroup>(values); });
  }
  template <class Values>
  __device__ auto key_ranks(const Values& values, int keys) {
    return recorded({RecordKind::kSync}, [&] { return Base::key_ranks(values, keys); });
  }
  template <class Table, class Places>
  __device__ auto look_up(const Table& table, const Places& at) {
    return recorded({RecordKind::kSync}, [&] { return Base::look_up(table, at); });
  }
  __device__ auto column_sums(const std::int32_t* table, Range rows, Size columns) {
    return recorded(of_array(RecordKind::kLoad, table + rows.begin * columns, {0, rows.size() * columns}),
                    [&] { return Base::column_sums(table, rows, columns); });
  }
  template <class Values>
  __device__ auto pick(const Values& values, Size first, int count) {
    return recorded({RecordKind::kSync}, [&] { return Base::pick(values, first, count); });
  }
  template <class T, class Places, class Values>
  __device__ void store_at(T* to, const Places& at, const Values& values) {
    recorded(of_tile(RecordKind::kStore, to, {0, at.size()}), [&] { Base::store_at(to, at, values); });
  }

  // --- put and get
  // ------------------------------------------------------------------------------------------------------

  template <class T>
  __device__ void put(Symm<T> to, const std::type_identity_t<T>* from, Size count, int pe) {
    recorded(of_array(RecordKind::kPut, to.on(pe), {0, count}), [&] { Base::put(to, from, count, pe); });
  }
  template <class T>
  __device__ void put_nbi(Symm<T> to, const std::type_identity_t<T>* from, Size count, int pe) {
    recorded(of_array(RecordKind::kPut, to.on(pe), {0, count}), [&] { Base::put_nbi(to, from, count, pe); });
  }
  template <class T>
  __device__ void put_signal(Symm<T> to, const std::type_identity_t<T>* from, Size count, Signals word, Epoch value,
                             int pe, SignalOp op = SignalOp::kSet) {
    put(to, from, count, pe);
    notify(word, value, pe, op);
  }
  template <class T>
  __device__ void put_signal_nbi(Symm<T> to, const std::type_identity_t<T>* from, Size count, Signals word, Epoch value,
                                 int pe, SignalOp op = SignalOp::kSet) {
    put_signal(to, from, count, word, value, pe, op);
  }
  template <class T>
  __device__ void get(T* to, std::type_identity_t<Symm<const T>> from, Size count, int pe) {
    recorded(of_array(RecordKind::kGet, from.on(pe), {0, count}), [&] { Base::get(to, from, count, pe); });
  }
  template <class T>
  __device__ void get_nbi(T* to, std::type_identity_t<Symm<const T>> from, Size count, int pe) {
    recorded(of_array(RecordKind::kGet, from.on(pe), {0, count}), [&] { Base::get_nbi(to, from, count, pe); });
  }
  __device__ void fence() {
    recorded({RecordKind::kFence}, [&] { Base::fence(); });
  }
  __device__ void quiet() {
    recorded({RecordKind::kQuiet}, [&] { Base::quiet(); });
  }

  // --- signals
  // --------------------------------------------------------------------------------------------------------------

  __device__ void signal(Signals word, Epoch value, int pe, SignalOp op = SignalOp::kSet) {
    recorded({RecordKind::kSignal, word.on(pe), value, static_cast<unsigned>(op), 1},
             [&] { Base::signal(word, value, pe, op); });
  }
  __device__ void notify(Signals word, Epoch value, int pe, SignalOp op = SignalOp::kSet) {
    recorded({RecordKind::kSignal, word.on(pe), value, static_cast<unsigned>(op), 1},
             [&] { Base::notify(word, value, pe, op); });
  }
  __device__ void notify_all(Signals words, Epoch value) {
    const Signals own = this->slots(words) + this->pe();
    recorded({RecordKind::kSignalAll, own.local(), value, static_cast<unsigned>(SignalOp::kSet), 1},
             [&] { Base::notify_all(words, value); });
  }
  __device__ Token wait(Signals words, Size n, Epoch value) {
    const std::uint64_t begin = global_timer();
    const Token token = Base::wait(words, n, value);  // it has a barrier, so any warp knows the end afterwards
    add(turn(), {RecordKind::kWait, words.local(), value, static_cast<unsigned>(Cmp::kGe), n}, begin);
    return token;
  }
  __device__ Token wait_all(Signals words, Epoch value) { return wait(this->slots(words), this->num_pes(), value); }
  __device__ void signal_wait_until(Signals word, Cmp cmp, Epoch value) {
    recorded({RecordKind::kWait, word.local(), value, static_cast<unsigned>(cmp), 1},
             [&] { Base::signal_wait_until(word, cmp, value); });
  }
  __device__ bool signal_test(Signals word, Cmp cmp, Epoch value) {
    return recorded({RecordKind::kTest, word.local(), value, static_cast<unsigned>(cmp), 1},
                    [&] { return Base::signal_test(word, cmp, value); });
  }
  template <class... Count>
  __device__ Epoch next_epoch(Epochs epochs, Count... count) {
    return recorded({RecordKind::kAtomic, epochs.words + this->index(), sizeof(Epoch)},
                    [&] { return Base::next_epoch(epochs, count...); });
  }
  __device__ void sync() {
    recorded({RecordKind::kSync}, [&] { Base::sync(); });
  }

  // --- atomics
  // --------------------------------------------------------------------------------------------------------------

  template <class T>
  __device__ T fetch_add(T* word, T value, Scope scope = Scope::kSystem, Order order = Order::kAcqRel) {
    return recorded({RecordKind::kAtomic, word, sizeof(T)}, [&] { return Base::fetch_add(word, value, scope, order); });
  }
  template <class T>
  __device__ T exchange(T* word, T value, Scope scope = Scope::kSystem, Order order = Order::kAcqRel) {
    return recorded({RecordKind::kAtomic, word, sizeof(T)}, [&] { return Base::exchange(word, value, scope, order); });
  }
  template <class T>
  __device__ T compare_swap(T* word, T expected, T value, Scope scope = Scope::kSystem, Order order = Order::kAcqRel) {
    return recorded({RecordKind::kAtomic, word, sizeof(T)},
                    [&] { return Base::compare_swap(word, expected, value, scope, order); });
  }

  // --- packets
  // --------------------------------------------------------------------------------------------------------------

  template <class P, class T>
  __device__ void ll_put(Symm<P> to, const T* from, Size count, Epoch epoch, int pe) {
    recorded(of_packets<T>(RecordKind::kPacketPut, to.on(pe), count, epoch),
             [&] { Base::ll_put(to, from, count, epoch, pe); });
  }
  template <class T, class P, class Values>
  __device__ void ll_put_fragment(Symm<P> to, const Values& values, Epoch epoch, int pe) {
    recorded_from(timer_after(first(), low_bits(values.raw(0))),
                  of_packets<T>(RecordKind::kPacketPut, to.on(pe), values.size(), epoch),
                  [&] { Base::template ll_put_fragment<T>(to, values, epoch, pe); });
  }
  template <class T, class P, class Values>
  __device__ void ll_put_peers(Symm<P> to, const Values& values, Epoch epoch) {
    for (const int other : this->peers_from_self()) ll_put_fragment<T>(to, values, epoch, other);
  }
  template <class A, class T, class P>
  __device__ auto ll_get(const P* from, Size count, Epoch epoch) {
    return recorded(of_packets<T>(RecordKind::kPacketGet, from, count, epoch),
                    [&] { return Base::template ll_get<A, T>(from, count, epoch); });
  }
  /// One record for each PE's packets, as they arrive.
  template <class T, class Values, class P, class F>
  __device__ void ll_get_all(const Values& own, const P* from, Size stride, Epoch epoch, const F& on_pe) {
    std::uint64_t begin = global_timer();
    Base::template ll_get_all<T>(own, from, stride, epoch, [&](int pe, const auto& values) {
      if (pe != this->pe()) add(of_packets<T>(RecordKind::kPacketGet, from + pe * stride, own.size(), epoch), begin);
      on_pe(pe, values);
      begin = global_timer();
    });
  }
  /// Recorded as the wait for the packets of all parts.
  template <class Values>
  __device__ float sum_of_parts(const Values& values, LLPacket* packets, int part, int parts, Epoch epoch) {
    return recorded(of_packets<float>(RecordKind::kPacketGet, packets, parts, epoch),
                    [&] { return Base::sum_of_parts(values, packets, part, parts, epoch); });
  }
  template <class Values>
  __device__ float greatest_of_parts(const Values& values, LLPacket* packets, int part, int parts, Epoch epoch) {
    return recorded(of_packets<float>(RecordKind::kPacketGet, packets, parts, epoch),
                    [&] { return Base::greatest_of_parts(values, packets, part, parts, epoch); });
  }
  /// Two records: the wait for packets, and at the end their forwarding.
  template <class P>
  __device__ void ll_forward(Symm<P> to, const P* from, Size packets, Epoch epoch, int pe) {
    const Size bytes = packets * Size{sizeof(P::data)};
    recorded(of_packets<std::byte>(RecordKind::kPacketGet, from, bytes, epoch),
             [&] { Base::ll_forward(to, from, packets, epoch, pe); });
    recorded(of_packets<std::byte>(RecordKind::kPacketPut, to.on(pe), bytes, epoch), [] {});
  }

  // --- roles
  // ------------------------------------------------------------------------------------------------------------------

  template <int... Widths, class... F>
  __device__ void parallel(F&&... bodies) {
    run_roles<Widths...>(std::index_sequence_for<F...>{}, bodies...);
  }
  template <int Width, class F>
  __device__ void parallel_for(int n, F&& body) {
    lend();
    Base::template parallel_for<Width>(
        n, [&](auto& role, int i) { run_role(role, place_of(i, i * Width, n), [&](auto& own) { body(own, i); }); });
    take_back();
  }

 private:
  template <class T>
  __device__ static Subject of_array(RecordKind kind, const T* array, Range range) {
    return {kind, array + range.begin, static_cast<std::uint64_t>(range.size()), 0, 0, sizeof(T)};
  }
  /// For a fragment, whose size needs few bits.
  template <class T>
  __device__ static Subject of_tile(RecordKind kind, const T* array, Range range) {
    return {kind, array + range.begin, static_cast<std::uint32_t>(range.size()), 0, 0, sizeof(T)};
  }
  template <class T, class P>
  __device__ static Subject of_packets(RecordKind kind, const P* packets, Size count, Epoch epoch) {
    return {kind, packets, epoch << 32 | static_cast<std::uint32_t>(count * Size{sizeof(T)}), sizeof(P)};
  }

  __device__ unsigned slot() const { return kIsRole ? place_.first_slot + number_ * place_.step : number_; }
  /// The warp with `off` 0 writes; all threads count.
  __device__ void add(unsigned off, const Subject& subject, std::uint64_t begin) {
    profiler_.add(off, slot(), place_.role, subject, begin);
    ++number_;
  }
  __device__ void add(const Subject& subject, std::uint64_t begin) { add(first(), subject, begin); }
  /// An operation that lasts until the next one, from the time when `value` is known.
  __device__ void add_begin(unsigned off, const Subject& subject, std::uint32_t value = 0) {
    profiler_.add_begin(off, value, slot(), place_.role, subject);
    ++number_;
  }

  /// Returns 0 in the warp whose turn it is.
  __device__ unsigned turn() const {
    if constexpr (kInBits) return (turn_ ^ number_) & turn_bits_;
    return turn_ ^ number_ % kWarps;
  }
  /// Returns 0 in the first warp.
  __device__ unsigned first() const { return kInBits ? turn_ ^ kNever : turn_; }
  /// Returns 0 in the warp that records a load or store. If all warps take part in it, they alternate.
  template <class T>
  __device__ unsigned turn(Range range) const {
    return static_cast<int>(range.size()) < static_cast<int>(kWarps) * 32 * kWidth<T> ? first() : turn();
  }

  /// The first warp, which signals to peers, has no turn, and another one has two.
  __device__ static unsigned turn_of(unsigned warp) {
    if (!kInBits) return warp;
    return warp == 0 ? kNever : warp % kHalf == 0 ? 0 : warp;
  }

  template <class Operation>
  __device__ auto recorded(const Subject& subject, Operation operation) {
    return recorded_from(global_timer(), subject, operation);
  }
  template <class Operation>
  __device__ auto recorded_from(std::uint64_t begin, const Subject& subject, Operation operation) {
    if constexpr (std::is_void_v<decltype(operation())>) {
      operation();
      add(subject, begin);
    } else {
      auto result = operation();
      add(subject, begin);
      return result;
    }
  }
  /// Keeps uses of the values after this point.
  template <class Values>
  __device__ static void hold(Values& values) {
#pragma unroll
    for (int i = 0; i < 4 * Values::kVectors; ++i) asm volatile("" : "+r"(values.words(0)[i]));
  }
  template <class A>
  __device__ static std::uint32_t low_bits(const A& value) {
    std::uint32_t bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(A) < sizeof(bits) ? sizeof(A) : sizeof(bits));
    return bits;
  }

  /// Roles start and end with a barrier of the block. Each takes its own slots cyclically.
  __device__ void lend() {
    add_end();
    if (threadIdx.x == 0) profiler_.lend(number_);
  }
  __device__ void take_back() {
    const RecordCount count = profiler_.take_back();
    left_out_ += count.slots - number_ - count.operations;
    number_ = count.slots;
    __syncthreads();  // before the memory is lent again
  }

  template <int... Widths>
  __device__ RolePlace place_of(std::size_t number) const {
    constexpr int kWidths[] = {Widths...};
    int first_warp = 0;
    for (std::size_t before = 0; before < number; ++before) first_warp += kWidths[before];
    return place_of(static_cast<int>(number), first_warp, sizeof...(Widths));
  }
  __device__ RolePlace place_of(int number, int first_warp, int roles) const {
    return {number + 1, first_warp, number_ + static_cast<unsigned>(number), static_cast<unsigned>(roles)};
  }
  /// The function of a role: its body, with a block that records. (A struct, because nvcc does not expand packs in
  /// lambdas.)
  template <class F>
  struct RoleBody {
    Profiled& block;
    RolePlace place;
    F& body;
    template <class Role>
    __device__ void operator()(Role& role) const {
      block.run_role(role, place, body);
    }
  };
  template <int... Widths, std::size_t... Number, class... F>
  __device__ void run_roles(std::index_sequence<Number...>, F&... bodies) {
    lend();
    Base::template parallel<Widths...>(RoleBody<F>{*this, place_of<Widths...>(Number), bodies}...);
    take_back();
  }
  template <class Role, class F>
  __device__ void run_role(Role& role, const RolePlace& place, F&& body) {
    Profiled<Role> own(role, profiler_, place);
    body(own);
    own.end_role();
  }

  template <class>
  friend class Profiled;
  __device__ void end_role() {
    add_end();
    if (static_cast<int>(threadIdx.x) == place_.first_warp * 32)
      profiler_.add_role(place_.first_slot + (number_ - 1) * place_.step + 1, number_ - left_out_);
  }
  /// Ends an operation that lasted until this one.
  __device__ void add_end() {
    add_begin(first(), {RecordKind::kEnd});
    ++left_out_;
  }

  static constexpr unsigned kWarps = WarpsOf<Base>::kWarps;
  static constexpr bool kInBits = (kWarps & (kWarps - 1)) == 0;
  static constexpr unsigned kHalf = kWarps > 1 ? kWarps / 2 : 1;
  static constexpr unsigned kNever = kWarps > 1 ? 1U << 31 : 0;
  static constexpr bool kIsRole = WarpsOf<Base>::kIsRole;

  const Profiler& profiler_;
  const RolePlace place_;
  // This warp's turns are numbers whose `turn_bits_` are `turn_`.
  const unsigned turn_;
  const unsigned turn_bits_;
  unsigned number_ = 0;    // number of its next slot, the same in all threads
  unsigned left_out_ = 0;  // slots without an operation
};

}  // namespace tandem::cuda
