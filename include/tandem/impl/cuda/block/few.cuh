#pragma once
/// A few scalars, one in each lane of a warp; see FewContract. All lanes of a warp take part in its operations.

#include <cstdint>

namespace tandem::cuda {

template <class T>
class Few {
 public:
  /// `own`: the scalar of this lane, if there are so many.
  __device__ Few(T own, int count) : own_(own), count_(count) {}

  __device__ int count() const { return count_; }
  __device__ T own() const { return own_; }
  __device__ T at(int i) const { return __shfl_sync(~0U, own_, i); }

  template <class F>
  __device__ auto map(F f) const {
    return Few<decltype(f(T{}))>(f(own_), count_);
  }
  template <class U, class F>
  __device__ auto zip(const Few<U>& other, F f) const {
    return Few<decltype(f(T{}, U{}))>(f(own_, other.own()), count_);
  }
  template <class F>
  __device__ std::uint32_t mask(F f) const {
    return __ballot_sync(~0U, is_valid() && f(own_));
  }
  template <class F>
  __device__ std::uint64_t join(F f) const {
    const std::uint64_t bits = is_valid() ? f(own_) : 0;
    const unsigned low = __reduce_or_sync(~0U, static_cast<unsigned>(bits));
    return low | static_cast<std::uint64_t>(__reduce_or_sync(~0U, static_cast<unsigned>(bits >> 32))) << 32;
  }

 private:
  __device__ bool is_valid() const { return static_cast<int>(threadIdx.x % 32) < count_; }

  T own_;
  int count_;
};

}  // namespace tandem::cuda
