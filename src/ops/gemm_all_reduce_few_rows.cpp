#include <algorithm>

#include "gemm/few_rows.h"
#include "ops/gemm_all_reduce.h"

namespace tandem::ops {

Size FewRows::suitable_rows(const World& world, const OperatorOptions& o) {
  // Below, a block waits for its peers longer than it computes.
  constexpr Size kLeastDepth = 256;
  const Team team = world.team();
  if (o.type != DType::kBF16 || o.k / team.size < kLeastDepth) return 0;
  return few_rows_fill(o.n, world.machine().gpu.sm_count) ? std::min<Size>(o.m, kFewRowsMost) : 0;
}

FewRows::FewRows(World& world, const Settings& settings) {
  const FewRowsExchange exchange(static_cast<int>(settings.options.n), world.team().size);
  const auto packets =
      world.heap().allocate<LLPacket>(exchange.bytes() / Size{sizeof(LLPacket)}, "gemm_all_reduce sums of tiles");
  sum_.exchange = packets.as<std::byte>();
  sum_.calls = world.heap().epochs(exchange.tiles, "gemm_all_reduce calls").words;
}

bool FewRows::run(Stream& main, Gemm gemm, const Team& team) const {
  if (!main.adds_up(gemm)) return false;
  gemm.sum = sum_;
  main.gemm(gemm, team);
  return true;
}

}  // namespace tandem::ops
