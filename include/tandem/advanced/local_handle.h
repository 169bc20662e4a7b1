#pragma once
/// Handles of memory that no other PE can access: host side.

#include "tandem/symm.h"
#include "tandem/world.h"

namespace tandem {

namespace detail {
/// The distance is larger than any address space, so an access to another PE's memory through such a handle faults.
inline constexpr Size kNoPlace = Size{1} << 48;
}  // namespace detail

/// Returns a handle of this PE's `memory`, for calls that accept such memory (CollectiveOptions::local_in). It may be
/// any device memory of its GPU, and in the simulator memory of SymmetricHeap::allocate_local. The addresses that the
/// handle's `on` gives for other PEs are invalid.
template <class T>
Symm<T> local_handle(const World& world, T* memory) {
  using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
  if (memory == nullptr) return {};
  Byte* const on_pe0 = reinterpret_cast<Byte*>(memory) + world.pe() * detail::kNoPlace;
  return {reinterpret_cast<T*>(on_pe0), -detail::kNoPlace, world.pe()};
}

/// Returns whether a handle was made by `local_handle`.
template <class T>
bool is_local_handle(const Symm<T>& handle) {
  // The test uses the distance between PEs. Absolute addresses would not do, since growing heaps lie far apart, too.
  return handle && reinterpret_cast<std::uintptr_t>(handle.on(0)) - reinterpret_cast<std::uintptr_t>(handle.on(1)) ==
                       std::uintptr_t{detail::kNoPlace};
}

}  // namespace tandem
