#pragma once
/// The Block of a kernel that is recorded: the operations of block.cuh, each with a record of when it began and ended.
///
/// A kernel is compiled with it apart from its usual form, which therefore costs nothing more. One thread reads the
/// timer and writes the record, without a branch; nobody waits for it, and it waits for nothing that it would not wait
/// for anyway. So a record tells what that thread's warp saw: loads, stores and puts end when they were issued, waits
/// when all words are there. What a load takes is the time to the next operation. The warps of a block or role take
/// turns with loads and stores in which all of them have a part, so that none falls behind the others; all else is the
/// first one's.

#include <utility>

#include "tandem/impl/cuda/block.cuh"
#include "tandem/impl/cuda/recorder.cuh"

namespace tandem::cuda {

template <class Group>
struct WarpsOf;
template <int Threads, int Barrier, class P>
struct WarpsOf<Group<Threads, Barrier, P>> {
  static constexpr int kWarps = Threads / 32;
  static constexpr bool kIsRole = Barrier != 0;
};

/// `Base` is a Group: the block's, or that of a role.
template <class Base>
class Recorded : public Base {
 public:
  /// `role` from 1, `first_thread` of the block.
  __device__ Recorded(const Base& base, Recorder& recorder, int role = 0, int first_thread = 0)
      : Base(base),
        recorder_(recorder),
        role_(role),
        warp_(threadIdx.x % 32 == 0 ? (static_cast<int>(threadIdx.x) - first_thread) / 32 : kNoWarp),
        records_(warp_ == 0) {}

  /// How many there have been; alike in all threads of the block.
  __device__ unsigned operations() const { return number_; }

  // --- memory
  // ---------------------------------------------------------------------------------------------------------

  template <class A, class T>
  __device__ auto load(const T* from, Range range) {
    return recorded_in_turn(of_array(RecordKind::kLoad, from, range), is_for_all<T>(range),
                            [&] { return Base::template load<A>(from, range); });
  }
  template <class T>
  __device__ T load_scalar(const T* from) {
    return recorded({RecordKind::kLoad, from, sizeof(T)}, [&] { return Base::load_scalar(from); });
  }
  template <class A, class T>
  __device__ auto load_reduce(Symm<T> from, Range range, ReduceOp op) {
    Subject subject = of_array(RecordKind::kLoad, from.local(), range);
    subject.payload *= static_cast<unsigned>(this->num_pes());
    return recorded_in_turn(subject, is_for_all<std::remove_const_t<T>>(range),
                            [&] { return Base::template load_reduce<A>(from, range, op); });
  }
  template <class T, class Values>
  __device__ void store(T* to, Range range, const Values& values) {
    recorded_with(values, of_array(RecordKind::kStore, to, range), is_for_all<T>(range),
                  [&] { Base::template store<T>(to, range, values); });
  }
  template <class T>
  __device__ void store_scalar(T* to, T value) {
    recorded({RecordKind::kStore, to, sizeof(T)}, [&] { Base::store_scalar(to, value); });
  }
  template <class T>
  __device__ void copy(T* to, const std::type_identity_t<T>* from, Size count) {
    recorded(of_array(RecordKind::kCopy, to, {0, count}), [&] { Base::copy(to, from, count); });
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
    return recorded({RecordKind::kWait, words.local(), value, static_cast<unsigned>(Cmp::kGe), n},
                    [&] { return Base::wait(words, n, value); });
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
    recorded_with(values, of_packets<T>(RecordKind::kPacketPut, to.on(pe), values.size(), epoch), false,
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
  /// A record for each PE's packets, as they come.
  template <class T, class Values, class P, class F>
  __device__ void ll_get_all(const Values& own, const P* from, Size stride, Epoch epoch, const F& on_pe) {
    std::uint64_t begin = timer_if(records_);
    Base::template ll_get_all<T>(own, from, stride, epoch, [&](int pe, const auto& values) {
      if (pe != this->pe())
        add(records_, of_packets<T>(RecordKind::kPacketGet, from + pe * stride, own.size(), epoch), begin);
      on_pe(pe, values);
      begin = timer_if(records_);
    });
  }
  /// Two records: packets were waited for, and (at the end) passed on.
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
    Base::template parallel_for<Width>(n, [&](auto& role, int i) {
      run_role(role, Place{i + 1, i * Width}, [&](auto& own) { body(own, i); });
    });
    take_back();
  }

 private:
  template <class T>
  __device__ static Subject of_array(RecordKind kind, const T* array, Range range) {
    return {kind, array + range.begin, static_cast<std::uint64_t>(range.size()) * sizeof(T)};
  }
  template <class T, class P>
  __device__ static Subject of_packets(RecordKind kind, const P* packets, Size count, Epoch epoch) {
    return {kind, packets, epoch << 32 | static_cast<std::uint32_t>(count * Size{sizeof(T)}), sizeof(P)};
  }

  /// By the thread that `records`; all threads count.
  __device__ void add(bool records, const Subject& subject, std::uint64_t begin) {
    if constexpr (!kIsRole)
      recorder_.add(records, number_, subject, begin);
    else if (records)
      recorder_.add_from_role(role_, subject, begin);
    ++number_;
  }

  /// Whether every warp has a part in a load or store.
  template <class T>
  __device__ static bool is_for_all(Range range) {
    return range.size() >= Size{kWarps * 32} * kWidth<T>;
  }
  /// Whether this thread records the next operation.
  __device__ bool is_on_turn(bool for_all) const {
    return for_all ? warp_ == static_cast<int>(number_ % kWarps) : records_;
  }

  template <class Operation>
  __device__ auto recorded(const Subject& subject, Operation operation) {
    return recorded_from(records_, timer_if(records_), subject, operation);
  }
  template <class Operation>
  __device__ auto recorded_in_turn(const Subject& subject, bool for_all, Operation operation) {
    const bool records = is_on_turn(for_all);
    return recorded_from(records, timer_if(records), subject, operation);
  }
  /// The same from when the first of the values is known, which this warp is about to wait for anyway: until then it
  /// was loading and computing.
  template <class Values, class Operation>
  __device__ void recorded_with(const Values& values, const Subject& subject, bool for_all, Operation operation) {
    const bool records = is_on_turn(for_all);
    recorded_from(records, timer_after(records, low_bits(values.raw(0))), subject, operation);
  }
  template <class Operation>
  __device__ auto recorded_from(bool records, std::uint64_t begin, const Subject& subject, Operation operation) {
    if constexpr (std::is_void_v<decltype(operation())>) {
      operation();
      add(records, subject, begin);
    } else {
      auto result = operation();
      add(records, subject, begin);
      return result;
    }
  }
  template <class A>
  __device__ static std::uint32_t low_bits(const A& value) {
    std::uint32_t bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(A) < sizeof(bits) ? sizeof(A) : sizeof(bits));
    return bits;
  }

  /// Roles count together; they begin and end with a barrier of the block.
  __device__ void lend() const {
    if (threadIdx.x == 0) recorder_.lend(number_);
  }
  __device__ void take_back() {
    number_ = recorder_.take_back();
    __syncthreads();  // before it is lent again
  }

  /// Where a role stands: its number from 1, and its first warp.
  struct Place {
    int role;
    int warp;
  };
  template <int... Widths>
  __device__ static constexpr Place place_of(std::size_t number) {
    constexpr int kWidths[] = {Widths...};
    Place place{static_cast<int>(number) + 1, 0};
    for (std::size_t before = 0; before < number; ++before) place.warp += kWidths[before];
    return place;
  }
  /// What a role runs: its body, with a block that records. (A struct since nvcc does not expand packs in lambdas.)
  template <class F>
  struct RoleBody {
    Recorded& block;
    Place place;
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
  __device__ void run_role(Role& role, const Place& place, F&& body) {
    Recorded<Role> own(role, recorder_, place.role, place.warp * 32);
    body(own);
  }

  static constexpr int kWarps = WarpsOf<Base>::kWarps;
  static constexpr bool kIsRole = WarpsOf<Base>::kIsRole;
  static constexpr int kNoWarp = -1;

  Recorder& recorder_;
  const int role_;
  const int warp_;       // of the group; kNoWarp: not a warp's first thread
  const bool records_;   // all but what warps take turns with
  unsigned number_ = 0;  // operations so far, alike in all threads
};

}  // namespace tandem::cuda
