#pragma once
/// Copies of host values in a PE's own memory, and back.

#include <vector>

#include "tandem/world.h"

namespace tandem::test {

template <class T>
T* device_copy(World& world, const std::vector<T>& values, const char* name) {
  T* const memory = world.heap().allocate_local<T>(static_cast<Size>(values.size()), name);
  world.copy_in(memory, values.data(), static_cast<Size>(values.size() * sizeof(T)));
  return memory;
}
template <class T>
std::vector<T> host_copy(World& world, const T* memory, Size count) {
  std::vector<T> values(static_cast<std::size_t>(count));
  world.copy_out(values.data(), memory, count * Size{sizeof(T)});
  return values;
}

}  // namespace tandem::test
