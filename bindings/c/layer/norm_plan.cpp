#include "layer/norm_plan.h"

#include <algorithm>

#include "collectives/all_reduce_norm/check.h"

namespace tandem::c {

namespace {

bool has_two_shots(const AllReduceNormOptions& options) {
  const auto& all = all_reduce_norm_algorithms();
  return std::any_of(all.begin(), all.end(),
                     [&](const auto& one) { return one.name == options.algorithm && one.two_shots; });
}

/// The bytes of `rows` rows of a plan's output.
Size out_bytes(const AllReduceNormOptions& o, Size rows) {
  return rows * o.hidden * (o.quantisation == Quantisation::kNone ? size_of(o.type) : Size{1});
}

}  // namespace

NormPlan::NormPlan(World& world, const AllReduceNormOptions& options, bool any_memory)
    : world_(world), plan_(make_all_reduce_norm(world, options)) {
  copies_ = any_memory && has_two_shots(plan_->options());
  if (copies_) allocate();
}

void NormPlan::allocate() {
  const AllReduceNormOptions& o = plan_->options();
  detail::NotedAllocations allocations = world_.note_allocations();
  copy_.in = world_.heap().allocate<std::byte>(o.max_rows * o.hidden * size_of(o.type), "copies of input and sum");
  copy_.out = world_.heap().allocate<std::byte>(out_bytes(o, o.max_rows), "copy of the output");
  if (const Size scales = kernels::scales_of_row(o); scales > 0)
    copy_.scales = world_.heap().allocate<float>(o.max_rows * scales, "copy of the scales");
  memory_ = allocations.take();
}

void NormPlan::run(Stream& stream, const AllReduceNormCall& call) {
  if (!copies_) return plan_->run(stream, call);
  kernels::check(plan_->options(), world_, call, /*two_shots=*/false);
  run_on_copies(stream, call);
}

void NormPlan::run_on_copies(Stream& stream, const AllReduceNormCall& call) {
  const AllReduceNormOptions& o = plan_->options();
  const Size bytes = call.rows * o.hidden * size_of(o.type);
  const bool copies_sum = o.sum && !o.sharded_residual;
  AllReduceNormCall inner = call;
  inner.in = copy_.in;
  inner.out = copy_.out;
  inner.scales = copy_.scales;
  if (copies_sum) inner.sum = copy_.in;
  const auto copy = [&](void* to, const void* from, Size size) {
    if (size > 0) stream.copy_async(to, from, size);
  };
  copy(copy_.in.local(), call.rows > 0 ? call.in.local() : nullptr, bytes);
  plan_->run(stream, inner);
  if (call.rows == 0) return;
  copy(call.out.local(), copy_.out.local(), out_bytes(o, call.rows));
  if (copies_sum) copy(call.sum.local(), copy_.in.local(), bytes);
  if (copy_.scales)
    copy(call.scales.local(), copy_.scales.local(),
         call.rows * kernels::scales_of_row(o) * static_cast<Size>(sizeof(float)));
}

}  // namespace tandem::c
