#pragma once
/// Fragments of the simulator: the elements that a block holds in registers, here an array in host memory.
///
/// In phantom mode, and for memory without contents, a fragment has a size but no data, and every operation keeps it
/// so.

#include <array>
#include <cmath>
#include <type_traits>

#include "tandem/impl/sim/buffer.h"
#include "tandem/numeric.h"

namespace tandem::sim {

/// A tile of elements spread over the block.
template <class T>
class Fragment {
 public:
  using Element = T;

  Fragment() = default;
  /// With data, not yet set, if `backed`; else with a size only.
  Fragment(Size size, bool backed)
      : size_(size), buffer_(backed ? Buffer(size * static_cast<Size>(sizeof(T))) : Buffer()) {}
  static Fragment filled(Size size, T value) {
    Fragment result(size, true);
    for (Size i = 0; i < size; ++i) result.data()[i] = value;
    return result;
  }
  Fragment copy() const {
    return map([](T x) { return x; });
  }

  Size size() const { return size_; }
  bool backed() const { return size_ == 0 || static_cast<bool>(buffer_); }
  T* data() { return reinterpret_cast<T*>(buffer_.data()); }
  const T* data() const { return reinterpret_cast<const T*>(buffer_.data()); }

  /// f of every element.
  template <class F>
  auto map(F f) const {
    using U = std::remove_cvref_t<decltype(f(std::declval<T>()))>;
    Fragment<U> result(size_, backed());
    if (result.backed())
      for (Size i = 0; i < size_; ++i) result.data()[i] = f(data()[i]);
    return result;
  }
  /// f of every element and its counterpart in `other`, which must have the same layout.
  template <class U, class F>
  auto zip(const Fragment<U>& other, F f) const {
    using V = std::remove_cvref_t<decltype(f(std::declval<T>(), std::declval<U>()))>;
    Fragment<V> result(size_, backed() && other.backed());
    if (result.backed())
      for (Size i = 0; i < size_; ++i) result.data()[i] = f(data()[i], other.data()[i]);
    return result;
  }
  template <class U>
  Fragment<U> convert() const {
    return map([](T x) { return tandem::convert<U>(x); });
  }

  friend Fragment operator+(const Fragment& a, const Fragment& b) {
    return a.zip(b, [](T x, T y) { return static_cast<T>(x + y); });
  }
  friend Fragment operator-(const Fragment& a, const Fragment& b) {
    return a.zip(b, [](T x, T y) { return static_cast<T>(x - y); });
  }
  friend Fragment operator*(const Fragment& a, const Fragment& b) {
    return a.zip(b, [](T x, T y) { return static_cast<T>(x * y); });
  }
  friend Fragment operator/(const Fragment& a, const Fragment& b) {
    return a.zip(b, [](T x, T y) { return static_cast<T>(x / y); });
  }
  friend Fragment operator+(const Fragment& a, T b) {
    return a.map([b](T x) { return static_cast<T>(x + b); });
  }
  friend Fragment operator-(const Fragment& a, T b) {
    return a.map([b](T x) { return static_cast<T>(x - b); });
  }
  friend Fragment operator*(const Fragment& a, T b) {
    return a.map([b](T x) { return static_cast<T>(x * b); });
  }
  friend Fragment operator/(const Fragment& a, T b) {
    return a.map([b](T x) { return static_cast<T>(x / b); });
  }
  friend Fragment<bool> operator<(const Fragment& a, const Fragment& b) {
    return a.zip(b, [](T x, T y) { return x < y; });
  }
  friend Fragment max(const Fragment& a, const Fragment& b) {
    return a.zip(b, [](T x, T y) { return x < y ? y : x; });
  }
  friend Fragment min(const Fragment& a, const Fragment& b) {
    return a.zip(b, [](T x, T y) { return y < x ? y : x; });
  }
  friend Fragment exp2(const Fragment& a) {
    return a.map([](T x) { return static_cast<T>(std::exp2(x)); });
  }

 private:
  Size size_ = 0;
  Buffer buffer_;
};

/// Elements of `yes` where the mask is true, of `no` elsewhere.
template <class T>
Fragment<T> select(const Fragment<bool>& mask, const Fragment<T>& yes, const Fragment<T>& no) {
  Fragment<T> result(mask.size(), mask.backed() && yes.backed() && no.backed());
  if (result.backed())
    for (Size i = 0; i < mask.size(); ++i) result.data()[i] = mask.data()[i] ? yes.data()[i] : no.data()[i];
  return result;
}

/// A Rows x Cols tile, row-major; rows and columns that are not valid hold zeros.
template <class T, int Rows, int Cols>
class MatrixFragment {
 public:
  explicit MatrixFragment(Fragment<T> elements) : elements_(std::move(elements)) {}

  const Fragment<T>& elements() const { return elements_; }
  bool backed() const { return elements_.backed(); }
  const T* row(int r) const { return elements_.data() + static_cast<Size>(r) * Cols; }

  template <class F>
  auto map(F f) const {
    auto mapped = elements_.map(f);
    return MatrixFragment<typename decltype(mapped)::Element, Rows, Cols>(std::move(mapped));
  }
  template <class U, class F>
  auto zip(const MatrixFragment<U, Rows, Cols>& other, F f) const {
    auto zipped = elements_.zip(other.elements(), f);
    return MatrixFragment<typename decltype(zipped)::Element, Rows, Cols>(std::move(zipped));
  }
  /// f(element, value of its row): `rows` has one value a row.
  template <class F>
  MatrixFragment zip_rows(const Fragment<T>& rows, F f) const {
    Fragment<T> result(Size{Rows} * Cols, backed() && rows.backed());
    if (result.backed())
      for (Size i = 0; i < Size{Rows} * Cols; ++i) result.data()[i] = f(elements_.data()[i], rows.data()[i / Cols]);
    return MatrixFragment(std::move(result));
  }
  /// Largest element of each row over the first `valid_cols` columns.
  Fragment<T> row_max(int valid_cols = Cols) const {
    return fold(valid_cols, [](T a, T b) { return a < b ? b : a; });
  }
  /// Sum of each row, in column order.
  Fragment<T> row_sum(int valid_cols = Cols) const {
    return fold(valid_cols, [](T a, T b) { return static_cast<T>(a + b); });
  }

 private:
  template <class F>
  Fragment<T> fold(int valid_cols, F f) const {
    Fragment<T> result(Rows, backed());
    if (!result.backed()) return result;
    for (int r = 0; r < Rows; ++r) {
      T value = row(r)[0];
      for (int c = 1; c < valid_cols; ++c) value = f(value, row(r)[c]);
      result.data()[r] = value;
    }
    return result;
  }

  Fragment<T> elements_;
};

}  // namespace tandem::sim
