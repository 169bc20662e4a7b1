#include "operators/normed/normed_plan.h"

#include <algorithm>
#include <optional>

#include "gemm/contract/skinny.h"
#include "operators/gemm_all_reduce/plan.h"
#include "operators/normed/normed_packets.h"
#include "operators/normed/row_norms.h"
#include "operators/plan/gemm_descriptor.h"
#include "tandem/advanced/local_handle.h"

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
        world_(world),
        team_(world.team()),
        settings_(settings),
        few_rows_(rows_of_normed_gemm(op, settings, world)),
        packet_rows_(rows_of_normed_packets(op, settings, world)),
        norms_(world, settings.options.norm, settings.options.result_type(), settings.options.n,
               most_rows(settings.options.m)),
        plain_(std::move(plain)) {
    // A quantised C has no room for its sums. A buffer of one PE would not make the heap grow.
    if (settings.options.norm.quantisation != Quantisation::kNone)
      sums_ =
          world.heap()
              .allocate<std::byte>(most_rows(settings.options.m) * settings.result_row_bytes(), "sums before the norm")
              .local();
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

  RowsToNorm rows_to_norm(const OperatorCall& call, const void* sums) const {
    return {.rows = rows_of(call.m),
            .from = sums,
            .residual = call.residual,
            .weight = call.norm_weight,
            .bias = call.norm_bias,
            .out = local_handle(world_, static_cast<std::byte*>(call.c[0])),
            .sum = call.sum,
            .scales = local_handle(world_, call.scales)};
  }

  void enqueue(Stream& main, const OperatorCall& call) override {
    if (call.m <= few_rows_) {
      const Gemm gemm = partial_gemm(settings_, team_, call);
      if (few_->run_normed(main, gemm, team_, call)) return;
    }
    if (call.m <= packet_rows_) return packets_->run(main, call);
    OperatorCall sums = call;
    void* const place = sums_ != nullptr ? sums_ : call.c[0];
    sums.c = {&place, 1};
    sums.residual = sums.norm_weight = sums.norm_bias = nullptr;
    sums.sum = nullptr;
    sums.scales = nullptr;
    plain_->run(main, sums);
    if (!is_part()) norms_.run(main, rows_to_norm(call, place));
  }

  Operator op_;
  World world_;
  Team team_;
  Settings settings_;
  Size few_rows_, packet_rows_;
  RowNorms norms_;
  std::byte* sums_ = nullptr;
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
