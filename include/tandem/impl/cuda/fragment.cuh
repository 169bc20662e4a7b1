#pragma once
/// Fragments in registers: each thread holds `Vectors` groups of `Width` consecutive elements.
///
/// Group u of thread t starts at element (u * threads + t) * Width. A group of the memory's type is thus one 16-byte
/// access, and neighbours are coalesced.

#include "tandem/numeric.h"

namespace tandem::cuda {

template <class T, int Width, int Vectors>
class Fragment {
 public:
  using Element = T;
  static constexpr int kWidth = Width;
  static constexpr int kVectors = Vectors;

  Fragment() = default;
  /// `valid` is the number of this thread's groups with elements. The others are not converted: in a small call most
  /// warps have none.
  __device__ explicit Fragment(Size size, int valid = Vectors) : size_(size), valid_(valid) {}

  /// Number of valid elements in the whole block's fragment.
  __device__ Size size() const { return size_; }
  __device__ int valid() const { return valid_; }
  __device__ T& at(int vector, int i) { return values_[vector * Width + i]; }
  __device__ const T& at(int vector, int i) const { return values_[vector * Width + i]; }
  /// A group of 16 bytes as words.
  __device__ std::uint32_t* words(int vector) { return reinterpret_cast<std::uint32_t*>(values_ + vector * Width); }
  __device__ const std::uint32_t* words(int vector) const {
    return reinterpret_cast<const std::uint32_t*>(values_ + vector * Width);
  }

  template <class F>
  __device__ auto map(F f) const {
    Fragment<decltype(f(T{})), Width, Vectors> result(size_, valid_);
#pragma unroll
    for (int i = 0; i < Width * Vectors; ++i) result.raw(i) = f(values_[i]);
    return result;
  }
  template <class U, class F>
  __device__ auto zip(const Fragment<U, Width, Vectors>& other, F f) const {
    Fragment<decltype(f(T{}, U{})), Width, Vectors> result(size_, valid_);
#pragma unroll
    for (int i = 0; i < Width * Vectors; ++i) result.raw(i) = f(values_[i], other.raw(i));
    return result;
  }
  template <class U>
  __device__ auto convert() const {
    return map([](T x) { return tandem::convert<U>(x); });
  }
  __device__ Fragment copy() const { return *this; }

  __device__ T& raw(int i) { return values_[i]; }
  __device__ const T& raw(int i) const { return values_[i]; }

  __device__ friend Fragment operator+(const Fragment& a, const Fragment& b) {
    return a.zip(b, [](T x, T y) { return static_cast<T>(x + y); });
  }
  __device__ friend Fragment operator*(const Fragment& a, T b) {
    return a.map([b](T x) { return static_cast<T>(x * b); });
  }

 private:
  alignas(16) T values_[Width * Vectors];
  Size size_ = 0;
  int valid_ = 0;
};

}  // namespace tandem::cuda
