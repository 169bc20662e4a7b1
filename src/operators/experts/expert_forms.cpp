#include "operators/experts/expert_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "operators/experts/tuned_forms.h"
#include "operators/resolve/operator_defaults.h"

namespace tandem::ops {

namespace {

constexpr int kEarlyWaves = 2;
constexpr int kColumnChunks = 4;

/// Predicted times of a call in which all experts are equally likely, in us.
class ExpertTimes {
 public:
  ExpertTimes(const Machine& machine, const Team& team, const ExpertGemmOptions& o)
      : model_(planning_model(machine)), o_(o), pes_(team.size), here_(o.experts.experts / team.size) {}

  int sms() const { return model_.gpu.sm_count; }
  int experts_here() const { return here_; }

  double product_us(Size n, Size k, int experts, int sms) const {
    const double of_expert = static_cast<double>(o_.experts.max_tokens * o_.experts.top_k) / here_;
    const Size panels = experts * static_cast<Size>(std::ceil(of_expert / o_.tile_m));
    const Size tiles = panels * ceil_div(n, o_.tile_n);
    GemmShape shape{panels * o_.tile_m, n, k, static_cast<int>(size_of(product_type(o_)))};
    shape.groups = std::max(1, experts);
    const GemmTileTimes times = gemm_tile_times(model_, o_.tile_m, o_.tile_n, shape, sms);
    const Size whole_waves = tiles / sms;
    return static_cast<double>(whole_waves) * times.whole_us + (tiles % sms > 0 ? times.last_us : 0) +
           model_.gemm.launch_us;
  }

  /// Rows between PEs and from place to place, on so many SMs. The way out and the way home have the same bytes.
  double rows_us(int sms) const {
    constexpr double kBetweenSteps = 1.15;  // a dispatch of 4096 tokens takes 182 us in the simulator, and its link 159
    const auto tokens = static_cast<double>(o_.experts.max_tokens);
    const double row = static_cast<double>(o_.experts.hidden * size_of(o_.experts.type)) * 1e-3;
    const double sent = tokens * (pes_ - 1) * (1 - std::pow(1 - 1.0 / pes_, o_.experts.top_k));
    const double peers = model_.link.fabric == Fabric::kFullMesh ? std::max(1, pes_ - 1) : 1;
    const double link = model_.link.store_gbps.at(sms) * model_.link.all_to_all_efficiency * peers;
    const double local = std::min(model_.gpu.hbm_gbps, model_.gpu.block_hbm_gbps.at(sms));
    const double moved = tokens * (o_.experts.top_k + 1) + 2 * sent;
    return kBetweenSteps * std::max(sent * row / link, moved * row / local) + model_.gpu.graph_node_us;
  }

  /// The time of the overlapped second product with `beside` SMs for sums.
  double gemm_combine_us(int chunks, int beside) const {
    const double product = second_product_us(sms() - beside);
    const double rows = rows_us(beside) * (chunks - 1) / chunks;
    return std::max(product, product / chunks + rows) + rows_us(sms()) / chunks;
  }
  double first_product_us(int experts, int sms) const {
    return product_us(o_.intermediate * (is_gated(o_.activation) ? 2 : 1), o_.experts.hidden, experts, sms);
  }
  double second_product_us(int sms) const { return product_us(o_.experts.hidden, o_.intermediate, here_, sms); }

  /// As many early experts as keep the GEMM busy while rows travel.
  EarlyExperts early_experts(int beside) const {
    EarlyExperts early{std::min(kEarlyWaves, here_), 1};
    const double rows = rows_us(beside);
    while ((early.experts_of_wave + 1) * early.waves <= here_ && first_product_us(early.count(), sms() - beside) < rows)
      ++early.experts_of_wave;
    return early;
  }

 private:
  Machine model_;
  const ExpertGemmOptions& o_;
  int pes_;
  int here_;
};

/// The share of the SMs beside a GEMM, in sixteenths, with which the second product takes the least time.
int suitable_sms(const ExpertTimes& times, int chunks) {
  int best = 0;
  double least = 0;
  for (const int sixteenths : {1, 2, 3, 4}) {
    const int sms = std::max(1, times.sms() * sixteenths / 16 / 2 * 2);  // blocks of a GEMM come in pairs
    const double us = times.gemm_combine_us(chunks, sms);
    if (best > 0 && us >= least) continue;
    best = sms;
    least = us;
  }
  return std::min(best, std::max(1, times.sms() - 1));
}

}  // namespace

ExpertChoices choose_expert_forms(World& world, const ExpertGemmOptions& options) {
  ExpertChoices chosen{options, {}, {}};
  ExpertGemmOptions& o = chosen.options;
  const ExpertTimes times(world.machine(), world.team(), options);
  const std::string file = take_tuned_forms(world, o);
  const auto note = [&](const char* option, std::string value, bool is_given, bool is_tuned, const char* rule) {
    const OptionSource source = is_given   ? OptionSource::kCaller
                                : is_tuned ? OptionSource::kCache
                                           : OptionSource::kRule;
    chosen.choices.push_back({option, std::move(value), source, is_given ? "" : is_tuned ? file : rule});
  };
  const bool tuned_sms = !file.empty() && o.communication_sms >= 0;
  const bool tuned_chunks = !file.empty() && o.column_chunks > 0;
  const Size columns = ceil_div(o.experts.hidden, o.tile_n);
  if (o.column_chunks == 0) o.column_chunks = static_cast<int>(std::min<Size>(kColumnChunks, columns));
  if (o.communication_sms < 0) o.communication_sms = suitable_sms(times, o.column_chunks);
  chosen.early = times.early_experts(o.communication_sms);
  for (ExpertForm* const form : {&o.dispatch_gemm, &o.gemm_combine})
    if (*form == ExpertForm::kRule) *form = ExpertForm::kSequential;
  note("dispatch_gemm", name(o.dispatch_gemm), options.dispatch_gemm != ExpertForm::kRule, !file.empty(),
       "the overlapped form was slower for every shape in the simulator and on two GPUs");
  note("gemm_combine", name(o.gemm_combine), options.gemm_combine != ExpertForm::kRule, !file.empty(),
       "the overlapped form was slower for every shape on two GPUs");
  note("communication-sms", std::to_string(o.communication_sms), options.communication_sms >= 0, tuned_sms,
       "the fewest predicted microseconds among 1 to 4 sixteenths of the SMs");
  note("column-chunks", std::to_string(o.column_chunks), options.column_chunks > 0, tuned_chunks,
       "four, or the tiles in a row");
  return chosen;
}

}  // namespace tandem::ops
