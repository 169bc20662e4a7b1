#pragma once
/// Symmetric memory as kernels see it: one buffer of the same size on every PE.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tandem/range.h"
#include "tandem/team.h"

namespace tandem {

/// A symmetric buffer of T: a handle of 32 bytes that is passed to kernels by value.
///
/// PE numbers are those of the team for which the handle was made (`of`), by default the world.
/// `on(pe)` is plain address arithmetic: the address is valid for `put`, `get` and signals everywhere, but for loads
/// and stores only where the PE is load/store reachable (`Block::remote` says so).
template <class T>
class Symm {
 public:
  Symm() = default;
  /// For backends; programs call SymmetricHeap::allocate. PE p's copy is `p * stride_bytes` bytes behind `on_pe0`.
  TANDEM_DEVICE Symm(T* on_pe0, Size stride_bytes, int me) : on_pe0_(on_pe0), stride_bytes_(stride_bytes), me_(me) {}
  /// A buffer that may be written is one that may be read.
  template <class U>
  requires std::is_same_v<T, const U> TANDEM_DEVICE
  Symm(const Symm<U>& other)  // NOLINT(google-explicit-constructor): as T* converts to const T*
      : on_pe0_(other.on_pe0_), stride_bytes_(other.stride_bytes_), me_(other.me_) {}

  /// Address of PE `pe`'s copy.
  TANDEM_DEVICE T* on(int pe) const {
    using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
    return reinterpret_cast<T*>(reinterpret_cast<Byte*>(on_pe0_) + pe * stride_bytes_);
  }
  /// Address of this PE's own copy.
  TANDEM_DEVICE T* local() const { return on(me_); }
  /// Returns the handle of the buffer that begins `elements` elements later.
  TANDEM_DEVICE Symm operator+(Size elements) const { return {on_pe0_ + elements, stride_bytes_, me_}; }
  /// Returns whether this is the handle of a buffer.
  TANDEM_DEVICE explicit operator bool() const { return on_pe0_ != nullptr; }

  /// The same buffer, addressed by the PE numbers of `team`; this handle must be the world's.
  TANDEM_DEVICE Symm of(const Team& team) const { return {on(team.first), stride_bytes_ * team.stride, team.me}; }

  /// The same bytes as elements of another type.
  template <class U>
  TANDEM_DEVICE Symm<U> as() const {
    return {reinterpret_cast<U*>(on_pe0_), stride_bytes_, me_};
  }

 private:
  template <class U>
  friend class Symm;

  T* on_pe0_ = nullptr;
  Size stride_bytes_ = 0;
  int me_ = 0;
};

}  // namespace tandem
