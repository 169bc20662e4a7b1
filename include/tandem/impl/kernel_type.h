#pragma once
/// Descriptions of kernels, for launches by code that does not know their types.

#include <cstddef>
#include <string_view>
#include <type_traits>

#include "tandem/impl/cpu/block.h"
#include "tandem/impl/device_kernel.h"
#include "tandem/impl/type_name.h"

namespace tandem::detail {

/// The forms and properties of one kernel.
struct KernelType {
  std::string_view name;
  void (*on_cpu)(cpu::Block& block, const void* args) = nullptr;
  std::size_t args_bytes = 0;
  const DeviceKernel* const* device = nullptr;  ///< DeviceKernelOf<K>::kernel, which is set when the program starts
  int blocks_per_sm = 1;
  bool holds_next = false;
  bool epoch_first = false;
};

/// Returns the description of kernel K, the same object in each call.
template <class K>
const KernelType& kernel_type() {
  static_assert(kBlocksPerSm<K> >= 1);
  static_assert(std::is_trivially_copyable_v<typename K::Args>,
                "Args of a kernel must be trivially copyable: plain data, without containers or other owners of "
                "memory, since a GPU gets a copy of the bytes");
  static_assert(alignof(typename K::Args) <= alignof(std::max_align_t), "Args of a kernel have at most this alignment");
  static constexpr KernelType type{
      type_name<K>(),
      [](cpu::Block& block, const void* args) { K::run(block, *static_cast<const typename K::Args*>(args)); },
      sizeof(typename K::Args),
      &DeviceKernelOf<K>::kernel,
      kBlocksPerSm<K>,
      kHoldsNext<K>,
      kEpochFirst<K>};
  return type;
}

}  // namespace tandem::detail
