#pragma once
/// Sums and maxima over the elements of fragments, by all threads of a GPU's block.

#include <type_traits>

#include "tandem/impl/cuda/block/memory.cuh"
#include "tandem/impl/cuda/sum.cuh"
#include "tandem/reduce_op.h"

namespace tandem::cuda {

/// Adds operations over all elements of a fragment.
template <int Threads, int Barrier, class P>
class GroupSums : public GroupMemory<Threads, Barrier, P> {
 public:
  using GroupMemory<Threads, Barrier, P>::GroupMemory;

  /// Adds each thread's own elements, then those of a warp, then the warps. The order depends on the layout only.
  template <class T, int W, int V>
  __device__ T sum(const Fragment<T, W, V>& values) {
    using Sum = impl::Arithmetic<T>;
    constexpr int kWarps = Threads / 32;
    const Sum own = sum_of_warp(this->place_.sum(values));
    this->sync();  // waits for readers of an earlier sum
    if constexpr (kWarps == 1) {
      return static_cast<T>(own);
    } else {
      __shared__ Sum of_roles[GroupSums::kRolesOfBody][kWarps];
      Sum* const of_warps = of_roles[this->place_of_role()];
      const int lane = this->thread_ % 32;
      if (lane == 0) of_warps[this->thread_ / 32] = own;
      this->sync();
      return static_cast<T>(sum_of_warp(lane < kWarps ? of_warps[lane] : Sum{}));
    }
  }
  template <class T, int W, int V>
  __device__ T greatest(const Fragment<T, W, V>& values) {
    constexpr int kWarps = Threads / 32;
    const T own = greatest_of_warp(greatest_of_thread(values));
    this->sync();  // waits for readers of an earlier value
    if constexpr (kWarps == 1) {
      return own;
    } else {
      __shared__ T of_roles[GroupSums::kRolesOfBody][kWarps];
      T* const of_warps = of_roles[this->place_of_role()];
      const int lane = this->thread_ % 32;
      if (lane == 0) of_warps[this->thread_ / 32] = own;
      this->sync();
      return greatest_of_warp(lane < kWarps ? of_warps[lane] : T{});
    }
  }
  /// The bits of floats that are not negative are ordered like the floats, with NaN above all.
  template <int kGroup, class T, int W, int V>
  __device__ auto group_greatest(const Fragment<T, W, V>& values) {
    static_assert(std::is_same_v<T, float> && kGroup % W == 0, "a vector lies within one group");
    Fragment<T, W, V> result(values.size(), values.valid());
    if constexpr (!std::is_same_v<P, LL128Line> && 32 % (kGroup / W) == 0) {
      greatest_of_lanes<kGroup / W>(values, result);
      this->sync();
    } else {
      greatest_of_threads<kGroup>(values, result);
    }
    return result;
  }
  template <int kGroup, class T, class A, int W, int V>
  __device__ void store_group_firsts(T* to, const Fragment<A, W, V>& values) {
    this->place_.each_vector(values, [&](int at, int u) {
      if (at % kGroup == 0) to[at / kGroup] = convert<T>(values.at(u, 0));
    });
  }
  template <int kGroup, class T, class A, int W, int V>
  __device__ auto load_groups(const T* from, const Fragment<A, W, V>& like) {
    static_assert(kGroup % W == 0, "a vector lies within one group");
    Fragment<T, W, V> result(like.size(), like.valid());
    this->place_.each_vector(like, [&](int at, int u) {
      const T value = this->load_scalar(from + at / kGroup);
#pragma unroll
      for (int i = 0; i < W; ++i) result.set(u, i, value);
    });
    return result;
  }

  /// Vectors of one number precede those of the next, and within it threads are in order.
  template <class T, int W, int V>
  __device__ auto exclusive_sum(const Fragment<T, W, V>& values) {
    constexpr int kWarps = Threads / 32;
    __shared__ T of_roles[GroupSums::kRolesOfBody][kWarps];
    T* const of_warps = of_roles[this->place_of_role()];
    const int size = static_cast<int>(values.size());
    T own[V] = {};
    this->place_.each_vector(values, [&](int at, int u) {
#pragma unroll
      for (int i = 0; i < W; ++i) own[u] += at + i < size ? values.at(u, i) : T{};
    });
    Fragment<T, W, V> result(values.size(), values.valid());
    T before{};
#pragma unroll
    for (int u = 0; u < V; ++u) {
      const T up_to_here = sum_up_to_lane(own[u]);
      this->sync();  // waits for readers of earlier sums
      if (this->thread_ % 32 == 31) of_warps[this->thread_ / 32] = up_to_here;
      this->sync();
      T sum = before + up_to_here - own[u];
#pragma unroll
      for (int warp = 0; warp < kWarps; ++warp) {
        sum += warp < this->thread_ / 32 ? of_warps[warp] : T{};
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

 private:
  /// For groups that neighbouring lanes of one warp hold.
  template <int kLanes, int W, int V>
  __device__ void greatest_of_lanes(const Fragment<float, W, V>& values, Fragment<float, W, V>& result) const {
    const int size = static_cast<int>(values.size());
#pragma unroll
    for (int u = 0; u < V; ++u) {
      const int at = (u * Threads + this->thread_) * W;
      unsigned most = at < size ? __float_as_uint(greatest_of_vector(values, at, u)) : 0;
#pragma unroll
      for (int distance = kLanes / 2; distance > 0; distance /= 2)
        most = ::max(most, __shfl_xor_sync(~0U, most, distance));
#pragma unroll
      for (int i = 0; i < W; ++i) result.set(u, i, __uint_as_float(most));
    }
  }
  /// For groups that any threads hold.
  template <int kGroup, int W, int V>
  __device__ void greatest_of_threads(const Fragment<float, W, V>& values, Fragment<float, W, V>& result) {
    constexpr int kGroups = (Layout<Threads, P>::kPlaces * W * V + kGroup - 1) / kGroup;
    __shared__ unsigned of_roles[GroupSums::kRolesOfBody][kGroups];
    unsigned* const of_groups = of_roles[this->place_of_role()];
    this->sync();  // waits for readers of an earlier call
    for (int i = this->thread_; i < kGroups; i += Threads) of_groups[i] = 0;
    this->sync();
    this->place_.each_vector(values, [&](int at, int u) {
      atomicMax(of_groups + at / kGroup, __float_as_uint(greatest_of_vector(values, at, u)));
    });
    this->sync();
    this->place_.each_vector(values, [&](int at, int u) {
#pragma unroll
      for (int i = 0; i < W; ++i) result.set(u, i, __uint_as_float(of_groups[at / kGroup]));
    });
  }
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
    this->place_.each_vector(
        values, [&](int at, int u) { most = apply(ReduceOp::kMax, most, greatest_of_vector(values, at, u)); });
    return most;
  }
};

}  // namespace tandem::cuda
