#pragma once
/// Fragments on CPUs: the elements that a block holds in registers, here an array in host memory.
///
/// In a phantom simulation, and for memory without contents, a fragment has a size but no data, and every operation
/// keeps it so.

#include <cstdint>
#include <type_traits>

#include "tandem/impl/cpu/buffer.h"
#include "tandem/impl/cpu/element_loops.h"
#include "tandem/impl/site.h"
#include "tandem/numeric.h"

namespace tandem::cpu {

/// The origin of a fragment's elements, which determines their place on a GPU. 0: unknown, which suits any other.
struct Layout {
  int element_bytes = 0;
  std::uint32_t holder = 0;  ///< the block or role that loaded it

  bool suits(const Layout& other) const {
    return (element_bytes == other.element_bytes || element_bytes == 0 || other.element_bytes == 0) &&
           (holder == other.holder || holder == 0 || other.holder == 0);
  }
  Layout joined(const Layout& other) const {
    return {element_bytes != 0 ? element_bytes : other.element_bytes, holder != 0 ? holder : other.holder};
  }
};

/// Throws CheckFailed for two fragments that do not go together.
[[noreturn]] void refuse_pair(Size size, const Layout& layout, Size other_size, const Layout& other, Site site);

/// A tile of elements spread over the block.
template <class T>
class Fragment {
 public:
  using Element = T;

  Fragment() = default;
  /// Holds data, not yet set, if `backed`; else only a size.
  Fragment(Size size, bool backed, Layout layout = {})
      : size_(size), layout_(layout), buffer_(backed ? Buffer(size * static_cast<Size>(sizeof(T))) : Buffer()) {}
  static Fragment filled(Size size, T value) {
    Fragment result(size, true);
    for (Size i = 0; i < size; ++i) result.data()[i] = value;
    return result;
  }
  Fragment copy() const {
    return map([](T x) { return x; });
  }

  Size size() const { return size_; }
  const Layout& layout() const { return layout_; }
  bool backed() const { return size_ == 0 || static_cast<bool>(buffer_); }
  T* data() { return reinterpret_cast<T*>(buffer_.data()); }
  const T* data() const { return reinterpret_cast<const T*>(buffer_.data()); }

  /// Returns f of every element.
  template <class F>
  auto map(F f) const {
    using U = std::remove_cvref_t<decltype(f(std::declval<T>()))>;
    Fragment<U> result(size_, backed(), layout_);
    if (result.backed()) impl::for_each_element(result.data(), data(), size_, f);
    return result;
  }
  /// Returns f of every element and its counterpart in `other`, which must have the same layout.
  template <class U, class F>
  auto zip(const Fragment<U>& other, F f, Site site = Site::here()) const {
    using V = std::remove_cvref_t<decltype(f(std::declval<T>(), std::declval<U>()))>;
    Fragment<V> result = joined<V>(other, site);
    if (result.backed()) impl::for_each_pair(result.data(), data(), other.data(), size_, f);
    return result;
  }
  /// Returns a fragment for the results of this one and `other`, which must have the same layout.
  template <class V, class U>
  Fragment<V> joined(const Fragment<U>& other, Site site = Site::here()) const {
    if (size_ != other.size() || !layout_.suits(other.layout()))
      refuse_pair(size_, layout_, other.size(), other.layout(), site);
    return Fragment<V>(size_, backed() && other.backed(), layout_.joined(other.layout()));
  }
  template <class U>
  Fragment<U> convert() const {
    Fragment<U> result(size_, backed(), layout_);
    if (result.backed() && size_ > 0) impl::convert_all(result.data(), data(), size_);
    return result;
  }

  friend Fragment operator+(const Fragment& a, const Fragment& b) {
    return a.zip(b, [](T x, T y) { return static_cast<T>(x + y); });
  }
  friend Fragment operator*(const Fragment& a, T b) {
    return a.map([b](T x) { return static_cast<T>(x * b); });
  }

 private:
  Size size_ = 0;
  Layout layout_;
  Buffer buffer_;
};

}  // namespace tandem::cpu
