#pragma once
/// A thread's part of an array, in the array's own type.

#include <type_traits>

#include "tandem/impl/cuda/fragment.cuh"
#include "tandem/impl/cuda/ptx.cuh"

namespace tandem::cuda {

/// Elements of T in one 16-byte access.
template <class T>
inline constexpr int kWidth = 16 / static_cast<int>(sizeof(T));

/// 16-byte accesses of a fragment that a thread has in flight at once. Elements are reduced as floats, so four such
/// accesses to 16-bit types would not fit the registers of a block of 512 threads. Bytes are only moved.
template <class T>
inline constexpr int kVectors = sizeof(T) == 1 && !std::is_same_v<T, std::byte> ? 1 : 2;

template <class T, int Vectors = kVectors<T>>
struct Raw {
  Elements<T, kWidth<T> * Vectors> elements;

  __device__ std::uint32_t* words(int vector) { return elements.words() + 4 * vector; }
  __device__ const std::uint32_t* words(int vector) const { return elements.words() + 4 * vector; }

  template <class A>
  __device__ auto as(Size size, int valid) const {
    Fragment<A, kWidth<T>, Vectors> result(size, valid);
    // A choice between the words and none would wait for words that are still on their way.
    if constexpr (std::is_same_v<A, T>)
      result.elements() = elements;
    else
      each_valid(valid, [&](int begin, int end) { convert_elements(result.elements(), elements, begin, end); });
    return result;
  }

  template <class A>
  __device__ static Raw of(const Fragment<A, kWidth<T>, Vectors>& values) {
    Raw raw;
    if constexpr (std::is_same_v<A, T>)
      raw.elements = values.elements();
    else
      each_valid(values.valid(),
                 [&](int begin, int end) { convert_elements(raw.elements, values.elements(), begin, end); });
    return raw;
  }

 private:
  /// Calls f(begin, end) for the elements of each valid vector.
  template <class F>
  __device__ static void each_valid(int valid, const F& f) {
#pragma unroll
    for (int u = 0; u < Vectors; ++u) {
      if (u >= valid) break;
      f(u * kWidth<T>, (u + 1) * kWidth<T>);
    }
  }
};

}  // namespace tandem::cuda
