#pragma once
/// Handles of memory that no other PE reaches: host side.

#include "tandem/symm.h"
#include "tandem/world.h"

namespace tandem {

namespace detail {
/// Beyond any address space: whoever takes such a handle for another PE's memory faults.
inline constexpr Size kNoPlace = Size{1} << 48;
}  // namespace detail

/// A handle of this PE's `memory`, for calls that take such (CollectiveOptions::local_in): any device memory of its
/// GPU, in the simulator SymmetricHeap::allocate_local's. What the handle's `on` gives for other PEs is no address.
template <class T>
Symm<T> only_here(const World& world, T* memory) {
  using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
  if (memory == nullptr) return {};
  Byte* const on_pe0 = reinterpret_cast<Byte*>(memory) + world.pe() * detail::kNoPlace;
  return {reinterpret_cast<T*>(on_pe0), -detail::kNoPlace, world.pe()};
}

/// Whether a world's handle was made by `only_here`.
template <class T>
bool is_only_here(const Symm<T>& handle) {
  // By the distance from PE to PE, not by an address that is none: heaps that may grow lie far apart, too.
  return handle && reinterpret_cast<std::uintptr_t>(handle.on(0)) - reinterpret_cast<std::uintptr_t>(handle.on(1)) ==
                       std::uintptr_t{detail::kNoPlace};
}

}  // namespace tandem
