// Overlapped operators in C.
#include <map>

#include "guard.h"

static_assert(TANDEM_ALL_GATHER_GEMM == static_cast<int>(tandem::Operator::kAllGatherGemm) &&
              TANDEM_GEMM_ALL_REDUCE == static_cast<int>(tandem::Operator::kGemmAllReduce));
static_assert(TANDEM_N_X_K == static_cast<int>(tandem::BLayout::kNxK) &&
              TANDEM_K_X_N == static_cast<int>(tandem::BLayout::kKxN));
static_assert(TANDEM_NO_ACTIVATION == static_cast<int>(tandem::Activation::kNone) &&
              TANDEM_RELU == static_cast<int>(tandem::Activation::kRelu) &&
              TANDEM_GELU == static_cast<int>(tandem::Activation::kGelu) &&
              TANDEM_SILU == static_cast<int>(tandem::Activation::kSilu));

struct tandem_plan {
  tandem::c::CWorld& world;
  std::unique_ptr<tandem::OperatorPlan> plan;
  std::size_t matrices;
  /// Streams that it has run in: each keeps what its GEMMs have prepared, which captured graphs use.
  std::map<cudaStream_t, tandem::Stream> streams;
};

namespace {

using tandem::Size;
using tandem::c::given;
using tandem::c::guarded;

bool flag(int value, const char* what) {
  if (value != 0 && value != 1)
    throw tandem::InvalidArgument(std::string(what) + ": " + std::to_string(value) + " given, allowed is 0 or 1");
  return value == 1;
}

tandem::OperatorOptions options_of(const tandem_problem& problem) {
  tandem::OperatorOptions options;
  options.m = static_cast<Size>(problem.m);
  options.n = static_cast<Size>(problem.n);
  options.k = static_cast<Size>(problem.k);
  options.type = tandem::c::type_of(problem.type);
  for (std::size_t i = 0; problem.ns != nullptr && i < problem.num_b; ++i)
    options.ns.push_back(static_cast<Size>(problem.ns[i]));
  constexpr auto kDefault = static_cast<tandem_dtype>(0);  // f32, which no operator of another type gives
  if (problem.out_type != kDefault) options.out_type = tandem::c::type_of(problem.out_type);
  if (problem.b_layout < TANDEM_N_X_K || problem.b_layout > TANDEM_K_X_N)
    throw tandem::InvalidArgument("b_layout: no tandem_layout given");
  options.b_layout = static_cast<tandem::BLayout>(problem.b_layout);
  if (problem.activation < TANDEM_NO_ACTIVATION || problem.activation > TANDEM_SILU)
    throw tandem::InvalidArgument("activation: no tandem_activation given");
  options.activation = static_cast<tandem::Activation>(problem.activation);
  options.a_scale_per_row = flag(problem.a_scale_per_row, "a_scale_per_row");
  options.b_scale_per_column = flag(problem.b_scale_per_column, "b_scale_per_column");
  return options;
}

}  // namespace

tandem_status tandem_plan_create(tandem_plan** plan, tandem_world* world, tandem_operator op,
                                 const tandem_problem* problem) {
  return guarded([&] {
    given(plan, "plan");
    if (op < TANDEM_ALL_GATHER_GEMM || op > TANDEM_GEMM_ALL_REDUCE)
      throw tandem::InvalidArgument("op: no tandem_operator given");
    tandem::c::CWorld& where = given(world, "world").world;
    const tandem::OperatorOptions options = options_of(given(problem, "problem"));
    auto made = where.make_plan(static_cast<tandem::Operator>(op), options);
    *plan = new tandem_plan{where, std::move(made), options.ns.empty() ? 1 : options.ns.size(), {}};
  });
}

tandem_status tandem_plan_run(tandem_plan* plan, size_t m, const void* a, const void* const* b, void* const* c,
                              void* stream) {
  const tandem_run run{m, a, b, c, nullptr, nullptr, nullptr, nullptr};
  return tandem_plan_run_with(plan, &run, stream);
}

tandem_status tandem_plan_run_with(tandem_plan* plan, const tandem_run* run, void* stream) {
  return guarded([&] {
    tandem_plan& made = given(plan, "plan");
    const tandem_run& r = given(run, "run");
    given(r.b, "b");
    given(r.c, "c");
    auto* const native = static_cast<cudaStream_t>(stream);
    auto found = made.streams.find(native);
    if (found == made.streams.end()) found = made.streams.emplace(native, made.world.borrow_stream(native)).first;
    made.world.order_after_last(native);
    const auto listed = [&]<class T>(T* const* list) {
      return std::span<T* const>(list, list == nullptr ? 0 : made.matrices);
    };
    made.plan->run(found->second, {static_cast<Size>(r.m), r.a, listed(r.b), listed(r.c), listed(r.bias), r.a_scale,
                                   listed(r.b_scale), listed(r.c_scale)});
  });
}

tandem_status tandem_plan_destroy(tandem_plan* plan) {
  return guarded([&] { delete plan; });
}
