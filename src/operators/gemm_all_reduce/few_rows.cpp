#include <algorithm>

#include "gemm/contract/few_rows.h"
#include "operators/gemm_all_reduce/plan.h"

namespace tandem::ops {

Size FewRows::suitable_rows(const World& world, const OperatorOptions& o) {
  // Below this size a block waits for its peers longer than it computes.
  constexpr Size kLeastDepth = 256;
  // Rows of A and C are whole 16-byte vectors on all PEs, so either all or none of them add in their GEMM.
  constexpr Size kVector = 8;
  const Team team = world.team();
  if (o.type != DType::kBF16 || o.result_type() != DType::kBF16 || o.b_layout != BLayout::kNxK) return 0;
  if (o.n % kVector != 0 || o.k / team.size < kLeastDepth) return 0;
  for (int pe = 0; pe < team.size; ++pe)
    if (split(o.k, team.size)[pe].size() % kVector != 0) return 0;
  const int sms = world.machine().gpu.sm_count;
  if (!few_rows_fill(kFewRowsBlock, o.n, sms)) return 0;
  const bool slices = few_rows_fill(kFewRowsMost, o.n, sms);
  return std::min<Size>(o.m, slices ? kFewRowsMost : kFewRowsBlock);
}

FewRows::FewRows(World& world, const Settings& settings) : activation_(settings.options.activation) {
  const FewRowsExchange exchange(static_cast<int>(settings.options.n), world.team().size);
  const Size rows = suitable_rows(world, settings.options);
  const auto packets =
      world.heap().allocate<LLPacket>(exchange.bytes(rows) / Size{sizeof(LLPacket)}, "gemm_all_reduce sums of tiles");
  sum_.exchange = packets.as<std::byte>();
  sum_.calls = world.heap().epochs(exchange.tiles(rows), "gemm_all_reduce calls").words;
}

bool FewRows::run(Stream& main, Gemm gemm, const Team& team) const {
  if (!main.adds_up(gemm)) return false;
  gemm.sum = sum_;
  gemm.activation = activation_;
  main.gemm(gemm, team);
  return true;
}

}  // namespace tandem::ops
