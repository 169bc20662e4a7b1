// Every portable kernel as device code, against the block's contract: what a GPU compiler could not take is an error here.

#include "kernels/all_reduce_ring.h"

namespace tandem {

template <class K>
__global__ void kernel(BlockContract* block, typename K::Args args) {
  K::run(*block, args);
}

#define TANDEM_COMPILE(K) template __global__ void kernel<K>(BlockContract*, typename K::Args)

TANDEM_COMPILE(kernels::AllReduceRing<float>);
TANDEM_COMPILE(kernels::AllReduceRing<bf16>);

}  // namespace tandem
