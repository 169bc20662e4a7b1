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
  if (settings.options.norm.norm == Norm::kNone) return;
  const SkinnySquares squares(static_cast<int>(settings.options.n));
  norm_.epsilon = static_cast<float>(settings.options.norm.epsilon);
  constexpr Size kFloatsOfPacket = Size{sizeof(LLPacket)} / Size{sizeof(float)};
  const auto words =
      world.heap().allocate<LLPacket>(ceil_div(squares.count(), kFloatsOfPacket), "gemm_all_reduce squares");
  norm_.squares = words.as<float>().local();
  norm_.arrived = world.heap().signals(squares.columns, "gemm_all_reduce squares arrived").local();
}

bool SkinnyGemmSum::run(Stream& main, Gemm gemm, const Team& team) const {
  if (!main.adds_up(gemm)) return false;
  gemm.sum = sum_;
  gemm.activation = activation_;
  main.gemm(gemm, team);
  return true;
}

bool SkinnyGemmSum::run_normed(Stream& main, Gemm gemm, const Team& team, const OperatorCall& call) const {
  gemm.norm = norm_;
  gemm.norm.weight = call.norm_weight;
  gemm.norm.bias = call.norm_bias;
  gemm.norm.residual = call.residual;
  gemm.norm.sum = call.sum;
  return run(main, gemm, team);
}

}  // namespace tandem::ops
