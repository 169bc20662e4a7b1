#pragma once
/// A thread's elements in registers. Elements of one or two bytes share words, as in memory. So 16 bytes that were
/// loaded or received stay in four registers, and one instruction rounds two floats.

#include <cstdint>
#include <type_traits>

#include "tandem/impl/cuda/convert.cuh"
#include "tandem/numeric.h"

namespace tandem::cuda {

/// A type for the bits of a class of so many bytes.
template <std::size_t Bytes>
using WordOfSize = std::conditional_t<
    Bytes == 1, std::uint8_t,
    std::conditional_t<Bytes == 2, std::uint16_t, std::conditional_t<Bytes == 4, std::uint32_t, std::uint64_t>>>;

template <class T, int N>
class Elements {
 public:
  __device__ T get(int i) const { return values_[i]; }
  __device__ void set(int i, T value) { values_[i] = value; }
  __device__ std::uint32_t* words() { return reinterpret_cast<std::uint32_t*>(values_); }
  __device__ const std::uint32_t* words() const { return reinterpret_cast<const std::uint32_t*>(values_); }

  /// Element i becomes f(i), for the elements from `begin` to `end`.
  template <class F>
  __device__ void assign(int begin, int end, const F& f) {
#pragma unroll
    for (int i = begin; i < end; ++i) values_[i] = f(i);
  }

 private:
  alignas(16) T values_[N];
};

template <class T, int N>
requires(sizeof(T) < 4) class Elements<T, N> {
  static constexpr int kEach = 4 / static_cast<int>(sizeof(T));  // elements of a word
  static constexpr int kBits = 8 * static_cast<int>(sizeof(T));
  using Bits = WordOfSize<sizeof(T)>;

 public:
  __device__ T get(int i) const {
    return __builtin_bit_cast(T, static_cast<Bits>(words_[i / kEach] >> (i % kEach * kBits)));
  }
  __device__ void set(int i, T value) {
    const std::uint32_t mask = std::uint32_t{static_cast<Bits>(~Bits{})} << (i % kEach * kBits);
    words_[i / kEach] = (words_[i / kEach] & ~mask) | bits(value) << (i % kEach * kBits);
  }
  __device__ std::uint32_t* words() { return words_; }
  __device__ const std::uint32_t* words() const { return words_; }

  template <class F>
  __device__ void assign(int begin, int end, const F& f) {
    if (begin % kEach != 0 || end % kEach != 0) {
#pragma unroll
      for (int i = begin; i < end; ++i) set(i, f(i));
      return;
    }
#pragma unroll
    for (int i = begin; i < end; i += kEach) words_[i / kEach] = word(f, i);
  }

 private:
  __device__ static std::uint32_t bits(T value) { return __builtin_bit_cast(Bits, value); }

  template <class F>
  __device__ static std::uint32_t word(const F& f, int i) {
    if constexpr (kEach == 2) return bits(f(i)) | bits(f(i + 1)) << 16;
    return bits(f(i)) | bits(f(i + 1)) << 8 | bits(f(i + 2)) << 16 | bits(f(i + 3)) << 24;
  }

  alignas(16) std::uint32_t words_[(N + kEach - 1) / kEach];
};

/// Converts the elements from `begin` to `end`.
template <class To, class From, int N>
__device__ void convert_elements(Elements<To, N>& to, const Elements<From, N>& from, int begin, int end) {
  constexpr int kBytes = static_cast<int>(sizeof(To));
  if constexpr (std::is_same_v<To, From>) {
    if (begin * kBytes % 4 == 0 && end * kBytes % 4 == 0) {
#pragma unroll
      for (int i = begin * kBytes / 4; i < end * kBytes / 4; ++i) to.words()[i] = from.words()[i];
      return;
    }
  }
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  constexpr bool kFromFloats = std::is_same_v<From, float> && N % 4 == 0;
  if constexpr (kFromFloats && (std::is_same_v<To, bf16> || std::is_same_v<To, f16>)) {
    using Format = std::conditional_t<std::is_same_v<To, bf16>, impl::BF16Format, impl::F16Format>;
#pragma unroll
    for (int i = begin; i < end; i += 2) to.words()[i / 2] = impl::hardware_pair<Format>(from.get(i), from.get(i + 1));
    return;
  } else if constexpr (kFromFloats && std::is_same_v<To, fp8_e4m3>) {
#pragma unroll
    for (int i = begin; i < end; i += 4)
      to.words()[i / 4] = impl::hardware_four(from.get(i), from.get(i + 1), from.get(i + 2), from.get(i + 3));
    return;
  }
#endif
  to.assign(begin, end, [&](int i) { return convert<To>(from.get(i)); });
}

}  // namespace tandem::cuda
