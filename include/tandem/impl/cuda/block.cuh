#pragma once
/// The Block of NVIDIA GPUs. tandem/block.h states the guarantees of each operation.
///
/// A `Group` is a thread block or, within `parallel`, the warps of a role. `threads()` is known at compile time, so
/// that loops over fragments unroll. Threads of a group synchronise only at its own barrier.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "tandem/impl/block_ops.h"
#include "tandem/impl/cuda/context.h"
#include "tandem/impl/cuda/ending.cuh"
#include "tandem/impl/cuda/fragment_place.cuh"
#include "tandem/impl/cuda/sum.cuh"
#include "tandem/impl/cuda/thread_copy.cuh"
#include "tandem/impl/cuda/waits.cuh"
#include "tandem/reduce_op.h"
#include "tandem/signal.h"

namespace tandem::cuda {

/// The barrier of roles that are compiled once for all of them: its number is known at run time.
inline constexpr int kBarrierOfRole = -1;

/// The number of a group's barrier: a part of its type, without memory, or known at run time.
template <int Barrier>
class BarrierNumber {
 public:
  __device__ explicit BarrierNumber(int) {}
  __device__ static int barrier() { return Barrier; }
};
template <>
class BarrierNumber<kBarrierOfRole> {
 public:
  __device__ explicit BarrierNumber(int number) : number_(number) {}
  __device__ int barrier() const { return number_; }

 private:
  const int number_;
};

/// `Barrier` is 0 for a whole block. `P` is the packet type of the kernel, or void.
template <int Threads, int Barrier = 0, class P = void>
class Group : public BlockOps<Group<Threads, Barrier, P>>, private BarrierNumber<Barrier> {
  using Place = FragmentPlace<Threads, P>;

 public:
  template <class T>
  static constexpr int kVectorsOf = Place::template kVectorsOf<T>;
  template <class A, class T>
  using FragmentFor = Fragment<A, kWidth<T>, kVectorsOf<T>>;
  template <class T>
  using FragmentOf = FragmentFor<T, T>;

  __device__ Group(const Context& context, int first_thread = 0, int barrier = Barrier)
      : BarrierNumber<Barrier>(barrier),
        context_(context),
        thread_(static_cast<int>(threadIdx.x) - first_thread),
        place_(thread_) {}
  __device__ ~Group() { store_epoch(); }

  __device__ int pe() const { return context_.team.me; }
  __device__ int num_pes() const { return context_.team.size; }
  __device__ int index() const { return static_cast<int>(blockIdx.x); }
  __device__ int count() const { return static_cast<int>(gridDim.x); }
  __device__ const Team& team() const { return context_.team; }
  __device__ bool reachable(int) const { return true; }
  __device__ bool has_multicast() const { return false; }

  template <class T>
  __device__ Tiles tiles(Range range) const {
    return {range, Place::template kElements<T>};
  }

  // --- memory
  // ---------------------------------------------------------------------------------------------------------

  template <class T>
  __device__ T* remote(Symm<T> symm, int pe) const {
    return symm.on(pe);
  }

  template <class A, class T>
  __device__ auto load(const T* from, Range range) {
    Raw<T, kVectorsOf<T>> raw;
    place_.load(raw, from, range);
    return raw.template as<A>(range.size(), place_.template valid<T>(range.size()));
  }

  template <class T>
  __device__ T load_scalar(const T* from) {
    static_assert(sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8);
    if constexpr (std::is_scalar_v<T>) {
      return *static_cast<const volatile T*>(from);
    } else {  // a volatile class cannot be copied
      const auto bits = *reinterpret_cast<const volatile WordOfSize<sizeof(T)>*>(from);
      T value;
      __builtin_memcpy(&value, &bits, sizeof(T));
      return value;
    }
  }

  /// Loads of four PEs are in flight at once. Values are reduced in PE order.
  template <class A, class T>
  __device__ auto load_reduce(Symm<T> from, Range range, ReduceOp op) {
    using Element = std::remove_const_t<T>;
    constexpr int kAtOnce = 4;
    Fragment<A, kWidth<Element>, kVectorsOf<Element>> result(range.size(),
                                                             place_.template valid<Element>(range.size()));
#pragma unroll 1
    for (int first = 0; first < num_pes(); first += kAtOnce) {
      Raw<Element, kVectorsOf<Element>> raw[kAtOnce];
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u)
        if (first + u < num_pes()) place_.template load<Element>(raw[u], from.on(first + u), range);
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        if (first + u >= num_pes()) break;
        const auto values = raw[u].template as<A>(range.size(), result.valid());
        result = first + u == 0 ? values : combine(op, result, values);
      }
    }
    return result;
  }

  template <class T, class A>
  __device__ void store(T* to, Range range, const Fragment<A, kWidth<T>, kVectorsOf<T>>& values) {
    place_.store(to, range, values);
  }
  /// Converts a fragment that comes from an array with elements of another size.
  template <class T, class A, int W, int V>
  requires(W != kWidth<T> || V != kVectorsOf<T>) __device__
      void store(T* to, Range range, const Fragment<A, W, V>& values) {
    place_.store_converted(to, range, values);
  }

  template <class T>
  __device__ void store_scalar(T* to, T value) {
    if (thread_ == 0) *to = value;
  }

  /// Threads take other elements in a copy than in loads and stores, so the block synchronises before and after it.
  template <class T>
  __device__ void copy(T* to, const std::type_identity_t<T>* from, Size count) {
    sync();
    copy_bytes<Threads>(thread_, reinterpret_cast<char*>(to), reinterpret_cast<const char*>(from),
                        count * Size{sizeof(T)});
    sync();
  }

  template <class A, int W, int V>
  __device__ auto combine(ReduceOp op, const Fragment<A, W, V>& a, const Fragment<A, W, V>& b) const {
    // The operation is uniform: one branch for the whole fragment.
    switch (op) {
      case ReduceOp::kProd:
        return a.zip(b, [](A x, A y) { return apply(ReduceOp::kProd, x, y); });
      case ReduceOp::kMin:
        return a.zip(b, [](A x, A y) { return apply(ReduceOp::kMin, x, y); });
      case ReduceOp::kMax:
        return a.zip(b, [](A x, A y) { return apply(ReduceOp::kMax, x, y); });
      default:
        return a.zip(b, [](A x, A y) { return apply(ReduceOp::kSum, x, y); });
    }
  }

  /// Adds each thread's own elements, then those of a warp, then the warps. The order depends on the layout only.
  template <class T, int W, int V>
  __device__ T sum(const Fragment<T, W, V>& values) {
    using Sum = impl::Arithmetic<T>;
    constexpr int kWarps = Threads / 32;
    const Sum own = sum_of_warp(place_.sum(values));
    sync();  // waits for readers of an earlier sum
    if constexpr (kWarps == 1) {
      return static_cast<T>(own);
    } else {
      __shared__ Sum of_roles[kRolesOfBody][kWarps];
      Sum* const of_warps = of_roles[place_of_role()];
      const int lane = thread_ % 32;
      if (lane == 0) of_warps[thread_ / 32] = own;
      sync();
      return static_cast<T>(sum_of_warp(lane < kWarps ? of_warps[lane] : Sum{}));
    }
  }
  template <class T, int W, int V>
  __device__ T greatest(const Fragment<T, W, V>& values) {
    constexpr int kWarps = Threads / 32;
    const T own = greatest_of_warp(greatest_of_thread(values));
    sync();  // waits for readers of an earlier value
    if constexpr (kWarps == 1) {
      return own;
    } else {
      __shared__ T of_roles[kRolesOfBody][kWarps];
      T* const of_warps = of_roles[place_of_role()];
      const int lane = thread_ % 32;
      if (lane == 0) of_warps[thread_ / 32] = own;
      sync();
      return greatest_of_warp(lane < kWarps ? of_warps[lane] : T{});
    }
  }
  /// The bits of floats that are not negative are ordered like the floats, with NaN above all.
  template <int kGroup, class T, int W, int V>
  __device__ auto group_greatest(const Fragment<T, W, V>& values) {
    static_assert(std::is_same_v<T, float> && kGroup % W == 0, "a vector lies within one group");
    constexpr int kGroups = (Layout<Threads, P>::kPlaces * W * V + kGroup - 1) / kGroup;
    __shared__ unsigned of_roles[kRolesOfBody][kGroups];
    unsigned* const of_groups = of_roles[place_of_role()];
    sync();  // waits for readers of an earlier call
    for (int i = thread_; i < kGroups; i += Threads) of_groups[i] = 0;
    sync();
    place_.each_vector(values, [&](int at, int u) {
      atomicMax(of_groups + at / kGroup, __float_as_uint(greatest_of_vector(values, at, u)));
    });
    sync();
    Fragment<T, W, V> result(values.size(), values.valid());
    place_.each_vector(values, [&](int at, int u) {
#pragma unroll
      for (int i = 0; i < W; ++i) result.set(u, i, __uint_as_float(of_groups[at / kGroup]));
    });
    return result;
  }
  template <int kGroup, class T, class A, int W, int V>
  __device__ void store_group_firsts(T* to, const Fragment<A, W, V>& values) {
    place_.each_vector(values, [&](int at, int u) {
      if (at % kGroup == 0) to[at / kGroup] = convert<T>(values.at(u, 0));
    });
  }
  template <int kGroup, class T, class A, int W, int V>
  __device__ auto load_groups(const T* from, const Fragment<A, W, V>& like) {
    static_assert(kGroup % W == 0, "a vector lies within one group");
    Fragment<T, W, V> result(like.size(), like.valid());
    place_.each_vector(like, [&](int at, int u) {
      const T value = load_scalar(from + at / kGroup);
#pragma unroll
      for (int i = 0; i < W; ++i) result.set(u, i, value);
    });
    return result;
  }

  /// Vectors of one number precede those of the next, and within it threads are in order.
  template <class T, int W, int V>
  __device__ auto exclusive_sum(const Fragment<T, W, V>& values) {
    constexpr int kWarps = Threads / 32;
    __shared__ T of_roles[kRolesOfBody][kWarps];
    T* const of_warps = of_roles[place_of_role()];
    const int size = static_cast<int>(values.size());
    T own[V] = {};
    place_.each_vector(values, [&](int at, int u) {
#pragma unroll
      for (int i = 0; i < W; ++i) own[u] += at + i < size ? values.at(u, i) : T{};
    });
    Fragment<T, W, V> result(values.size(), values.valid());
    T before{};
#pragma unroll
    for (int u = 0; u < V; ++u) {
      const T up_to_here = sum_up_to_lane(own[u]);
      sync();  // waits for readers of earlier sums
      if (thread_ % 32 == 31) of_warps[thread_ / 32] = up_to_here;
      sync();
      T sum = before + up_to_here - own[u];
#pragma unroll
      for (int warp = 0; warp < kWarps; ++warp) {
        sum += warp < thread_ / 32 ? of_warps[warp] : T{};
        before += of_warps[warp];
      }
#pragma unroll
      for (int i = 0; i < W; ++i) {
        result.set(u, i, sum);
        sum += values.at(u, i);
      }
    }
    return result;
  }
  template <class T, class A, int W, int V>
  __device__ void store_at(T* to, const Fragment<std::int32_t, W, V>& at, const Fragment<A, W, V>& values) {
    const int size = static_cast<int>(at.size());
    place_.each_vector(at, [&](int first, int u) {
#pragma unroll
      for (int i = 0; i < W; ++i)
        if (first + i < size && at.at(u, i) >= 0) to[at.at(u, i)] = convert<T>(values.at(u, i));
    });
  }

  // --- put and get
  // ------------------------------------------------------------------------------------------------------

  template <class T>
  __device__ void put(Symm<T> to, const std::type_identity_t<T>* from, Size count, int pe) {
    copy(to.on(pe), from, count);
  }
  template <class T>
  __device__ void put_nbi(Symm<T> to, const std::type_identity_t<T>* from, Size count, int pe) {
    copy(to.on(pe), from, count);
  }
  template <class T>
  __device__ void put_signal(Symm<T> to, const std::type_identity_t<T>* from, Size count, Signals word, Epoch value,
                             int pe, SignalOp op = SignalOp::kSet) {
    copy(to.on(pe), from, count);
    notify(word, value, pe, op);
  }
  template <class T>
  __device__ void put_signal_nbi(Symm<T> to, const std::type_identity_t<T>* from, Size count, Signals word, Epoch value,
                                 int pe, SignalOp op = SignalOp::kSet) {
    put_signal(to, from, count, word, value, pe, op);
  }
  template <class T>
  __device__ void get(T* to, std::type_identity_t<Symm<const T>> from, Size count, int pe) {
    copy(to, from.on(pe), count);
  }
  template <class T>
  __device__ void get_nbi(T* to, std::type_identity_t<Symm<const T>> from, Size count, int pe) {
    copy(to, from.on(pe), count);
  }
  __device__ void fence() { quiet(); }
  /// It comes after a barrier, so that one thread's signal follows the stores of all threads.
  __device__ void quiet() {
    sync();
    fence_system();
  }

  // --- signals
  // --------------------------------------------------------------------------------------------------------------

  __device__ void signal(Signals word, Epoch value, int pe, SignalOp op = SignalOp::kSet) {
    if (thread_ != 0) return;
    if (op == SignalOp::kSet)
      store_relaxed(&word.on(pe)->value, value);
    else
      add_relaxed(&word.on(pe)->value, value);
  }
  __device__ void notify(Signals word, Epoch value, int pe, SignalOp op = SignalOp::kSet) {
    sync();
    if (thread_ != 0) return;
    if (op == SignalOp::kSet)
      store_release(&word.on(pe)->value, value);
    else
      add_release(&word.on(pe)->value, value);
  }
  /// Loads whose values have been used are complete, so the barrier is enough.
  __device__ void signal_after_reads(Signals word, Epoch value, int pe) {
    sync();
    if (thread_ == 0) store_relaxed(&word.on(pe)->value, value);
  }
  /// One thread serves each peer, so that the releases run concurrently.
  __device__ void notify_all(Signals words, Epoch value) {
    sync();
    for (int i = thread_; i < num_pes(); i += Threads)
      store_release(&(this->slots(words) + pe()).on((pe() + i) % num_pes())->value, value);
  }
  __device__ Token wait(Signals words, Size n, Epoch value) {
    const Signal* const local = words.local();
    bool timed_out = false;
    for (Size i = thread_; i < n; i += Threads) timed_out = !poll(context_, local + i, Cmp::kGe, value) || timed_out;
    go_on_unless(timed_out);
    return {};
  }
  __device__ Token wait_all(Signals words, Epoch value) { return wait(this->slots(words), num_pes(), value); }
  __device__ void signal_wait_until(Signals word, Cmp cmp, Epoch value) {
    go_on_unless(thread_ == 0 && !poll(context_, word.local(), cmp, value));
  }
  __device__ bool signal_test(Signals word, Cmp cmp, Epoch value) {
    // All threads must take the same branch, so one thread tests.
    if constexpr (Barrier == 0)
      return __syncthreads_or(thread_ == 0 && compare(load_acquire(&word.local()->value), cmp, value));
    else
      return once(Order::kRelaxed, [&] { return compare(load_acquire(&word.local()->value), cmp, value); });
  }
  template <class T>
  __device__ T* consume_token(T* pointer, Token) const {
    fence_proxy_async();
    return pointer;
  }
  /// The word is written when the block ends. An earlier write would wait for the old value's load, which could
  /// otherwise overlap other loads.
  __device__ Epoch next_epoch(Epochs epochs, Epoch count = 1) {
    epoch_word_ = epochs.words + index() + zero_of_thread();
    wait_for_previous_grid();
    let_next_grid_start();
    const Epoch last = load_relaxed(epoch_word_);
    sync();  // all threads have read it
    last_taken_ = last + count;
    return last + 1;
  }
  __device__ void sync() {
    if constexpr (Barrier == 0)
      __syncthreads();
    else if constexpr (Threads == 32)
      __syncwarp();
    else
      named_barrier(this->barrier(), Threads);
  }

  // --- atomics
  // --------------------------------------------------------------------------------------------------------------

  template <class T>
  __device__ T fetch_add(T* word, T value, Scope = Scope::kSystem, Order order = Order::kAcqRel) {
    return once(order,
                [&] { return static_cast<T>(atomicAdd_system(unsigned_word(word), static_cast<Unsigned<T>>(value))); });
  }
  template <class T>
  __device__ T exchange(T* word, T value, Scope = Scope::kSystem, Order order = Order::kAcqRel) {
    return once(
        order, [&] { return static_cast<T>(atomicExch_system(unsigned_word(word), static_cast<Unsigned<T>>(value))); });
  }
  template <class T>
  __device__ T compare_swap(T* word, T expected, T value, Scope = Scope::kSystem, Order order = Order::kAcqRel) {
    return once(order, [&] {
      return static_cast<T>(
          atomicCAS_system(unsigned_word(word), static_cast<Unsigned<T>>(expected), static_cast<Unsigned<T>>(value)));
    });
  }

  // --- packets
  // --------------------------------------------------------------------------------------------------------------

  template <class Q, class T>
  __device__ void ll_put(Symm<Q> to, const T* from, Size count, Epoch epoch, int pe) {
    for (const Range tile : tiles<T>({0, count})) {
      Raw<T, kVectorsOf<T>> raw;
      place_.load(raw, from, tile);
      put_packets(to.on(pe) + packets_for<Q>(tile.begin * Size{sizeof(T)}), tile.size(), raw, epoch);
    }
  }
  template <class T, class Q, class A>
  __device__ void ll_put_fragment(Symm<Q> to, const Fragment<A, kWidth<T>, kVectorsOf<T>>& values, Epoch epoch,
                                  int pe) {
    put_packets(to.on(pe), values.size(), Raw<T, kVectorsOf<T>>::of(values), epoch);
  }
  template <class T, class Q, class A>
  __device__ void ll_put_peers(Symm<Q> to, const Fragment<A, kWidth<T>, kVectorsOf<T>>& values, Epoch epoch) {
    const auto raw = Raw<T, kVectorsOf<T>>::of(values);
    int other = pe();
#pragma unroll 1
    for (int step = 1; step < num_pes(); ++step) {
      other = other + 1 < num_pes() ? other + 1 : 0;
      put_packets(to.on(other), values.size(), raw, epoch);
    }
  }
  template <class A, class T, class Q>
  __device__ auto ll_get(const Q* from, Size count, Epoch epoch) {
    static_assert(kIsPacket<Q>, "a kernel's Packet says which packets it uses");
    Arrival<Q, T, Threads> arrival[1] = {{from, count, epoch, thread_}};
    receive(context_, epoch, arrival, 1);
    return arrival[0].raw().template as<A>(count, place_.template valid<T>(count));
  }
  /// The packets of several PEs are polled together, in one trip to memory.
  template <class T, class A, class Q, class F>
  __device__ void ll_get_all(const Fragment<A, kWidth<T>, kVectorsOf<T>>& own, const Q* from, Size stride, Epoch epoch,
                             const F& on_pe) {
    static_assert(kIsPacket<Q>, "a kernel's Packet says which packets it uses");
    constexpr int kAtOnce = Arrival<Q, T, Threads>::kAtOnce;
#pragma unroll 1
    for (int first = 0; first < num_pes(); first += kAtOnce) {
      Arrival<Q, T, Threads> arrivals[kAtOnce];
      unsigned wanted = 0;
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        arrivals[u] = {from + (first + u) * stride, own.size(), epoch, thread_};
        if (first + u < num_pes() && first + u != pe()) wanted |= 1U << u;
      }
      receive(context_, epoch, arrivals, wanted);
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        if (first + u >= num_pes()) break;
        on_pe(first + u, first + u == pe() ? own : arrivals[u].raw().template as<A>(own.size(), own.valid()));
      }
    }
  }

  /// Waits for packets and forwards them unchanged.
  __device__ void ll_forward(Symm<LLPacket> to, const LLPacket* from, Size packets, Epoch epoch, int pe) {
    const auto flag = static_cast<std::uint32_t>(epoch);
    for (Size i = Size{2} * thread_; i < packets; i += Size{2} * Threads) {
      const bool both = i + 1 < packets;
      const PacketPair got = poll_packets(context_, from + i, flag, both);
      if (both)
        store_packets(to.on(pe) + i, got);
      else
        store_relaxed(reinterpret_cast<std::uint64_t*>(to.on(pe) + i), got.packet[0]);
    }
  }

  __device__ void ll_forward(Symm<LL128Line> to, const LL128Line* from, Size packets, Epoch epoch, int pe) {
    constexpr Size kAtOnce = Threads / 8;
    for (Size first = 0; first < packets; first += kAtOnce) {
      const Size bytes = min(kAtOnce, packets - first) * Size{sizeof(LL128Line::data)};
      Arrival<LL128Line, std::byte, Threads> arrival[1] = {{from + first, bytes, epoch, thread_}};
      receive(context_, epoch, arrival, 1);
      arrival[0].pass_on(to.on(pe) + first);
    }
  }

  // --- multicast
  // ----------------------------------------------------------------------------------------------------------
  // There is no multicast, as has_multicast reports. A kernel that asks compiles; one that does not ask ends with an
  // error.

  template <class T, class Values>
  __device__ void multimem_store(Symm<T>, Range, const Values&) {
    __trap();
  }
  template <class A, class T>
  __device__ FragmentFor<A, std::remove_const_t<T>> multimem_load_reduce(Symm<T>, Range range, ReduceOp) {
    __trap();
    return FragmentFor<A, std::remove_const_t<T>>(range.size());
  }
  template <class T, class Values>
  __device__ void multimem_reduce(Symm<T>, Range, const Values&, ReduceOp) {
    __trap();
  }

  // --- roles
  // ------------------------------------------------------------------------------------------------------------------

  template <int... Widths, class... F>
  __device__ void parallel(F&&... bodies) {
    static_assert(Barrier == 0, "roles must not be nested");
    static_assert((Widths + ...) * 32 <= Threads && sizeof...(F) <= 15);
    __syncthreads();
    run_roles<0, 1, Widths...>(static_cast<F&&>(bodies)...);
    __syncthreads();
  }

  template <int Width, class F>
  __device__ void parallel_for(int n, F&& body) {
    static_assert(Barrier == 0, "roles must not be nested");
    __syncthreads();
    if (const int role = thread_ / (Width * 32); role < n) {
      Group<Width * 32, kBarrierOfRole, P> group(context_, role * Width * 32, role + 1);
      body(group, role);
    }
    __syncthreads();
  }

 protected:
  const Context& context_;
  const int thread_;

 private:
  template <class T, int W, int V>
  __device__ static T greatest_of_vector(const Fragment<T, W, V>& values, int at, int u) {
    T most{};
#pragma unroll
    for (int i = 0; i < W; ++i)
      if (at + i < static_cast<int>(values.size())) most = apply(ReduceOp::kMax, most, values.at(u, i));
    return most;
  }
  template <class T, int W, int V>
  __device__ T greatest_of_thread(const Fragment<T, W, V>& values) const {
    T most{};
    place_.each_vector(values,
                       [&](int at, int u) { most = apply(ReduceOp::kMax, most, greatest_of_vector(values, at, u)); });
    return most;
  }

  /// Roles that share one compiled body, and so its shared memory, in which each has a place of its own.
  static constexpr int kRolesOfBody = Barrier == kBarrierOfRole ? std::min(15, 1024 / Threads) : 1;
  __device__ int place_of_role() const {
    if constexpr (Barrier == kBarrierOfRole) {
      return this->barrier() - 1;
    } else {
      return 0;
    }
  }

  template <class Q>
  static constexpr bool kIsPacket = std::is_same_v<P, Q>;
  template <class T>
  using Unsigned = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>;
  template <class T>
  __device__ static Unsigned<T>* unsigned_word(T* word) {
    static_assert(std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
    return reinterpret_cast<Unsigned<T>*>(word);
  }

  /// Runs it on one thread and gives all threads the result.
  template <class F>
  __device__ auto once(Order order, F operation) {
    __shared__ unsigned long long results[16];
    unsigned long long& result = results[this->barrier()];
    sync();
    if (thread_ == 0) {
      if (order == Order::kRelease || order == Order::kAcqRel) fence_system();
      result = static_cast<unsigned long long>(operation());
      if (order == Order::kAcquire || order == Order::kAcqRel) fence_system();
    }
    sync();
    const auto value = static_cast<decltype(operation())>(result);
    sync();  // all threads have read it
    return value;
  }

  /// A barrier after a wait. If one thread of the group timed out, all threads end here. Later code would read data
  /// that did not arrive, and write to peers that do not expect it. Kernels of packets continue, as in `receive`.
  __device__ void go_on_unless(bool timed_out) {
    if constexpr (!std::is_void_v<P>) {
      sync();
    } else if (any_of_group(timed_out)) {
      store_epoch();  // later work in the stream waits for this call, too
      end_threads();
    }
  }
  /// A barrier that returns whether the condition holds for any thread.
  __device__ bool any_of_group(bool mine) {
    if constexpr (Barrier == 0) {
      return __syncthreads_or(mine) != 0;
    } else if constexpr (Threads == 32) {
      __syncwarp();
      return __any_sync(~0U, mine) != 0;
    } else {
      return named_barrier_or(this->barrier(), Threads, mine);
    }
  }
  __device__ void store_epoch() const {
    if (epoch_word_ != nullptr && thread_ == 0) store_relaxed(epoch_word_, last_taken_);
  }

  template <class Q, class T>
  __device__ void put_packets(Q* to, Size count, const Raw<T, 1>& raw, Epoch epoch) const {
    static_assert(kIsPacket<Q>, "a kernel's Packet says which packets it uses");
    Arrival<Q, T, Threads>::put(to, count, raw, epoch, thread_);
  }

  template <int FirstWarp, int Id, int Width, int... Rest, class F, class... G>
  __device__ void run_roles(F&& body, G&&... others) {
    const int warp = thread_ / 32;
    if (warp >= FirstWarp && warp < FirstWarp + Width) {
      Group<Width * 32, Id, P> role(context_, FirstWarp * 32);
      body(role);
    }
    if constexpr (sizeof...(G) > 0) run_roles<FirstWarp + Width, Id + 1, Rest...>(static_cast<G&&>(others)...);
  }

  const Place place_;  // of this thread's elements in a fragment
  Epoch* epoch_word_ = nullptr;
  Epoch last_taken_ = 0;
};

template <int Threads, class P = void>
using Block = Group<Threads, 0, P>;

}  // namespace tandem::cuda
