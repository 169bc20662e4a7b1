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
  sum_.norm.epsilon = static_cast<float>(settings.options.norm.epsilon);
  constexpr Size kFloatsOfPacket = Size{sizeof(LLPacket)} / Size{sizeof(float)};
  const auto words =
      world.heap().allocate<LLPacket>(ceil_div(squares.count(), kFloatsOfPacket), "gemm_all_reduce squares");
  sum_.norm.squares = words.as<float>().local();
  sum_.norm.arrived = world.heap().signals(squares.columns, "gemm_all_reduce squares arrived").local();
}

bool SkinnyGemmSum::run(Stream& main, const Gemm& gemm, const Team& team, void* c) const {
  GemmSum sum = sum_;
  sum.c = c;
  return add_up(main, gemm, team, sum);
}

bool SkinnyGemmSum::run_normed(Stream& main, const Gemm& gemm, const Team& team, const OperatorCall& call) const {
  GemmSum sum = sum_;
  sum.c = call.c[0];
  sum.norm.weight = call.norm_weight;
  sum.norm.bias = call.norm_bias;
  sum.norm.residual = call.residual;
  sum.norm.sum = call.sum;
  return add_up(main, gemm, team, sum);
}

bool SkinnyGemmSum::add_up(Stream& main, Gemm gemm, const Team& team, const GemmSum& sum) const {
  gemm.destination = sum;
  if (!main.adds_up(gemm)) return false;
  gemm.activation = activation_;
  main.gemm(gemm, team);
  return true;
}

}  // namespace tandem::ops
