#include "gemm/contract/skinny.h"
#include "operators/gemm_all_reduce/plan.h"

namespace tandem::ops {

SkinnyGemmSum::SkinnyGemmSum(World& world, const Settings& settings) : activation_(settings.options.activation) {
  const SkinnyExchange exchange(static_cast<int>(settings.options.n), world.team().size);
  const Size rows = settings.all_reduce.few;
  const auto packets =
      world.heap().allocate<LLPacket>(exchange.bytes(rows) / Size{sizeof(LLPacket)}, "gemm_all_reduce sums of tiles");
  sum_.exchange = packets.as<std::byte>();
  sum_.arrived = world.heap().signals(exchange.words(rows), "gemm_all_reduce sums arrived");
  sum_.calls = world.heap().epochs(exchange.tiles(rows), "gemm_all_reduce calls").words;
}

bool SkinnyGemmSum::run(Stream& main, Gemm gemm, const Team& team) const {
  if (!main.adds_up(gemm)) return false;
  gemm.sum = sum_;
  gemm.activation = activation_;
  main.gemm(gemm, team);
  return true;
}

}  // namespace tandem::ops
