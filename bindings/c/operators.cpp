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
              TANDEM_SILU == static_cast<int>(tandem::Activation::kSilu) &&
              TANDEM_SWIGLU == static_cast<int>(tandem::Activation::kSwiGlu) &&
              TANDEM_GEGLU == static_cast<int>(tandem::Activation::kGeGlu));

struct tandem_plan {
  tandem_world& world;
  std::unique_ptr<tandem::OperatorPlan> plan;
  std::size_t matrices;
  /// Streams that it has run in: each keeps what its GEMMs have prepared, which captured graphs use.
  std::map<void*, tandem::Stream> streams;
};

namespace {

using tandem::Size;
using tandem::c::flag;
using tandem::c::given;
using tandem::c::guarded;
using tandem::c::one_of;
using tandem::c::size_of_c;

tandem::c::Handles<tandem_plan>& plans() {
  static auto& all = *new tandem::c::Handles<tandem_plan>("tandem_plan");  // never destroyed, as worlds() is not
  return all;
}

tandem::OperatorNorm norm_of(const tandem_problem& problem) {
  tandem::OperatorNorm norm;
  norm.norm = static_cast<tandem::Norm>(one_of(problem.norm, TANDEM_NO_NORM, TANDEM_LAYER_NORM, "norm", "tandem_norm"));
  if (problem.epsilon != 0) norm.epsilon = problem.epsilon;
  norm.residual = flag(problem.residual, "residual");
  norm.norm_bias = flag(problem.norm_bias, "norm_bias");
  norm.sum = flag(problem.sum, "sum");
  norm.quantisation = static_cast<tandem::Quantisation>(
      one_of(problem.quantisation, TANDEM_NOT_QUANTISED, TANDEM_SCALE_PER_128, "quantisation", "tandem_quantisation"));
  if (problem.scale != 0 || norm.quantisation == tandem::Quantisation::kStatic) norm.scale = problem.scale;
  return norm;
}

tandem::OperatorOptions options_of(const tandem_problem& problem) {
  tandem::OperatorOptions options;
  options.m = size_of_c(problem.m, "m");
  options.n = size_of_c(problem.n, "n");
  options.k = size_of_c(problem.k, "k");
  options.type = tandem::c::type_of(problem.type);
  // Each has a column at least.
  const std::size_t most = problem.ns != nullptr ? problem.n : 1;
  if (problem.num_b > most)
    throw tandem::InvalidArgument(fmt::format("num_b: {} given, allowed is at most {}", problem.num_b,
                                              problem.ns != nullptr ? "n" : "1 where ns is NULL"));
  for (std::size_t i = 0; problem.ns != nullptr && i < problem.num_b; ++i)
    options.ns.push_back(size_of_c(problem.ns[i], "ns"));
  if (problem.out_type != tandem_dtype{}) options.out_type = tandem::c::type_of(problem.out_type, "out_type");
  options.b_layout =
      static_cast<tandem::BLayout>(one_of(problem.b_layout, TANDEM_N_X_K, TANDEM_K_X_N, "b_layout", "tandem_layout"));
  options.activation = static_cast<tandem::Activation>(
      one_of(problem.activation, TANDEM_NO_ACTIVATION, TANDEM_GEGLU, "activation", "tandem_activation"));
  options.a_scale_per_row = flag(problem.a_scale_per_row, "a_scale_per_row");
  options.b_scale_per_column = flag(problem.b_scale_per_column, "b_scale_per_column");
  options.block_scales = flag(problem.block_scales, "block_scales");
  options.fast_accumulation = flag(problem.fast_accumulation, "fast_accumulation");
  options.norm = norm_of(problem);
  return options;
}

}  // namespace

tandem_status tandem_plan_create(tandem_plan** plan, tandem_world* world, tandem_operator op,
                                 const tandem_problem* problem) {
  return guarded([&] {
    given(plan, "plan") = nullptr;
    one_of(op, TANDEM_ALL_GATHER_GEMM, TANDEM_GEMM_ALL_REDUCE, "op", "tandem_operator");
    const tandem::c::InWorld where(world);
    tandem::OperatorOptions options = options_of(given(problem, "problem"));
    if (flag(problem->shares_memory, "shares_memory")) options.memory = where->transport_memory();
    auto made = where->make_plan(static_cast<tandem::Operator>(op), options);
    const std::size_t matrices = options.ns.empty() ? 1 : options.ns.size();
    *plan = plans().keep(std::unique_ptr<tandem_plan>(new tandem_plan{where.handle(), std::move(made), matrices, {}}));
    ++where.handle().plans;
  });
}

tandem_status tandem_plan_run(tandem_plan* plan, size_t m, const void* a, const void* const* b, void* const* c,
                              void* stream) {
  tandem_run run{};
  run.m = m;
  run.a = a;
  run.b = b;
  run.c = c;
  return tandem_plan_run_with(plan, &run, stream);
}

tandem_status tandem_plan_run_with(tandem_plan* plan, const tandem_run* run, void* stream) {
  return guarded([&] {
    const auto made = plans().at(plan, "plan");
    const tandem::c::InWorld world(&made->world);
    const tandem_run& r = given(run, "run");
    given(r.b, "b");
    given(r.c, "c");
    auto* const native = stream;
    auto found = made->streams.find(native);
    if (found == made->streams.end()) found = made->streams.emplace(native, world->borrow_stream(native)).first;
    const auto listed = [&]<class T>(T* const* list) {
      return std::span<T* const>(list, list == nullptr ? 0 : made->matrices);
    };
    world->in_order(native, [&](bool) {
      made->plan->run(found->second,
                      {size_of_c(r.m, "m"), r.a, listed(r.b), listed(r.c), listed(r.bias), r.a_scale, listed(r.b_scale),
                       listed(r.c_scale), r.gathered, r.residual, r.norm_weight, r.norm_bias, r.sum, r.scales});
    });
  });
}

tandem_status tandem_interleave_gates(const void* gates, const void* ups, size_t count, size_t bytes, void* to) {
  return guarded([&] {
    const Size elements = size_of_c(count, "count");
    const Size size = size_of_c(bytes, "bytes");
    if (elements % tandem::kGateGroup != 0)
      throw tandem::InvalidArgument(
          fmt::format("count: {} given, allowed are multiples of {}", elements, tandem::kGateGroup));
    if (elements == 0 || size == 0) return;
    for (const auto& [name, address] :
         {std::pair{"gates", gates}, std::pair{"ups", ups}, std::pair{"to", static_cast<const void*>(to)}})
      if (address == nullptr) throw tandem::InvalidArgument(fmt::format("{}: NULL given, allowed is an address", name));
    tandem::interleave_gates(gates, ups, elements, size, to);
  });
}

tandem_status tandem_plan_destroy(tandem_plan* plan) {
  return guarded([&] {
    if (plan == nullptr) return;
    tandem_world& world = plans().at(plan, "plan")->world;
    const auto use = tandem::c::worlds().at(&world, "world");
    const auto current = tandem::c::current_unless_lost(use->world);
    plans().destroy(plan, "plan", [](const tandem_plan&) {});
    --world.plans;
  });
}
