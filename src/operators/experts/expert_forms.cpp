#include "operators/experts/expert_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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
    GemmShape shape{panels * o_.tile_m, n, k, static_cast<int>(size_of(o_.experts.type))};
    shape.groups = std::max(1, experts);
    const GemmTileTimes times = gemm_tile_times(model_, o_.tile_m, o_.tile_n, shape, sms);
    return static_cast<double>(tiles / sms) * times.whole_us + (tiles % sms > 0 ? times.last_us : 0) +
           model_.gemm.launch_us;
  }

  /// Rows between PEs and from place to place, on so many SMs. The way out and the way home have the same bytes.
  double rows_us(int sms) const {
    const auto tokens = static_cast<double>(o_.experts.max_tokens);
    const double row = static_cast<double>(o_.experts.hidden * size_of(o_.experts.type)) * 1e-3;
    const double sent = tokens * (pes_ - 1) * (1 - std::pow(1 - 1.0 / pes_, o_.experts.top_k));
    const double peers = model_.link.fabric == Fabric::kFullMesh ? std::max(1, pes_ - 1) : 1;
    const double link = model_.link.store_gbps.at(sms) * model_.link.all_to_all_efficiency * peers;
    const double local = std::min(model_.gpu.hbm_gbps, model_.gpu.block_hbm_gbps.at(sms));
    return sent * row / link + (tokens * (o_.experts.top_k + 1) + 2 * sent) * row / local;
  }
  /// The share of the rows that the first `experts` need.
  double share_of(int experts) const {
    const double choices = static_cast<double>(o_.experts.top_k) / pes_;
    return 1 - std::pow(1 - static_cast<double>(experts) / here_, std::max(1.0, choices));
  }

 private:
  Machine model_;
  const ExpertGemmOptions& o_;
  int pes_;
  int here_;
};

}  // namespace

ExpertChoices choose_expert_forms(const Machine& machine, const Team& team, const ExpertGemmOptions& options) {
  ExpertChoices chosen{options, {}, {}};
  ExpertGemmOptions& o = chosen.options;
  const ExpertTimes times(machine, team, options);
  const auto note = [&](const char* option, std::string value, bool is_given, const char* rule) {
    chosen.choices.push_back({option, std::move(value), is_given ? OptionSource::kCaller : OptionSource::kRule,
                              is_given ? "" : rule});
  };
  const int here = times.experts_here();
  if (o.communication_sms < 0) o.communication_sms = std::max(1, machine.gpu.sm_count / 8);
  const Size columns = ceil_div(o.experts.hidden, o.tile_n);
  if (o.column_chunks == 0) o.column_chunks = static_cast<int>(std::min<Size>(kColumnChunks, columns));
  chosen.early.waves = std::min(kEarlyWaves, here);
  chosen.early.experts_of_wave = std::max(1, here / 8);
  if (o.dispatch_gemm == ExpertForm::kRule) o.dispatch_gemm = ExpertForm::kSequential;
  if (o.gemm_combine == ExpertForm::kRule) o.gemm_combine = ExpertForm::kSequential;
  note("dispatch_gemm", name(o.dispatch_gemm), options.dispatch_gemm != ExpertForm::kRule, "");
  note("gemm_combine", name(o.gemm_combine), options.gemm_combine != ExpertForm::kRule, "");
  return chosen;
}

}  // namespace tandem::ops
