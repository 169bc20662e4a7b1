#pragma once
/// The place in memory of a thread's elements of a fragment, with their loads and stores.

#include <cstdint>
#include <type_traits>

#include "tandem/impl/cuda/packets.cuh"
#include "tandem/impl/cuda/raw.cuh"
#include "tandem/range.h"
#include "tandem/reduce_op.h"

namespace tandem::cuda {

/// A thread's place in a group of `Threads`. If a kernel uses packets (`P`, else void), fragments have the layout of
/// packets.
template <int Threads, class P>
class FragmentPlace {
 public:
  template <class T>
  static constexpr int kVectorsOf = std::is_void_v<P> ? kVectors<T> : 1;
  /// Number of elements of a fragment of T.
  template <class T>
  static constexpr Size kElements = Size{Layout<Threads, P>::kPlaces} * kWidth<T>* kVectorsOf<T>;

  __device__ explicit FragmentPlace(int thread) : place_(Layout<Threads, P>::place(thread)) {}

  /// Number of this thread's vectors that hold elements of a fragment of `size`.
  template <class T>
  __device__ int valid(Size size) const {
    // Large fragments are usually full, and the test costs them 5 %.
    if constexpr (std::is_void_v<P>) return kVectorsOf<T>;
    int count = 0;
#pragma unroll
    for (int u = 0; u < kVectorsOf<T>; ++u) count += first<T>(u) < static_cast<int>(size) ? 1 : 0;
    return count;
  }

  template <class T>
  __device__ void load(Raw<T, kVectorsOf<T>>& raw, const T* from, Range range) const {
    const bool aligned = reinterpret_cast<std::uintptr_t>(from + range.begin) % 16 == 0;
    const int size = static_cast<int>(range.size());
    // Registers that a branch leaves undefined are occupied throughout a loop around it: a third of them in norms.
    raw = {};
#pragma unroll
    for (int u = 0; u < kVectorsOf<T>; ++u) {
      const int at = first<T>(u);
      if (at >= size) break;
      const T* const source = from + range.begin + at;
      if (aligned && at + kWidth<T> <= size) {
        const Vector vector = load_vector(source);
#pragma unroll
        for (int i = 0; i < 4; ++i) raw.words(u)[i] = vector.word[i];
      } else if constexpr (sizeof(T) < 4) {
        load_elements(raw.words(u), source, size - at);
      } else {
        const int begin = u * kWidth<T>;
        raw.elements.assign(begin, begin + kWidth<T>,
                            [&](int i) { return at + i - begin < size ? source[i - begin] : T{}; });
      }
    }
  }

  /// Loads vectors of so many elements as vectors of U have, each of which is several accesses.
  template <class U, class T>
  __device__ void load_as(Elements<T, kWidth<U> * kVectorsOf<U>>& elements, const T* from, Range range) const {
    constexpr int kAccesses = kWidth<U> / kWidth<T>;
    const bool aligned = reinterpret_cast<std::uintptr_t>(from + range.begin) % 16 == 0;
    const int size = static_cast<int>(range.size());
#pragma unroll
    for (int u = 0; u < kVectorsOf<U>; ++u) {
      const int at = first<U>(u);
      if (at >= size) break;
      const T* const source = from + range.begin + at;
      const int begin = u * kWidth<U>;
      if (aligned && at + kWidth<U> <= size) {
#pragma unroll
        for (int part = 0; part < kAccesses; ++part) {
          const Vector vector = load_vector(source + part * kWidth<T>);
#pragma unroll
          for (int i = 0; i < 4; ++i) elements.words()[(u * kAccesses + part) * 4 + i] = vector.word[i];
        }
      } else {
        elements.assign(begin, begin + kWidth<U>,
                        [&](int i) { return at + i - begin < size ? source[i - begin] : T{}; });
      }
    }
  }

  template <class T, class A>
  __device__ void store(T* to, Range range, const Fragment<A, kWidth<T>, kVectorsOf<T>>& values) const {
    const bool aligned = reinterpret_cast<std::uintptr_t>(to + range.begin) % 16 == 0;
    const Raw<T, kVectorsOf<T>> raw = Raw<T, kVectorsOf<T>>::of(values);
    const int size = static_cast<int>(range.size());
#pragma unroll
    for (int u = 0; u < kVectorsOf<T>; ++u) {
      const int at = first<T>(u);
      if (at >= size) break;
      T* const target = to + range.begin + at;
      if (aligned && at + kWidth<T> <= size) {
        const std::uint32_t* const words = raw.words(u);
        store_vector(target, {{words[0], words[1], words[2], words[3]}});
      } else if constexpr (!std::is_void_v<P> || sizeof(T) == 1) {
        store_elements(target, raw.words(u), size - at);
      } else {
#pragma unroll
        for (int i = 0; i < kWidth<T>; ++i)
          if (at + i < size) target[i] = raw.elements.get(u * kWidth<T> + i);
      }
    }
  }

  /// For values whose vectors are not 16 bytes of T.
  template <class T, class A, int W, int V>
  __device__ void store_converted(T* to, Range range, const Fragment<A, W, V>& values) const {
    if constexpr ((sizeof(T) == 1 && (W == 4 || W == 8)) || (sizeof(T) > 1 && W == 16)) {
      store_words(to + range.begin, values);
    } else {
      each(values, [&](int at, A value) { to[range.begin + at] = convert<T>(value); });
    }
  }

  /// Calls f(number of its first element, number of the vector) for this thread's vectors that hold elements.
  template <class A, int W, int V, class F>
  __device__ void each_vector(const Fragment<A, W, V>& values, const F& f) const {
    const int size = static_cast<int>(values.size());
#pragma unroll
    for (int u = 0; u < V; ++u) {
      const int at = (u * Layout<Threads, P>::kPlaces + place_) * W;
      if (at < size) f(at, u);
    }
  }

  /// For this thread's elements, in their order.
  template <class T, int W, int V>
  __device__ impl::Arithmetic<T> sum(const Fragment<T, W, V>& values) const {
    static_assert(std::is_arithmetic_v<T>, "values meet in their accumulator type");
    impl::Arithmetic<T> total{};
    each(values, [&](int, T value) { total += static_cast<impl::Arithmetic<T>>(value); });
    return total;
  }

 private:
  /// Calls f(number, element) for this thread's elements of a fragment.
  template <class A, int W, int V, class F>
  __device__ void each(const Fragment<A, W, V>& values, const F& f) const {
    const int size = static_cast<int>(values.size());
#pragma unroll
    for (int u = 0; u < V; ++u) {
      const int at = (u * Layout<Threads, P>::kPlaces + place_) * W;
#pragma unroll
      for (int i = 0; i < W; ++i)
        if (at + i < size) f(at + i, values.at(u, i));
    }
  }

  /// Stores a vector's bytes as words of up to 16 bytes. Single elements would take more stores, each over a peer's
  /// link if `to` is remote.
  template <class T, class A, int W, int V>
  __device__ void store_words(T* to, const Fragment<A, W, V>& values) const {
    constexpr int kBytes = W * static_cast<int>(sizeof(T));
    constexpr int kWord = kBytes < 16 ? kBytes : 16;
    const bool aligned = reinterpret_cast<std::uintptr_t>(to) % kWord == 0;
    const int size = static_cast<int>(values.size());
    each_vector(values, [&](int at, int u) {
      Elements<T, W> elements;
      const Elements<A, W> of_vector = values.vector(u);
      convert_elements(elements, of_vector, 0, W);
      if (aligned && at + W <= size) {
        const std::uint32_t* const words = elements.words();
        if constexpr (kWord == 16) {
#pragma unroll
          for (int i = 0; i < kBytes / 16; ++i)
            reinterpret_cast<Vector*>(to +
                                      at)[i] = {{words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]}};
        } else if constexpr (kWord == 8) {
          *reinterpret_cast<std::uint64_t*>(to + at) = words[0] | static_cast<std::uint64_t>(words[1]) << 32;
        } else {
          *reinterpret_cast<std::uint32_t*>(to + at) = words[0];
        }
      } else {
#pragma unroll
        for (int i = 0; i < W; ++i)
          if (at + i < size) to[at + i] = elements.get(i);
      }
    });
  }

  template <class T>
  __device__ int first(int u) const {
    return (u * Layout<Threads, P>::kPlaces + place_) * kWidth<T>;
  }

  /// Loads up to 16 bytes element by element, the loads of 8 bytes together: little code, and few registers.
  template <class T>
  __device__ static void load_elements(std::uint32_t* words, const T* from, int count) {
    constexpr int kHalf = kWidth<T> / 2;
#pragma unroll 1
    for (int begin = 0; begin < kWidth<T>; begin += kHalf) {
      Elements<T, kHalf> half;
      half.assign(0, kHalf, [&](int i) { return begin + i < count ? from[begin + i] : T{}; });
      words[0] = words[2];
      words[1] = words[3];
      words[2] = half.words()[0];
      words[3] = half.words()[1];
    }
  }

  /// Copies up to 16 bytes element by element, with little code: kernels with packets are small and often cold.
  template <class T>
  __device__ static void store_elements(T* to, const std::uint32_t* words, int count) {
    constexpr int kBits = 8 * static_cast<int>(sizeof(T));
    std::uint64_t low = words[0] | static_cast<std::uint64_t>(words[1]) << 32;
    std::uint64_t high = words[2] | static_cast<std::uint64_t>(words[3]) << 32;
#pragma unroll 1
    for (int i = 0; i < kWidth<T> && i < count; ++i) {
      T element;
      __builtin_memcpy(&element, &low, sizeof(T));
      to[i] = element;
      if constexpr (kBits == 64)
        low = high;
      else
        low = low >> kBits | high << (64 - kBits);
      high >>= kBits % 64;
    }
  }

  const int place_;
};

}  // namespace tandem::cuda
