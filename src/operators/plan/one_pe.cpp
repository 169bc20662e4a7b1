#include "operators/plan/one_pe.h"

#include "operators/plan/gemm_descriptor.h"

namespace tandem::ops {

OnePe::OnePe(World& world, const Settings& settings)
    : OperatorPlan(settings.options), settings_(settings), team_(world.team()), norm_(ShardNorm::of(world, settings)) {
  const OperatorOptions& o = settings.options;
  if (norm_) normed_ = world.heap().allocate<std::byte>(o.m * o.k * size_of(o.type), "all_gather_gemm normed rows");
}

void OnePe::enqueue(Stream& main, const OperatorCall& call) {
  const OperatorOptions& o = settings_.options;
  if (norm_) norm_->run(main, call, {0, call.m}, normed_);
  const void* const a = norm_ ? normed_.local() : call.a;
  for (std::size_t i = 0; i < call.b.size() && o.form != Form::kCommunicationOnly; ++i) {
    Gemm gemm = gathered_gemm(settings_, team_, call, i);
    gemm.a = a;
    main.gemm(gemm, team_);
  }
  if (call.gathered != nullptr) main.copy_async(call.gathered, a, call.m * o.k * size_of(o.type));
}

}  // namespace tandem::ops
