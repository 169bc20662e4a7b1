#pragma once
/// The base of a GPU's block: its place in the team and the grid, its barriers, and the epoch of a call.

#include <algorithm>
#include <type_traits>

#include "tandem/impl/block_ops.h"
#include "tandem/impl/cuda/context.h"
#include "tandem/impl/cuda/ending.cuh"
#include "tandem/impl/cuda/fragment_place.cuh"
#include "tandem/impl/cuda/waits.cuh"
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

template <int Threads, int Barrier, class P>
class Group;

/// `Barrier` is 0 for a whole block. `P` is the packet type of the kernel, or void.
template <int Threads, int Barrier, class P>
class GroupState : public BlockOps<Group<Threads, Barrier, P>>, private BarrierNumber<Barrier> {
  using Place = FragmentPlace<Threads, P>;

 public:
  __device__ GroupState(const Context& context, int first_thread = 0, int barrier = Barrier)
      : BarrierNumber<Barrier>(barrier),
        context_(context),
        thread_(static_cast<int>(threadIdx.x) - first_thread),
        place_(thread_) {}
  __device__ ~GroupState() { store_epoch(); }

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

 protected:
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

  /// Roles that share one compiled body, and so its shared memory, in which each has a place of its own.
  static constexpr int kRolesOfBody = Barrier == kBarrierOfRole ? std::min(15, 1024 / Threads) : 1;
  __device__ int place_of_role() const {
    if constexpr (Barrier == kBarrierOfRole) {
      return this->barrier() - 1;
    } else {
      return 0;
    }
  }

  const Context& context_;
  const int thread_;
  const Place place_;  // of this thread's elements in a fragment

 private:
  __device__ void store_epoch() const {
    if (epoch_word_ != nullptr && thread_ == 0) store_relaxed(epoch_word_, last_taken_);
  }

  Epoch* epoch_word_ = nullptr;
  Epoch last_taken_ = 0;
};

}  // namespace tandem::cuda
