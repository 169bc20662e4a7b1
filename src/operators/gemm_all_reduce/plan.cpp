/// Overlapped GEMM + AllReduce. Growing numbers of rows are summed within the GEMM, by packets after it, in one shot,
/// sequentially, and in two shots or a chain. The sequential form suits shards of less than a wave of tiles. Nodes
/// exchange chunks. A collective rounds its sums. The sequential form of activated sums is therefore two shots behind a
/// whole GEMM.

#include "operators/gemm_all_reduce/plan.h"

#include <algorithm>
#include <optional>

#include "gemm/contract/skinny.h"
#include "operators/plan/double_buffered_plan.h"
#include "operators/plan/gemm_descriptor.h"
#include "operators/steps/between_nodes.h"

namespace tandem::ops {

namespace {

bool has_activation(const OperatorOptions& o) { return o.activation != Activation::kNone; }

class GemmAllReduce final : public OperatorPlan {
 public:
  GemmAllReduce(World& world, const Settings& settings)
      : OperatorPlan(settings.options), settings_(settings), team_(world.team()) {
    const OperatorOptions& o = settings.options;
    if (!team_.one_node()) {
      between_nodes_.emplace(world, settings);
      return;
    }
    if (o.form == Form::kOverlapped) {
      add_up_rows_ = settings.all_reduce.few;
      packet_rows_ = settings.all_reduce.packets;
      one_shot_rows_ = settings.all_reduce.one_shot;
      is_chain_ = o.reduction == Reduction::kChain;
      sequential_rows_ = std::min(o.m, settings.sequential_rows);
    }
    if (add_up_rows_ > 0) skinny_.emplace(world, settings);
    if (packet_rows_ > 0) packets_ = sequential(world, settings, packet_rows_);
    if (one_shot_rows_ > packet_rows_) one_shot_.emplace(world, settings, one_shot_rows_);
    const Size few = std::max(packet_rows_, one_shot_rows_);
    if (sequential_rows_ > few) sequential_ = sequential(world, settings, sequential_rows_);
    if (std::max(few, sequential_rows_) == o.m) return;
    if (is_chain_)
      ring_ = make_double_buffered(world, settings, make_gemm_all_reduce_ring);
    else
      two_shot_.emplace(world, settings);
  }

  std::string strategy(Size m) const override {
    if (settings_.options.form != Form::kOverlapped) return name(settings_.options.form);
    if (between_nodes_) return "chunks";
    if (m <= add_up_rows_ && skinny_adds_up(m)) return "few_rows";
    if (m <= packet_rows_) return "packets";
    if (m <= one_shot_rows_) return "one_shot";
    if (m <= sequential_rows_) return "sequential";
    return is_chain_ ? "chain" : "two_shot";
  }

 private:
  void enqueue(Stream& main, const OperatorCall& call) override {
    const Gemm gemm = partial_gemm(settings_, team_, call);  // each strategy sets its destination
    if (between_nodes_) return between_nodes_->run(main, gemm, call.c[0]);
    if (call.m <= add_up_rows_ && skinny_->run(main, gemm, team_, call.c[0])) return;
    if (call.m <= packet_rows_) return packets_->run(main, call);
    if (call.m <= one_shot_rows_) return one_shot_->run(main, gemm, call.c[0]);
    if (call.m <= sequential_rows_) return sequential_->run(main, call);
    if (is_chain_) return ring_->run(main, call);
    two_shot_->run(main, gemm, call.c[0]);
  }

  static std::unique_ptr<OperatorPlan> sequential(World& world, Settings settings, Size rows) {
    settings.options = settings.sequential;
    settings.options.m = rows;
    return make_gemm_all_reduce(world, settings);
  }

  Settings settings_;
  Team team_;
  Size add_up_rows_ = 0, packet_rows_ = 0, one_shot_rows_ = 0, sequential_rows_ = 0;
  std::optional<SkinnyGemmSum> skinny_;
  std::optional<OneShot> one_shot_;
  std::optional<TwoShot> two_shot_;
  bool is_chain_ = false;
  std::unique_ptr<OperatorPlan> packets_, sequential_, ring_;
  std::optional<BetweenNodes> between_nodes_;
};

}  // namespace

std::unique_ptr<OperatorPlan> make_gemm_all_reduce(World& world, const Settings& settings) {
  const OperatorOptions& o = settings.options;
  const bool adds_up = o.form != Form::kComputeOnly && o.form != Form::kCommunicationOnly;
  if (adds_up && has_activation(o) && !world.team().one_node()) return make_gemm_all_reduce_by_shards(world, settings);
  if (!adds_up || (o.form == Form::kSequential && !has_activation(o)))
    return make_gemm_all_reduce_sequential(world, settings);
  return std::make_unique<GemmAllReduce>(world, settings);
}

}  // namespace tandem::ops
