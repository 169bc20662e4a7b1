#pragma once
/// Memory of simulations that are run one after the other.

#include "base/mapping_pool.h"

namespace tandem::test {

/// Lets simulations of this thread pass their memory on to later ones until the thread ends. To map and clear it anew
/// takes longer than a small run.
inline void keep_memory() { static const thread_local MappingPool pool; }

}  // namespace tandem::test
