/// Plans of experts: a routing kernel, and a kernel of packets each way.

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/log.h"
#include "collectives/experts/check.h"
#include "collectives/experts/combine.h"
#include "collectives/experts/dispatch.h"
#include "collectives/experts/route.h"
#include "collectives/plan/plan.h"
#include "runtime/mismatch_detector.h"
#include "tandem/error.h"

namespace tandem {

namespace kernels {

namespace {

/// Throws what a block of `route` noted last, and forgets it: a choice and its id, or an expert and its rows.
void throw_refused(World& world, std::int64_t* notes, int blocks, const ExpertOptions& o) {
  std::vector<std::int64_t> noted(Size{2} * blocks);
  const auto bytes = static_cast<Size>(noted.size() * sizeof(noted[0]));
  world.copy_out(noted.data(), notes, bytes);
  std::int64_t choice = 0;
  std::int64_t value = 0;
  for (std::size_t i = 0; i < noted.size(); i += 2)
    if (noted[i] != 0 && (choice == 0 || noted[i] < choice)) {
      choice = noted[i];
      value = noted[i + 1];
    }
  if (choice == 0) return;
  std::fill(noted.begin(), noted.end(), 0);
  world.copy_in(notes, noted.data(), bytes);
  if (choice < 0)
    throw InvalidArgument(fmt::format("most_rows: PE {}, expert {}: {} rows, allowed are {}", world.pe(),
                                      world.pe() * (o.experts / world.num_pes()) - choice - 1, value, o.most_rows));
  throw InvalidArgument(fmt::format("ids: PE {}, token {}, k {}: {} given to {}, allowed are -1 to {}", world.pe(),
                                    (choice - 1) / o.top_k, (choice - 1) % o.top_k, value, kExperts, o.experts - 1));
}

Size most_rows_of(const ExpertOptions& o, int pes) {
  return o.layout == ExpertLayout::kByExpert && o.most_rows == 0 ? pes * o.max_tokens : o.most_rows;
}

ExpertRouting arrays_of(const Routing& r) {
  return {.tokens = r.tokens(),
          .counts = r.counts(),
          .starts = r.starts(),
          .slots = r.slots(),
          .ids = r.ids(0),
          .places = r.places(0),
          .weights = r.weights(0),
          .id_stride = r.ids(1) - r.ids(0),
          .choice_stride = r.places(1) - r.places(0)};
}

Routing shape_of(const ExpertOptions& o, int pes) {
  Routing r;
  r.pes = pes;
  r.experts_here = o.experts / pes;
  r.top_k = o.top_k;
  r.max_tokens = o.max_tokens;
  const Size choices = Size{pes} * o.max_tokens * o.top_k;
  r.rows = o.layout == ExpertLayout::kByExpert ? r.experts_here * most_rows_of(o, pes)
                                               : choices + Size{r.experts_here} * (o.align - 1);
  if (max(r.rows, Size{pes} * r.choices()) > std::numeric_limits<std::int32_t>::max())
    throw InvalidArgument(
        fmt::format("max_tokens: {} given to {}, which has more than 2^31 rows then", o.max_tokens, kExperts));
  return r;
}

template <class T>
class Plan final : public ExpertPlan {
 public:
  Plan(World& world, const ExpertOptions& o, const Routing& shape)
      : ExpertPlan(world, o), team_(world.team()), grid_{o.blocks, RowLines::kThreads}, shape_(shape) {
    const Size most = std::max<Size>(shape.experts_here, Route::tiles(shape));
    route_grid_ = {static_cast<int>(std::min<Size>(most, world.machine().gpu.sm_count)), Route::kThreads};
    world.check_launch<Route>(route_grid_);
    if (o.wire == ExpertWire::kQuantised)
      world.check_launch<DispatchRows<T>>(grid_);
    else
      world.check_launch<DispatchRows<std::byte>>(grid_);
    world.check_launch<CombineRows<T>>(grid_);
    prepare_route(world, o);
    PlanSetup setup(world, team_, "experts", grid_.blocks, o.max_tokens);
    const bool scales = o.wire != ExpertWire::kType;
    const Size row = o.hidden * (scales ? 1 : Size{sizeof(T)});
    groups_ = scales ? ceil_div(o.hidden, kScaleGroup) : 0;
    to_experts_ = RowLines::of(setup, shape, row, scales);
    from_experts_ = RowLines::of(setup, shape, o.hidden * Size{sizeof(T)}, false);
    zeros_ = filled<T>(setup, world, RowLines::kPieceBytes / Size{sizeof(T)}, convert<T>(0.0F), "zeros");
    if (o.wire != ExpertWire::kQuantised) return;
    rows_ = setup.template local<std::byte>(o.max_tokens * row, "quantised rows");
    scales_ = setup.template local<float>(o.max_tokens * groups_, "scales");
  }

  Size routing_bytes() const override { return shape_.bytes(); }
  ExpertRouting routing(const void* memory) const override { return arrays_of(at(memory)); }
  Size rows() const override { return shape_.rows; }

 private:
  /// Returns memory of this PE with so many equal elements.
  template <class Element>
  static Element* filled(PlanSetup& setup, World& world, Size count, Element value, const char* what) {
    auto* const memory = setup.template local<Element>(count, what);
    const std::vector<Element> values(static_cast<std::size_t>(count), value);
    world.copy_in(memory, values.data(), count * Size{sizeof(Element)});
    return memory;
  }

  void prepare_route(World& world, const ExpertOptions& o) {
    PlanSetup setup(world, team_, "experts route", route_grid_.blocks, o.max_tokens);
    route_.routing = shape_;
    route_.experts = o.experts;
    route_.most_rows = o.most_rows;
    route_.align = o.align;
    Route::prepare(setup, route_);
    route_.refused = filled<std::int64_t>(setup, world, Size{2} * route_grid_.blocks, 0, "refused choices");
    route_.no_rows = filled<std::int32_t>(setup, world, Route::kTile, -1, "no rows");
    refused_choices_ =
        std::make_shared<const std::function<void()>>([world, notes = route_.refused, blocks = route_grid_.blocks,
                                                       o]() mutable { throw_refused(world, notes, blocks, o); });
  }

  Routing at(const void* memory) const {
    Routing r = shape_;
    r.words = static_cast<std::int32_t*>(const_cast<void*>(memory));
    return r;
  }

  void enqueue(Stream& stream, const RouteCall& call) override {
    Route::Args args = route_;
    args.routing = at(call.routing);
    args.ids = call.ids;
    args.long_ids = call.id_type == DType::kI64;
    args.weights = call.weights;
    args.tokens = call.tokens;
    args.tokens_on_device = call.tokens_on_device;
    stream.launch<Route>(route_grid_, args, team_);
    stream.check_at_synchronize(refused_choices_);
  }

  template <class Q>
  typename DispatchRows<Q>::Args dispatch_args(const DispatchCall& call) const {
    typename DispatchRows<Q>::Args args;
    args.out = static_cast<std::byte*>(call.out);
    args.out_scales = call.out_scales;
    args.groups = groups_;
    args.in_place = options().layout == ExpertLayout::kInPlace;
    args.routing = at(call.routing);
    args.lines = to_experts_;
    return args;
  }
  void enqueue(Stream& stream, const DispatchCall& call) override {
    if (options().wire == ExpertWire::kQuantised) {
      auto args = dispatch_args<T>(call);
      args.x = static_cast<const T*>(call.x);
      args.rows = rows_;
      args.scales = scales_;
      stream.launch<DispatchRows<T>>(grid_, args, team_);
    } else {
      auto args = dispatch_args<std::byte>(call);
      args.rows = static_cast<std::byte*>(const_cast<void*>(call.x));
      args.scales = const_cast<float*>(call.x_scales);
      stream.launch<DispatchRows<std::byte>>(grid_, args, team_);
    }
  }

  void enqueue(Stream& stream, const CombineCall& call) override {
    typename CombineRows<T>::Args args;
    args.y = static_cast<const T*>(call.y);
    args.add = static_cast<const T*>(call.add);
    args.out = static_cast<T*>(call.out);
    args.zeros = zeros_;
    args.hidden = options().hidden;
    args.routing = at(call.routing);
    args.lines = from_experts_;
    stream.launch<CombineRows<T>>(grid_, args, team_);
  }

  Team team_;
  Grid grid_;
  Grid route_grid_;
  Routing shape_;
  Route::Args route_;
  RowLines to_experts_;
  RowLines from_experts_;
  Size groups_ = 0;
  const T* zeros_ = nullptr;
  std::byte* rows_ = nullptr;
  float* scales_ = nullptr;
};

std::string describe(const ExpertOptions& o) {
  return fmt::format("{} {} of {} tokens x {} to {} of {}, wire {}, layout {} align {} most rows {} in {} blocks",
                     kExperts, name(o.type), o.max_tokens, o.hidden, o.top_k, o.experts, name(o.wire), name(o.layout),
                     o.align, o.most_rows, o.blocks);
}

}  // namespace

}  // namespace kernels

ExpertPlan::ExpertPlan(World& world, const ExpertOptions& options) : world_(world), options_(options) {}

Size ExpertPlan::dispatched_rows() const {
  return options_.layout == ExpertLayout::kInPlace ? world_.num_pes() * options_.max_tokens : rows();
}

std::unique_ptr<ExpertPlan> make_experts(World& world, const ExpertOptions& options) {
  using namespace kernels;
  const Team team = world.team();
  check(options, team.size);
  check_blocks(options, world.machine());
  if (!team.one_node())
    throw Unsupported(fmt::format("{}: need stores to all PEs, which {} nodes do not have", kExperts, team.nodes()));
  if (team.size > kMostPes)
    throw Unsupported(fmt::format("{}: {} PEs, at most {} are possible", kExperts, team.size, kMostPes));
  if (world.phantom())
    throw Unsupported(fmt::format("{}: a phantom simulation has no choices; simulate with data", kExperts));
  ExpertOptions complete = options;
  complete.most_rows = most_rows_of(options, team.size);
  const Size pieces = ceil_div(options.hidden * size_of(options.type), RowLines::kPieceBytes);
  if (options.blocks == 0)
    complete.blocks = static_cast<int>(
        std::clamp<Size>(options.max_tokens * pieces, 1, Size{RowLines::kBlocksPerSm} * world.machine().gpu.sm_count));
  const std::string what = describe(complete);
  log_line(team.me == 0 ? LogLevel::kInfo : LogLevel::kTrace, [&]() -> const std::string& { return what; });
  detail::NotedAllocations allocations = world.note_allocations();
  const Routing shape = shape_of(complete, team.size);
  std::unique_ptr<ExpertPlan> plan;
  if (options.type == DType::kF16)
    plan = std::make_unique<Plan<f16>>(world, complete, shape);
  else
    plan = std::make_unique<Plan<bf16>>(world, complete, shape);
  if (world.calls() != nullptr)
    for (int kind = 0; kind < 3; ++kind)
      plan->numbers_[kind] = world.calls()->add(fmt::format("{}, {}",
                                                            kind == 0   ? "route"
                                                            : kind == 1 ? "dispatch"
                                                                        : "combine",
                                                            what),
                                                team);
  plan->memory_ = allocations.take();
  return plan;
}

ExpertSizes expert_sizes(const ExpertOptions& options, int pes) {
  kernels::check(options, pes);
  const kernels::Routing shape = kernels::shape_of(options, pes);
  const bool in_place = options.layout == ExpertLayout::kInPlace;
  return {.routing_bytes = shape.bytes(),
          .rows = shape.rows,
          .dispatched_rows = in_place ? pes * options.max_tokens : shape.rows};
}

ExpertRouting expert_routing(const ExpertOptions& options, int pes, const void* memory) {
  kernels::check(options, pes);
  kernels::Routing routing = kernels::shape_of(options, pes);
  routing.words = static_cast<std::int32_t*>(const_cast<void*>(memory));
  return kernels::arrays_of(routing);
}

template <class Call>
void ExpertPlan::note_and_enqueue(int kind, Stream& stream, const Call& call) {
  kernels::check(*this, world_, call);
  if (MismatchDetector* const calls = world_.calls(); calls != nullptr)
    calls->note(numbers_[kind], 0, [&] { enqueue(stream, call); });
  else
    enqueue(stream, call);
}

void ExpertPlan::route(Stream& stream, const RouteCall& call) { note_and_enqueue(0, stream, call); }
void ExpertPlan::dispatch(Stream& stream, const DispatchCall& call) { note_and_enqueue(1, stream, call); }
void ExpertPlan::combine(Stream& stream, const CombineCall& call) { note_and_enqueue(2, stream, call); }

}  // namespace tandem
