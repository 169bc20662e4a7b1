/// Plans of both products of a layer with experts, and the checks of their options and calls.

#include "tandem/layer/expert_gemms.h"

#include <fmt/format.h>

#include <initializer_list>
#include <utility>

#include "base/log.h"
#include "collectives/experts/check.h"
#include "collectives/experts/plan.h"
#include "collectives/experts/routing_notes.h"
#include "operators/experts/dispatch_gemm.h"
#include "operators/experts/expert_forms.h"
#include "operators/experts/gemm_combine.h"
#include "runtime/mismatch_detector.h"
#include "tandem/error.h"

namespace tandem {

namespace {

struct TileOfExperts {
  int rows, columns;
  double most_rows;  // of an expert on average, by rule
};
/// On one H200 these limits were the greatest with a gain for all shapes. Up to them nearly all experts have one tile:
/// of random choices 99 %, in fp8 95 %.
constexpr TileOfExperts kTileOfFew{64, 128, 48}, kTileOfFewInFp8{32, 128, 24}, kTileOfMany{128, 256, 0};

constexpr ExpertForm kForms[] = {ExpertForm::kRule, ExpertForm::kSequential, ExpertForm::kOverlapped};

void require(bool holds, const char* option, const std::string& given, const std::string& allowed) {
  if (!holds) throw InvalidArgument(fmt::format("{}: {} given to experts, allowed {}", option, given, allowed));
}

void check_fp8(const ExpertGemmOptions& o) {
  if (!ops::is_fp8(o)) return;
  require(o.experts.type == DType::kBF16, "type", name(o.experts.type), "is bf16 with fp8 products");
  require(o.tile_n % kScaleBlock == 0, "tile_n", std::to_string(o.tile_n),
          fmt::format("are multiples of {} with fp8 products", kScaleBlock));
  require(o.dispatch_gemm != ExpertForm::kOverlapped, "dispatch_gemm", name(o.dispatch_gemm),
          "is sequential with fp8 products");
}

void check_options(const ExpertGemmOptions& given, int pes) {
  using kernels::check_number;
  const ExpertOptions& e = given.experts;
  const int least = given.tile_m == 0 && given.tile_n == 0 ? 0 : 1;  // both are chosen, or none
  check_number("tile_m", given.tile_m, least, 1024);
  check_number("tile_n", given.tile_n, least, 1 << 16);
  const ExpertGemmOptions o = with_tile(given, pes);
  require(e.align == 1 || e.align % o.tile_m == 0, "align", std::to_string(e.align),
          fmt::format("are 1 and multiples of tile_m, {}", o.tile_m));
  require(e.layout == ExpertLayout::kSorted, "layout", name(e.layout), "is sorted with products");
  require(!e.scales_by_group, "scales_by_group", "true", "is false with products");
  require(e.batches == 0, "batches", std::to_string(e.batches), "is 0 with products");
  kernels::check(routing_options(o), pes);
  check_number("intermediate", o.intermediate, 1, 1 << 16);
  check_number("activation", static_cast<int>(o.activation), 0, static_cast<int>(Activation::kGeGlu));
  if (is_gated(o.activation)) {
    require(o.intermediate % kGateGroup == 0, "intermediate", std::to_string(o.intermediate),
            fmt::format("are multiples of {} with a gated activation", kGateGroup));
    require(o.tile_n % (2 * kGateGroup) == 0, "tile_n", std::to_string(o.tile_n),
            fmt::format("are multiples of {} with a gated activation", 2 * kGateGroup));
  }
  for (const auto& [option, form] :
       {std::pair{"dispatch_gemm", o.dispatch_gemm}, std::pair{"gemm_combine", o.gemm_combine}}) {
    check_number(option, static_cast<int>(form), 0, static_cast<int>(ExpertForm::kOverlapped));
    require(form != ExpertForm::kOverlapped || e.transport != ExpertTransport::kPackets, option, name(form),
            "is sequential with packets");
  }
  check_fp8(o);
  const Size columns = ceil_div(e.hidden, ops::tile_columns_to_tokens(o));
  require(o.column_chunks == 0 || (o.column_chunks >= 1 && o.column_chunks <= columns), "column_chunks",
          std::to_string(o.column_chunks), fmt::format("are 0 to the tiles in a row, {}", columns));
}

/// The boxes in which TMA copies rows have multiples of 16 bytes.
void check_row_bytes(const ExpertGemmOptions& o) {
  const Size elements = 16 / size_of(ops::product_type(o));
  for (const auto& [option, columns] :
       {std::pair{"hidden", o.experts.hidden}, std::pair{"intermediate", o.intermediate}})
    require(columns % elements == 0, option, std::to_string(columns),
            fmt::format("are multiples of {} on GPUs", elements));
}

void check_sms(const ExpertGemmOptions& o, const Machine& machine) {
  const int most = machine.gpu.sm_count - 1;
  require(o.communication_sms == -1 || (o.communication_sms >= 1 && o.communication_sms <= most), "communication_sms",
          std::to_string(o.communication_sms), fmt::format("are -1, and 1 to {}", most));
}

/// Throws if the device has no kernel for one of the products. Rows are left out, since there are no addresses yet.
/// One scale stands for all scales.
void check_products(const World& world, const ExpertGemmOptions& o) {
  const GemmPanel panel{};
  const std::int32_t no_panels = 0;
  float scale = 1;
  const Size columns = o.intermediate * (is_gated(o.activation) ? 2 : 1);
  const kernels::Routing shape = kernels::routing_shape(o.experts, world.num_pes());
  for (const bool is_first : {true, false}) {
    Gemm gemm;
    gemm.n = is_first ? columns : o.experts.hidden;
    gemm.k = is_first ? o.experts.hidden : o.intermediate;
    gemm.type = ops::product_type(o);
    gemm.out_type = is_first ? gemm.type : o.experts.type;
    gemm.tile_m = o.tile_m;
    if (is_first) gemm.activation = o.activation;
    gemm.tile_n = ops::tile_columns(o, gemm.activation, gemm.out_type);
    if (ops::is_fp8(o)) {
      gemm.scales = {.a = &scale, .b = &scale, .blocks = true, .out = is_first ? &scale : nullptr};
    }
    gemm.groups.count = shape.experts_here;
    gemm.groups.panels = &panel;
    gemm.groups.panel_count = &no_panels;
    gemm.groups.most_panels = static_cast<int>(ceil_div(shape.rows, o.tile_m));
    if (!is_first && o.gemm_combine == ExpertForm::kOverlapped) gemm.groups.column_chunks = o.column_chunks;
    world.check_gemm(gemm);
  }
}

std::string describe(const ExpertGemmOptions& o) {
  const ExpertOptions& e = o.experts;
  return fmt::format(
      "products of experts, {} wire {} {}x{} to {} of {} tp {}, intermediate {} activation {}, {} and {}, {} SMs, {} "
      "chunks, tiles {}x{}",
      name(e.type), name(e.wire), e.max_tokens, e.hidden, e.top_k, e.experts, e.tp_size, o.intermediate,
      static_cast<int>(o.activation), name(o.dispatch_gemm), name(o.gemm_combine), o.communication_sms, o.column_chunks,
      o.tile_m, o.tile_n);
}

/// Throws for scales where the plan has none.
void check_no_scales(const ExpertGemmOptions& o, std::initializer_list<std::pair<const char*, const void*>> scales) {
  for (const auto& [option, address] : scales)
    require(address == nullptr, option, "an address", fmt::format("is none with the wire {}", name(o.experts.wire)));
}

void check_buffers(const World& world, const ExpertGemmPlan& plan, const DispatchGemmCall& call) {
  const ExpertGemmOptions& o = plan.options();
  const bool fp8 = ops::is_fp8(o), given = o.experts.wire == ExpertWire::kGiven;
  if (!fp8)
    check_no_scales(o, {{"b_scales", call.b_scales}, {"row_scales", call.row_scales}, {"out_scales", call.out_scales}});
  if (!given) check_no_scales(o, {{"x_scales", call.x_scales}});
  const Size rows = plan.experts().rows(), k = o.experts.hidden, n = o.intermediate * (is_gated(o.activation) ? 2 : 1);
  const Size here = experts_of_pe(o.experts, world.num_pes());
  const Size in = size_of(given ? DType::kE4M3 : o.experts.type), type = size_of(ops::product_type(o));
  const Size of_row = fp8 ? scale_blocks(k) * 4 : 0;
  const Size of_matrix = GemmScales::blocks_of_columns(n, is_gated(o.activation)) * of_row;
  kernels::check_buffers(world,
                         {{"x", call.x, call.tokens * k * in, in},
                          {"x_scales", call.x_scales, given ? call.tokens * of_row : 0, 4},
                          {"routing", call.routing, plan.experts().routing_bytes(), 16},
                          {"b", call.b, here * n * k * type, 16},
                          {"b_scales", call.b_scales, here * of_matrix, 4}},
                         {{"rows", call.rows, rows * k * type, 16},
                          {"out", call.out, rows * o.intermediate * type, 16},
                          {"row_scales", call.row_scales, rows * of_row, 4},
                          {"out_scales", call.out_scales, fp8 ? rows * scale_blocks(o.intermediate) * 4 : 0, 4}});
}

void check_buffers(const World& world, const ExpertGemmPlan& plan, const GemmCombineCall& call) {
  const ExpertGemmOptions& o = plan.options();
  if (!ops::is_fp8(o)) check_no_scales(o, {{"a_scales", call.a_scales}, {"b_scales", call.b_scales}});
  const Size rows = plan.experts().rows(), n = o.experts.hidden, k = o.intermediate;
  const Size here = experts_of_pe(o.experts, world.num_pes());
  const Size out = size_of(o.experts.type), type = size_of(ops::product_type(o)), bytes = call.tokens * n * out;
  const Size of_row = ops::is_fp8(o) ? scale_blocks(k) * 4 : 0;
  kernels::check_buffers(world,
                         {{"a", call.a, rows * k * type, 16},
                          {"a_scales", call.a_scales, rows * of_row, 4},
                          {"routing", call.routing, plan.experts().routing_bytes(), 16},
                          {"b", call.b, here * n * k * type, 16},
                          {"b_scales", call.b_scales, here * scale_blocks(n) * of_row, 4},
                          {"add", call.add, call.add == nullptr || call.add == call.out ? 0 : bytes, out}},
                         {{"y", call.y, rows * n * out, 16}, {"out", call.out, bytes, out}});
}

class Plan final : public ExpertGemmPlan {
 public:
  Plan(World& world, const ops::ExpertChoices& chosen)
      : ExpertGemmPlan(chosen.options, chosen.choices),
        world_(world),
        shape_(kernels::routing_shape(routing_options(chosen.options), world.num_pes())) {
    detail::NotedAllocations allocations = world.note_allocations();
    const ExpertGemmOptions& o = options();
    const std::string what = describe(o);
    log_line(world.pe() == 0 ? LogLevel::kInfo : LogLevel::kTrace, [&]() -> const std::string& { return what; });
    if (world.calls() != nullptr) {
      numbers_[0] = world.calls()->add("dispatch_gemm of " + what, world.team());
      numbers_[1] = world.calls()->add("gemm_combine of " + what, world.team());
    }
    experts_ = kernels::ExpertPlanMaker::make(world, o.experts,
                                              {.dispatches = o.dispatch_gemm == ExpertForm::kSequential,
                                               .combines = o.gemm_combine == ExpertForm::kSequential});
    dispatch_gemm_.emplace(world, o, *experts_, chosen.early);
    gemm_combine_.emplace(world, o, *experts_);
    memory_ = allocations.take();
  }

  void route(Stream& stream, const RouteCall& call) override { experts_->route(stream, call); }

  void dispatch_gemm(Stream& stream, const DispatchGemmCall& call) override {
    kernels::check_number("tokens", call.tokens, 0, options().experts.max_tokens);
    check_buffers(world_, *this, call);
    kernels::check_routing(*experts_, world_, call.routing);
    note(0, [&] { dispatch_gemm_->enqueue(stream, call, at(call.routing)); });
  }

  void gemm_combine(Stream& stream, const GemmCombineCall& call) override {
    kernels::check_number("tokens", call.tokens, 0, options().experts.max_tokens);
    check_buffers(world_, *this, call);
    kernels::check_routing(*experts_, world_, call.routing);
    note(1, [&] { gemm_combine_->enqueue(stream, call, at(call.routing)); });
  }

  const ExpertPlan& experts() const override { return *experts_; }

 private:
  kernels::Routing at(const void* memory) const {
    kernels::Routing routing = shape_;
    routing.words = static_cast<std::int32_t*>(const_cast<void*>(memory));
    return routing;
  }
  template <class Enqueue>
  void note(int call, const Enqueue& enqueue) {
    if (MismatchDetector* const calls = world_.calls(); calls != nullptr)
      calls->note(numbers_[call], 0, enqueue);
    else
      enqueue();
  }

  World world_;
  kernels::Routing shape_;
  std::unique_ptr<ExpertPlan> experts_;
  std::optional<ops::DispatchGemm> dispatch_gemm_;
  std::optional<ops::GemmCombine> gemm_combine_;
  std::size_t numbers_[2] = {};
  detail::PlanMemory memory_;
};

}  // namespace

const char* name(ExpertForm form) {
  switch (form) {
    case ExpertForm::kRule:
      return "rule";
    case ExpertForm::kSequential:
      return "sequential";
    case ExpertForm::kOverlapped:
      return "overlapped";
  }
  return "unknown";
}

ExpertForm parse_expert_form(const std::string& text) {
  for (const ExpertForm form : kForms)
    if (text == name(form)) return form;
  throw InvalidArgument(fmt::format("form: no '{}'; there are rule, sequential, overlapped", text));
}

ExpertGemmOptions with_tile(const ExpertGemmOptions& options, int pes) {
  ExpertGemmOptions chosen = options;
  if (options.tile_m != 0 || options.tile_n != 0) return chosen;
  const ExpertOptions& e = options.experts;
  const double choices = static_cast<double>(e.max_tokens) * e.top_k * pes;
  const TileOfExperts few = ops::is_fp8(options) ? kTileOfFewInFp8 : kTileOfFew;
  const TileOfExperts tile = choices <= few.most_rows * e.experts ? few : kTileOfMany;
  chosen.tile_m = tile.rows;
  chosen.tile_n = tile.columns;
  return chosen;
}

ExpertOptions routing_options(const ExpertGemmOptions& options) {
  ExpertOptions routed = options.experts;
  if (routed.align == 1) routed.align = options.tile_m > 0 ? options.tile_m : kTileOfMany.rows;
  return routed;
}

ExpertSizes expert_gemm_sizes(const ExpertGemmOptions& options, int pes) {
  check_options(options, pes);
  return expert_sizes(routing_options(options), pes);
}

std::unique_ptr<ExpertGemmPlan> make_expert_gemms(World& world, const ExpertGemmOptions& options) {
  const Team team = world.team();
  check_options(options, team.size);
  if (world.on_gpus()) check_row_bytes(options);
  check_sms(options, world.machine());
  if (!team.one_node())
    throw Unsupported(fmt::format("experts: need stores to all PEs, which {} nodes do not have", team.nodes()));
  ExpertGemmOptions complete = options;
  complete.experts = routing_options(options);
  const ops::ExpertChoices chosen = ops::choose_expert_forms(world, complete);
  check_products(world, chosen.options);
  return std::make_unique<Plan>(world, chosen);
}

}  // namespace tandem
