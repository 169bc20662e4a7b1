// Overlapped operators in C.
#include <map>

#include "guard.h"

static_assert(TANDEM_ALL_GATHER_GEMM == static_cast<int>(tandem::Operator::kAllGatherGemm) &&
              TANDEM_GEMM_ALL_REDUCE == static_cast<int>(tandem::Operator::kGemmAllReduce));

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

tandem::OperatorOptions options_of(const tandem_problem& problem) {
  tandem::OperatorOptions options;
  options.m = static_cast<Size>(problem.m);
  options.n = static_cast<Size>(problem.n);
  options.k = static_cast<Size>(problem.k);
  options.type = tandem::c::type_of(problem.type);
  for (std::size_t i = 0; problem.ns != nullptr && i < problem.num_b; ++i)
    options.ns.push_back(static_cast<Size>(problem.ns[i]));
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
  return guarded([&] {
    tandem_plan& made = given(plan, "plan");
    given(b, "b");
    given(c, "c");
    auto* const native = static_cast<cudaStream_t>(stream);
    auto found = made.streams.find(native);
    if (found == made.streams.end()) found = made.streams.emplace(native, made.world.borrow_stream(native)).first;
    made.world.order_after_last(native);
    made.plan->run(found->second, {static_cast<Size>(m), a, {b, made.matrices}, {c, made.matrices}});
  });
}

tandem_status tandem_plan_destroy(tandem_plan* plan) {
  return guarded([&] { delete plan; });
}
