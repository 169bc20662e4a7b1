#pragma once
/// The quiet at the end of a kernel that puts to other PEs and gets nothing.

#include "tandem/impl/config.h"

namespace tandem::kernels {

/// As `quiet`, for all that kernels can learn. The sources of puts may change, and all operations of the kernel are
/// complete before any later operation of this PE takes effect. `World::barrier` waits for them, and so do calls that
/// free memory. So a block whose later operations wait by themselves does not wait for the answers here.
template <class Block>
TANDEM_DEVICE void quiet_at_end(Block& block) {
  if constexpr (requires { block.quiet_at_end(); })
    block.quiet_at_end();
  else
    block.quiet();
}

}  // namespace tandem::kernels
