#pragma once
/// Operations of the block whose results the host knows, as kernels for the simulator, CPUs and GPUs. Each case is a
/// kernel for blocks of `kThreads` threads and counts the wrong words on this PE.

#include <type_traits>

#include "support/block_cases/operations.h"
#include "support/block_cases/packets.h"
#include "support/block_cases/parts.h"
#include "support/block_cases/sums.h"
#include "support/block_cases/words.h"

namespace tandem::test {

/// visit(std::type_identity<Case>()) for each of them.
template <class Visit>
void each_block_case(const Visit& visit) {
  visit(std::type_identity<BlockSum<float, 32>>());
  visit(std::type_identity<BlockSum<float, 96>>());
  visit(std::type_identity<BlockSum<float, 512, void, false>>());
  visit(std::type_identity<BlockSum<float, 512, LL128Line>>());
  visit(std::type_identity<BlockSum<double, 128, void, false>>());
  visit(std::type_identity<BlockSum<bf16, 256>>());
  visit(std::type_identity<BlockSum<bf16, 160, LLPacket>>());
  visit(std::type_identity<BlockSum<fp8_e4m3, 64>>());
  visit(std::type_identity<BlockSum<std::int8_t, 1024>>());
  visit(std::type_identity<BlockSum<std::uint64_t, 512>>());
  visit(std::type_identity<RoleSums<float>>());
  visit(std::type_identity<RoleSums<bf16, LL128Line>>());
  visit(std::type_identity<RoleSums<std::int64_t>>());
  visit(std::type_identity<Forward<LLPacket, false>>());
  visit(std::type_identity<Forward<LLPacket, true>>());
  visit(std::type_identity<Forward<LL128Line, false>>());
  visit(std::type_identity<Forward<LL128Line, true>>());
  visit(std::type_identity<SumsOfParts<LLPacket>>());
  visit(std::type_identity<SumsOfParts<LL128Line>>());
  visit(std::type_identity<Scalars<bf16>>());
  visit(std::type_identity<Scalars<fp8_e4m3>>());
  visit(std::type_identity<Scalars<std::int8_t>>());
  visit(std::type_identity<Scalars<std::uint64_t>>());
  visit(std::type_identity<PrefixSums<void, false>>());
  visit(std::type_identity<PrefixSums<LL128Line, false>>());
  visit(std::type_identity<PrefixSums<LLPacket, true>>());
  visit(std::type_identity<Keys<void, 64>>());
  visit(std::type_identity<Keys<LL128Line, 512>>());
  visit(std::type_identity<Keys<LLPacket, 96>>());
  visit(std::type_identity<Quantised<void>>());
  visit(std::type_identity<Quantised<LL128Line>>());
  visit(std::type_identity<Gets<std::uint32_t>>());
  visit(std::type_identity<CountBySwaps<std::uint32_t, Scope::kGpu>>());
  visit(std::type_identity<CountBySwaps<std::int64_t, Scope::kSystem>>());
  visit(std::type_identity<Operations<PutsAndSignals>>());
  visit(std::type_identity<Operations<LoadsAndStores>>());
  visit(std::type_identity<Operations<PacketsToAll<LLPacket>>>());
  visit(std::type_identity<Operations<PacketsToAll<LL128Line>>>());
  visit(std::type_identity<Operations<ThroughTheSwitch>>());
}

}  // namespace tandem::test
