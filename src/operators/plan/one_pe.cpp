#include "operators/plan/one_pe.h"

#include "operators/plan/gemm_descriptor.h"

namespace tandem::ops {

void OnePe::enqueue(Stream& main, const OperatorCall& call) {
  const OperatorOptions& o = settings_.options;
  for (std::size_t i = 0; i < call.b.size() && o.form != Form::kCommunicationOnly; ++i) {
    Gemm gemm = gathered_gemm(settings_, team_, call, i);
    gemm.a = call.a;
    main.gemm(gemm, team_);
  }
  if (call.gathered != nullptr) main.copy_async(call.gathered, call.a, call.m * o.k * size_of(o.type));
}

}  // namespace tandem::ops
