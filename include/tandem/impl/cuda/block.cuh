#pragma once
/// The Block of NVIDIA GPUs. tandem/block.h states the guarantees of each operation.
///
/// A `Group` is a thread block or, within `parallel`, the warps of a role. `threads()` is known at compile time, so
/// that loops over fragments unroll. Threads of a group synchronise only at its own barrier.
///
/// Its operations lie in block/, where each class adds some to the one before:
///
///   state.cuh      place in the team and the grid, barriers, epochs
///   memory.cuh     loads, stores, copies, multicast; few.cuh: a few scalars
///   sums.cuh       sums, maxima and prefix sums over fragments
///   keys.cuh       ranks by keys, tables, elements for all threads
///   signals.cuh    signals, waits, puts, gets, atomics
///   packets.cuh    packets, which are their own signal

#include "tandem/impl/cuda/block/packets.cuh"

namespace tandem::cuda {

/// `Barrier` is 0 for a whole block. `P` is the packet type of the kernel, or void.
template <int Threads, int Barrier = 0, class P = void>
class Group : public GroupPackets<Threads, Barrier, P> {
 public:
  using GroupPackets<Threads, Barrier, P>::GroupPackets;

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
    if (const int role = this->thread_ / (Width * 32); role < n) {
      Group<Width * 32, kBarrierOfRole, P> group(this->context_, role * Width * 32, role + 1);
      body(group, role);
    }
    __syncthreads();
  }

 private:
  template <int FirstWarp, int Id, int Width, int... Rest, class F, class... G>
  __device__ void run_roles(F&& body, G&&... others) {
    const int warp = this->thread_ / 32;
    if (warp >= FirstWarp && warp < FirstWarp + Width) {
      Group<Width * 32, Id, P> role(this->context_, FirstWarp * 32);
      body(role);
    }
    if constexpr (sizeof...(G) > 0) run_roles<FirstWarp + Width, Id + 1, Rest...>(static_cast<G&&>(others)...);
  }
};

template <int Threads, class P = void>
using Block = Group<Threads, 0, P>;

}  // namespace tandem::cuda
