#pragma once
/// Signals and waits of a GPU's block, puts and gets, and atomics.

#include <type_traits>

#include "tandem/impl/cuda/block/keys.cuh"

namespace tandem::cuda {

/// Adds signals, puts, gets and atomics.
template <int Threads, int Barrier, class P>
class GroupSignals : public GroupKeys<Threads, Barrier, P> {
 public:
  using GroupKeys<Threads, Barrier, P>::GroupKeys;

  __device__ void signal(Signals word, Epoch value, int pe, SignalOp op = SignalOp::kSet) {
    if (this->thread_ != 0) return;
    if (op == SignalOp::kSet)
      store_relaxed(&word.on(pe)->value, value);
    else
      add_relaxed(&word.on(pe)->value, value);
  }
  __device__ void notify(Signals word, Epoch value, int pe, SignalOp op = SignalOp::kSet) {
    this->sync();
    if (this->thread_ != 0) return;
    if (op == SignalOp::kSet)
      store_release(&word.on(pe)->value, value);
    else
      add_release(&word.on(pe)->value, value);
  }
  /// Loads whose values have been used are complete, so the barrier is enough.
  __device__ void signal_after_reads(Signals word, Epoch value, int pe) {
    this->sync();
    if (this->thread_ == 0) store_relaxed(&word.on(pe)->value, value);
  }
  /// One thread serves each peer, so that the releases run concurrently.
  __device__ void notify_all(Signals words, Epoch value) {
    this->sync();
    for (int i = this->thread_; i < this->num_pes(); i += Threads)
      store_release(&(this->slots(words) + this->pe()).on((this->pe() + i) % this->num_pes())->value, value);
  }
  __device__ Token wait(Signals words, Size n, Epoch value) {
    const Signal* const local = words.local();
    bool timed_out = false;
    for (Size i = this->thread_; i < n; i += Threads)
      timed_out = !poll(this->context_, local + i, Cmp::kGe, value) || timed_out;
    this->go_on_unless(timed_out);
    return {};
  }
  __device__ Token wait_all(Signals words, Epoch value) { return wait(this->slots(words), this->num_pes(), value); }
  __device__ void signal_wait_until(Signals word, Cmp cmp, Epoch value) {
    this->go_on_unless(this->thread_ == 0 && !poll(this->context_, word.local(), cmp, value));
  }
  __device__ bool signal_test(Signals word, Cmp cmp, Epoch value) {
    // All threads must take the same branch, so one thread tests.
    if constexpr (Barrier == 0)
      return __syncthreads_or(this->thread_ == 0 && compare(load_acquire(&word.local()->value), cmp, value));
    else
      return this->once(Order::kRelaxed, [&] { return compare(load_acquire(&word.local()->value), cmp, value); });
  }
  template <class T>
  __device__ T* consume_token(T* pointer, Token) const {
    fence_proxy_async();
    return pointer;
  }

  template <class T>
  __device__ void put(Symm<T> to, const std::type_identity_t<T>* from, Size count, int pe) {
    this->copy(to.on(pe), from, count);
  }
  template <class T>
  __device__ void put_nbi(Symm<T> to, const std::type_identity_t<T>* from, Size count, int pe) {
    this->copy(to.on(pe), from, count);
  }
  template <class T>
  __device__ void put_signal(Symm<T> to, const std::type_identity_t<T>* from, Size count, Signals word, Epoch value,
                             int pe, SignalOp op = SignalOp::kSet) {
    this->copy(to.on(pe), from, count);
    notify(word, value, pe, op);
  }
  template <class T>
  __device__ void put_signal_nbi(Symm<T> to, const std::type_identity_t<T>* from, Size count, Signals word, Epoch value,
                                 int pe, SignalOp op = SignalOp::kSet) {
    put_signal(to, from, count, word, value, pe, op);
  }
  template <class T>
  __device__ void get(T* to, std::type_identity_t<Symm<const T>> from, Size count, int pe) {
    this->copy(to, from.on(pe), count);
  }
  template <class T>
  __device__ void get_nbi(T* to, std::type_identity_t<Symm<const T>> from, Size count, int pe) {
    this->copy(to, from.on(pe), count);
  }
  __device__ void fence() { quiet(); }
  /// It comes after a barrier, so that one thread's signal follows the stores of all threads.
  __device__ void quiet() {
    this->sync();
    fence_system();
  }

  template <class T>
  __device__ T fetch_add(T* word, T value, Scope = Scope::kSystem, Order order = Order::kAcqRel) {
    return this->once(
        order, [&] { return static_cast<T>(atomicAdd_system(unsigned_word(word), static_cast<Unsigned<T>>(value))); });
  }
  template <class T>
  __device__ T exchange(T* word, T value, Scope = Scope::kSystem, Order order = Order::kAcqRel) {
    return this->once(
        order, [&] { return static_cast<T>(atomicExch_system(unsigned_word(word), static_cast<Unsigned<T>>(value))); });
  }
  template <class T>
  __device__ T compare_swap(T* word, T expected, T value, Scope = Scope::kSystem, Order order = Order::kAcqRel) {
    return this->once(order, [&] {
      return static_cast<T>(
          atomicCAS_system(unsigned_word(word), static_cast<Unsigned<T>>(expected), static_cast<Unsigned<T>>(value)));
    });
  }

 private:
  template <class T>
  using Unsigned = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>;
  template <class T>
  __device__ static Unsigned<T>* unsigned_word(T* word) {
    static_assert(std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
    return reinterpret_cast<Unsigned<T>*>(word);
  }
};

}  // namespace tandem::cuda
