#pragma once
/// Symmetric memory in kernels: one buffer of the same size on every PE.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tandem/range.h"
#include "tandem/team.h"

namespace tandem {

/// A handle of a symmetric buffer of T: 32 bytes, passed to kernels by value.
///
/// PE numbers are those of the team of the handle (`of`), by default the world. `on(pe)` is plain address arithmetic.
/// The address is valid for `put`, `get` and signals everywhere. For loads and stores it is valid only if the PE is
/// reachable (see `Block::remote`).
template <class T>
class Symm {
 public:
  Symm() = default;
  /// For backends; programs call SymmetricHeap::allocate. PE p's copy is `p * stride_bytes` bytes behind `on_pe0`.
  TANDEM_DEVICE Symm(T* on_pe0, Size stride_bytes, int me) : on_pe0_(on_pe0), stride_bytes_(stride_bytes), me_(me) {}
  /// A writable buffer converts to a read-only one.
  template <class U>
  requires std::is_same_v<T, const U> TANDEM_DEVICE
  Symm(const Symm<U>& other)  // NOLINT(google-explicit-constructor): as T* converts to const T*
      : on_pe0_(other.on_pe0_), stride_bytes_(other.stride_bytes_), me_(other.me_) {}

  /// Returns the address of PE `pe`'s copy.
  TANDEM_DEVICE T* on(int pe) const {
    using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
    return reinterpret_cast<T*>(reinterpret_cast<Byte*>(on_pe0_) + pe * stride_bytes_);
  }
  /// Returns the address of this PE's copy.
  TANDEM_DEVICE T* local() const { return on(me_); }
  /// Returns the handle of the buffer that begins `elements` elements later.
  TANDEM_DEVICE Symm operator+(Size elements) const { return {on_pe0_ + elements, stride_bytes_, me_}; }
  /// Returns whether this is the handle of a buffer.
  TANDEM_DEVICE explicit operator bool() const { return on_pe0_ != nullptr; }

  /// Returns the same buffer, addressed by the PE numbers of `team`. This handle must be the world's.
  TANDEM_DEVICE Symm of(const Team& team) const { return {on(team.first), stride_bytes_ * team.stride, team.me}; }

  /// Returns the same bytes as elements of another type.
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
