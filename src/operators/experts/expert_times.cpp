#include "operators/experts/expert_times.h"

#include <algorithm>
#include <cmath>

#include "collectives/experts/row_chunks.h"
#include "operators/resolve/operator_defaults.h"

namespace tandem::ops {

namespace {

constexpr int kEarlyWaves = 2;
/// A dispatch of 4096 tokens takes 182 us in the simulator, and its link 159.
constexpr double kBetweenSteps = 1.15;

}  // namespace

ExpertTimes::ExpertTimes(const Machine& machine, const Team& team, const ExpertGemmOptions& options)
    : model_(planning_model(machine)),
      o_(options),
      pes_(team.size),
      parts_(pes_ / options.experts.tp_size),
      here_(experts_of_pe(options.experts, pes_)) {}

EarlyExperts ExpertTimes::early_experts(int beside) const {
  EarlyExperts early{std::min(kEarlyWaves, here_), 1};
  while ((early.experts_of_wave + 1) * early.waves <= here_ &&
         first_product_us(early.count(), sms() - beside) < rows_us(early, beside))
    ++early.experts_of_wave;
  return early;
}

double ExpertTimes::dispatch_gemm_us(int beside) const {
  const EarlyExperts early = early_experts(beside);
  const double together = std::max(first_product_us(early.count(), sms() - beside), rows_us(early, beside));
  return together + (early.count() < here_ ? first_product_us(here_ - early.count(), sms()) : 0);
}

double ExpertTimes::gemm_combine_us(int chunks, int beside) const {
  const double product = second_product_us(sms() - beside);
  const double beside_it = sums_us(chunks, beside) * (chunks - 1);
  return std::max(product, product / chunks + beside_it) + sums_us(chunks, sms());
}

double ExpertTimes::product_us(Size n, Size k, int experts, int sms) const {
  const double of_expert = static_cast<double>(pes_ * o_.experts.max_tokens * o_.experts.top_k) / o_.experts.experts;
  const Size panels = experts * static_cast<Size>(std::ceil(of_expert / o_.tile_m));
  const Size tiles = panels * ceil_div(n, o_.tile_n);
  GemmShape shape{panels * o_.tile_m, n, k, static_cast<int>(size_of(product_type(o_)))};
  shape.groups = std::max(1, experts);
  const GemmTileTimes times = gemm_tile_times(model_, o_.tile_m, o_.tile_n, shape, sms);
  const Size whole_waves = tiles / sms;
  return static_cast<double>(whole_waves) * times.whole_us + (tiles % sms > 0 ? times.last_us : 0) +
         model_.gemm.launch_us;
}

double ExpertTimes::first_product_us(int experts, int sms) const {
  return product_us(o_.intermediate * (is_gated(o_.activation) ? 2 : 1), o_.experts.hidden, experts, sms);
}

double ExpertTimes::second_product_us(int sms) const {
  return product_us(o_.experts.hidden, o_.intermediate, here_, sms);
}

/// The bytes of a share of the columns, between PEs and from place to place. The way out and the way home have the
/// same.
double ExpertTimes::bytes_us(double share, int sms) const {
  const auto tokens = static_cast<double>(o_.experts.max_tokens);
  const double row = static_cast<double>(row_bytes()) * share * 1e-3;
  const double sent = tokens * (pes_ - 1) * (1 - std::pow(1 - 1.0 / parts_, o_.experts.top_k));
  const double peers = model_.link.fabric == Fabric::kFullMesh ? std::max(1, pes_ - 1) : 1;
  const double link = model_.link.store_gbps.at(sms) * model_.link.all_to_all_efficiency * peers;
  const double local = std::min(model_.gpu.hbm_gbps, model_.gpu.block_hbm_gbps.at(sms));
  const double moved = tokens * (o_.experts.top_k * o_.experts.tp_size + 1) + 2 * sent;
  return kBetweenSteps * std::max(sent * row / link, moved * row / local) + model_.gpu.graph_node_us;
}

/// Own and received rows that have one of so many experts of each PE.
double ExpertTimes::visits(int experts) const {
  const auto chosen = [&](int of_all) {
    return 1 - std::pow(1 - static_cast<double>(of_all) / o_.experts.experts, o_.experts.top_k);
  };
  return static_cast<double>(o_.experts.max_tokens) * (chosen(experts * parts_) + (pes_ - 1) * chosen(experts));
}

double ExpertTimes::row_us(const RowCost& cost, Size bytes) {
  return cost.of_row + cost.of_piece * std::max(1.0, static_cast<double>(bytes) / kernels::RowChunks::kPieceBytes);
}

/// Each wave visits the rows of its experts.
double ExpertTimes::rows_us(const EarlyExperts& early, int sms) const {
  // 4096 tokens of two models took 327 and 125 us on all 132 SMs of two H100s, for 3.5 pieces and for one.
  constexpr RowCost kCost{0.7, 1.3};
  const int last = here_ - early.count();
  const double rows = early.waves * visits(early.experts_of_wave) + (last > 0 ? visits(last) : 0);
  return std::max(bytes_us(1, sms), rows * row_us(kCost, row_bytes()) / sms);
}

/// The sums of one chunk of columns.
double ExpertTimes::sums_us(int chunks, int sms) const {
  // Likewise: a combination took 528 and 237 us.
  constexpr RowCost kCost{1.9, 1.9};
  return std::max(bytes_us(1.0 / chunks, sms), visits(here_) * row_us(kCost, row_bytes() / chunks) / sms);
}

}  // namespace tandem::ops
