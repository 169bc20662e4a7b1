#pragma once
/// Fragments in registers: each thread holds `Vectors` groups of `Width` consecutive elements.
///
/// Group u of thread t starts at element (u * threads + t) * Width. A group of the memory's type is thus one 16-byte
/// access, and neighbours are coalesced.

#include "tandem/impl/cuda/elements.cuh"

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
  __device__ T at(int vector, int i) const { return values_.get(vector * Width + i); }
  __device__ void set(int vector, int i, T value) { values_.set(vector * Width + i, value); }
  __device__ T raw(int i) const { return values_.get(i); }
  /// All elements, one vector after another.
  __device__ Elements<T, Width * Vectors>& elements() { return values_; }
  __device__ const Elements<T, Width * Vectors>& elements() const { return values_; }
  __device__ Elements<T, Width> vector(int number) const {
    Elements<T, Width> one;
    one.assign(0, Width, [&](int i) { return at(number, i); });
    return one;
  }
  /// A group of 16 bytes as words.
  __device__ std::uint32_t* words(int vector) { return values_.words() + 4 * vector; }

  template <class F>
  __device__ auto map(F f) const {
    Fragment<decltype(f(T{})), Width, Vectors> result(size_, valid_);
    result.elements().assign(0, Width * Vectors, [&](int i) { return f(values_.get(i)); });
    return result;
  }
  template <class U, class F>
  __device__ auto zip(const Fragment<U, Width, Vectors>& other, F f) const {
    Fragment<decltype(f(T{}, U{})), Width, Vectors> result(size_, valid_);
    result.elements().assign(0, Width * Vectors, [&](int i) { return f(values_.get(i), other.raw(i)); });
    return result;
  }
  template <class U>
  __device__ auto convert() const {
    Fragment<U, Width, Vectors> result(size_, valid_);
    convert_elements(result.elements(), values_, 0, Width * Vectors);
    return result;
  }
  __device__ Fragment copy() const { return *this; }

  __device__ friend Fragment operator+(const Fragment& a, const Fragment& b) {
    return a.zip(b, [](T x, T y) { return static_cast<T>(x + y); });
  }
  __device__ friend Fragment operator*(const Fragment& a, T b) {
    return a.map([b](T x) { return static_cast<T>(x * b); });
  }

 private:
  Elements<T, Width* Vectors> values_ = {};  // see FragmentPlace::load
  Size size_ = 0;
  int valid_ = 0;
};

}  // namespace tandem::cuda
