/// AllGather + GEMM: the shards of A travel while the GEMM works. Own rows come first, and each tile waits for its own
/// rows only (Triton-distributed, arXiv 2504.19442). docs/internals/all_gather_gemm.md explains it step by step.

#include <algorithm>

#include "operators/all_gather_gemm/gather_transport.h"
#include "operators/all_gather_gemm/gathered_scales.h"
#include "operators/plan/gemm_descriptor.h"
#include "operators/resolve/operator_check.h"
#include "operators/steps/steps.h"
#include "tandem/advanced/gemm_order.h"

namespace tandem::ops {

namespace {

class AllGatherGemm final : public OperatorPlan {
 public:
  AllGatherGemm(World& world, const Settings& settings)
      : OperatorPlan(settings.options),
        settings_(settings),
        team_(world.team()),
        sms_(world.machine().gpu.sm_count),
        scales_(world, settings),
        norm_(made_norm(world, settings, scales_)),
        transport_(world, settings, norm_ ? &*norm_ : nullptr) {
    if (!norm_ || quantisation_of_a(Operator::kAllGatherGemm, settings.options) != Quantisation::kStatic) return;
    const auto scale = static_cast<float>(settings.options.norm.scale);
    static_scale_ = world.heap().allocate_local<float>(1, "all_gather_gemm scale");
    world.copy_in(static_scale_, &scale, sizeof(scale));
  }

 private:
  /// Half of the operator has no norm.
  static std::optional<ShardNorm> made_norm(World& world, const Settings& settings, const GatheredScales& scales) {
    const Form form = settings.options.form;
    const bool is_half = form == Form::kComputeOnly || form == Form::kCommunicationOnly;
    return settings.options.norm.any() && !is_half
               ? std::optional<ShardNorm>(std::in_place, world, settings, scales.own())
               : std::nullopt;
  }

  void enqueue(Stream& main, const OperatorCall& call) override {
    const Form form = settings_.options.form;
    if (form == Form::kComputeOnly) return multiply(main, call, &AllGatherGemm::whole);
    if (team_.size == 1) return run_alone(main, call);
    transport_.begin(main, call);  // producers first: nothing promises that streams run side by side
    scales_.gather(main, call.a_scale, call.m);
    if (form == Form::kOverlapped) multiply(main, call, &AllGatherGemm::gated);
    if (form == Form::kDecomposed) shard_by_shard(main, call);
    // Own sends come before the wait. During the wait the next GEMM may already take all SMs (programmatic dependent
    // launch). A send without an SM would block a peer.
    transport_.end(main);
    const bool waits = form == Form::kSequential || form == Form::kCommunicationOnly;
    // A GEMM without columns has waited for no rows.
    if (waits || call.gathered != nullptr) transport_.await(main, 0, team_.size);
    if (form == Form::kSequential) {
      transport_.place_own(main, call);
      multiply(main, call, &AllGatherGemm::whole);
    }
    if (call.gathered != nullptr) copy_gathered(main, call);
  }

  /// Runs a call of the only PE, which has all rows and norms them. Calls without a norm have a plan of their own
  /// (OnePe).
  void run_alone(Stream& main, const OperatorCall& call) const {
    if (norm_) norm_->run(main, call, {0, call.m}, transport_.place_of_own());
    if (settings_.options.form != Form::kCommunicationOnly) multiply(main, call, &AllGatherGemm::own);
    const Size bytes = call.m * settings_.options.k * size_of(settings_.options.type);
    if (call.gathered != nullptr) main.copy_async(call.gathered, transport_.own(call), bytes);
  }

  /// Peers send the next rows only after the next call's first step, so the gathered rows are still there.
  void copy_gathered(Stream& main, const OperatorCall& call) const {
    const Size row = settings_.options.k * size_of(settings_.options.type);
    const Range own = bytes_of(transport_.rows().shard(team_.me), row);
    auto* const to = static_cast<std::byte*>(call.gathered);
    const auto copy = [&](Range bytes, const std::byte* from) {
      if (!bytes.empty()) main.copy_async(to + bytes.begin, from, bytes.size());
    };
    copy({0, own.begin}, transport_.gathered());
    copy(own, transport_.own(call));
    copy({own.end, call.m * row}, transport_.gathered() + own.end);
  }

  /// Enqueues a GEMM of the gathered rows with each B.
  void multiply(Stream& main, const OperatorCall& call,
                Gemm (AllGatherGemm::*descriptor)(const OperatorCall&, std::size_t) const) const {
    for (std::size_t i = 0; i < call.b.size(); ++i) main.gemm((this->*descriptor)(call, i), team_);
  }

  /// Returns the problem with the i-th B where A has the own rows alone.
  Gemm own(const OperatorCall& call, std::size_t i) const {
    Gemm gemm = gathered_gemm(settings_, team_, call, i);
    gemm.a = transport_.own(call);
    if (norm_ && scales_.own()) gemm.scales.a = scales_.own().local();
    if (static_scale_ != nullptr) gemm.scales.a = static_scale_;
    return gemm;
  }

  /// Returns the gathered problem with the i-th B on all SMs, without waits. It ignores shards, which would cut tiles.
  Gemm whole(const OperatorCall& call, std::size_t i) const {
    Gemm gemm = gathered_gemm(settings_, team_, call, i);
    gemm.a = transport_.gathered();
    if (scales_.all() != nullptr) gemm.scales.a = scales_.all();
    if (static_scale_ != nullptr) gemm.scales.a = static_scale_;
    return gemm;
  }

  /// Own rows are read from the user's memory, or where the norm has put them. The rows for which the first B has
  /// waited are in place for the others.
  Gemm gated(const OperatorCall& call, std::size_t i) const {
    Gemm gemm = whole(call, i);
    gemm.own_a = transport_.own(call);
    gemm.order = settings_.order;
    gemm.gate = transport_.gate();
    const int steps = transport_.has_steps_beside_gemm() ? kStepSms : 0;
    gemm.sms = std::max(1, sms_ - settings_.options.communication_sms - steps);
    return gemm;
  }

  /// Enqueues one GEMM for each shard and B, when the shard's rows have arrived.
  void shard_by_shard(Stream& main, const OperatorCall& call) {
    const Gemm first = gated(call, 0);
    const TileSequence sequence(first);
    for (int step = 0; step < team_.size; ++step) {
      const int owner = sequence.owner(step);
      if (owner != team_.me) transport_.await(main, owner, 1);
      for (std::size_t i = 0; i < call.b.size(); ++i) main.gemm(chunk(gated(call, i), owner), team_);
    }
  }

  Gemm chunk(const Gemm& all, int owner) const {
    Gemm chunk = rows_of(all, all.rows.shard(owner));
    if (owner == team_.me) chunk.a = all.own_a;
    chunk.own_a = nullptr;
    chunk.gate = {};
    return chunk;
  }

  Settings settings_;
  Team team_;
  int sms_;
  GatheredScales scales_;
  std::optional<ShardNorm> norm_;  // the transport refers to it
  GatherTransport transport_;
  float* static_scale_ = nullptr;  // of an A that its norm quantises with a given scale
};

}  // namespace

std::unique_ptr<OperatorPlan> make_all_gather_gemm(World& world, const Settings& settings) {
  return std::make_unique<AllGatherGemm>(world, settings);
}

}  // namespace tandem::ops
