#include "operators/normed/normed_plan.h"

#include <algorithm>
#include <optional>

#include "gemm/contract/skinny.h"
#include "operators/gemm_all_reduce/plan.h"
#include "operators/normed/normed_packets.h"
#include "operators/normed/row_norms.h"
#include "operators/plan/gemm_descriptor.h"

namespace tandem::ops {

namespace {

/// Returns the rows up to which the GEMM's blocks add and norm what they computed; 0 for none.
Size rows_of_normed_gemm(Operator op, const Settings& settings, const World& world) {
  const OperatorOptions& o = settings.options;
  const bool suits = op == Operator::kGemmAllReduce && o.norm.norm == Norm::kRms &&
                     o.norm.quantisation == Quantisation::kNone && o.form == Form::kOverlapped;
  const Size rows = std::min<Size>(settings.all_reduce.few, kSkinnyBlock);
  return suits && skinny_norms(rows, o.n, world.machine().gpu.sm_count) ? rows : 0;
}

class NormedPlan final : public OperatorPlan {
 public:
  NormedPlan(World& world, Operator op, const Settings& settings, std::unique_ptr<OperatorPlan> plain)
      : OperatorPlan(settings.options),
        op_(op),
        team_(world.team()),
        settings_(settings),
        few_rows_(rows_of_normed_gemm(op, settings, world)),
        packet_rows_(rows_of_normed_packets(op, settings, team_)),
        norms_(world, settings.options, most_rows(settings.options.m)),
        plain_(std::move(plain)) {
    if (few_rows_ > 0) few_.emplace(world, settings);
    if (packet_rows_ > 0) packets_.emplace(world, settings, packet_rows_);
  }

  std::string strategy(Size m) const override {
    if (m <= few_rows_) return "few_rows";
    return m <= packet_rows_ ? "packets" : plain_->strategy(m);
  }

 private:
  Size rows_of(Size m) const { return op_ == Operator::kGemmReduceScatter ? split(m, team_.size)[team_.me].size() : m; }
  /// Returns the most rows that a call of up to `m` rows gives to this PE. A later PE's part can be larger for fewer
  /// rows.
  Size most_rows(Size m) const { return op_ == Operator::kGemmReduceScatter ? split(m, team_.size)[0].size() : m; }
  bool is_part() const { return options().form == Form::kComputeOnly || options().form == Form::kCommunicationOnly; }

  void enqueue(Stream& main, const OperatorCall& call) override {
    if (call.m <= few_rows_) {
      const Gemm gemm = partial_gemm(settings_, team_, call);
      if (few_->run_normed(main, gemm, team_, call)) return;
    }
    if (call.m <= packet_rows_) return packets_->run(main, call);
    OperatorCall sums = call;
    void* const place = norms_.place_of_sums(call);
    sums.c = {&place, 1};
    sums.residual = sums.norm_weight = sums.norm_bias = nullptr;
    sums.sum = nullptr;
    sums.scales = nullptr;
    plain_->run(main, sums);
    if (!is_part()) norms_.run(main, call, rows_of(call.m));
  }

  Operator op_;
  Team team_;
  Settings settings_;
  Size few_rows_, packet_rows_;
  RowNorms norms_;
  std::unique_ptr<OperatorPlan> plain_;
  std::optional<SkinnyGemmSum> few_;
  std::optional<NormedPackets> packets_;
};

}  // namespace

Settings without_norm(Settings settings) {
  settings.options.norm = settings.sequential.norm = {};
  return settings;
}

std::unique_ptr<OperatorPlan> make_normed(World& world, Operator op, const Settings& settings,
                                          std::unique_ptr<OperatorPlan> plain) {
  return std::make_unique<NormedPlan>(world, op, settings, std::move(plain));
}

}  // namespace tandem::ops
