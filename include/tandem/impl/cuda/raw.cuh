#pragma once
/// A thread's part of an array, in the array's own type.

#include <type_traits>

#include "tandem/impl/cuda/convert.cuh"
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

/// A type for the bits of a class of so many bytes.
template <std::size_t Bytes>
using WordOfSize = std::conditional_t<
    Bytes == 1, std::uint8_t,
    std::conditional_t<Bytes == 2, std::uint16_t, std::conditional_t<Bytes == 4, std::uint32_t, std::uint64_t>>>;

template <class T, int Vectors = kVectors<T>>
struct Raw {
  alignas(16) T elements[Vectors][kWidth<T>];

  __device__ std::uint32_t* words(int vector) { return reinterpret_cast<std::uint32_t*>(elements[vector]); }
  __device__ const std::uint32_t* words(int vector) const {
    return reinterpret_cast<const std::uint32_t*>(elements[vector]);
  }

  /// Values of the same type are not converted one by one, so that bytes stay together in registers.
  template <class A>
  __device__ auto as(Size size, int valid) const {
    Fragment<A, kWidth<T>, Vectors> result(size, valid);
#pragma unroll
    for (int u = 0; u < Vectors; ++u) {
      if (u >= valid) break;
      if constexpr (std::is_same_v<A, T>) {
#pragma unroll
        for (int i = 0; i < 4; ++i) result.words(u)[i] = words(u)[i];
      } else {
#pragma unroll
        for (int i = 0; i < kWidth<T>; ++i) result.at(u, i) = convert<A>(elements[u][i]);
      }
    }
    return result;
  }

  template <class A>
  __device__ static Raw of(const Fragment<A, kWidth<T>, Vectors>& values) {
    Raw raw;
#pragma unroll
    for (int u = 0; u < Vectors; ++u) {
      if (u >= values.valid()) break;
      if constexpr (std::is_same_v<A, T>) {
#pragma unroll
        for (int i = 0; i < 4; ++i) raw.words(u)[i] = values.words(u)[i];
      } else {
#pragma unroll
        for (int i = 0; i < kWidth<T>; ++i) raw.elements[u][i] = convert<T>(values.at(u, i));
      }
    }
    return raw;
  }
};

}  // namespace tandem::cuda
