// Every operation of the block's contract, compiled against the contract itself and against the CUDA backend's blocks,
// including the recording one. A missing operation is an error here.

#include "support/every_operation.h"
#include "tandem/advanced/cuda_profiled_kernel.cuh"

namespace tandem::test {

template <class K>
__global__ void contract_kernel(BlockContract* block, typename K::Args args) {
  K::run(*block, args);
}

/// Taking their addresses compiles them.
template <class K>
void compile() {
  [[maybe_unused]] const auto contract = &contract_kernel<K>;
  [[maybe_unused]] const auto usual = &cuda::portable_kernel<K, 128>;
}
template <class K>
void compile_profiled() {
  compile<K>();
  [[maybe_unused]] const auto recorded = &cuda::profiled_kernel<K, 128>;
}

void compile_all() {
  compile_profiled<EveryOperation<float, LLPacket, true>>();
  compile_profiled<EveryOperation<bf16, LL128Line>>();
  compile<EveryOperation<fp8_e4m3, LL128Line>>();
  compile<EveryOperation<std::int8_t, LLPacket>>();
  compile<EveryOperation<std::uint64_t, LL128Line>>();
  compile_profiled<EveryPacketOperation<bf16, LLPacket>>();
  compile_profiled<EveryPacketOperation<float, LL128Line, true>>();
  compile<EveryPacketOperation<fp8_e4m3, LL128Line>>();
  compile<EveryPacketOperation<std::uint64_t, LLPacket>>();
}

}  // namespace tandem::test
