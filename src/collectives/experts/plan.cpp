/// Plans of experts: a routing kernel, and a kernel each way.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "collectives/experts/check.h"
#include "collectives/experts/combine.h"
#include "collectives/experts/dispatch.h"
#include "collectives/experts/plan.h"
#include "collectives/experts/route_dispatch.h"
#include "collectives/plan/plan.h"
#include "tandem/error.h"

namespace tandem::kernels {

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
    throw InvalidArgument(fmt::format("most_rows: PE {}, expert {}: {} rows given to {}, allowed are {}", world.pe(),
                                      first_expert(o, world.num_pes(), world.pe()) - choice - 1, value, kExperts,
                                      o.most_rows));
  throw InvalidArgument(fmt::format("ids: PE {}, token {}, k {}: {} given to {}, allowed are -1 to {}", world.pe(),
                                    (choice - 1) / o.top_k, (choice - 1) % o.top_k, value, kExperts, o.experts - 1));
}

static_assert(static_cast<int>(CallPart::kAll) == 0 && static_cast<int>(CallPart::kSend) == 1 &&
              static_cast<int>(CallPart::kReceive) == 2);

template <class T, class Rows>
class Plan final : public ExpertPlan {
  static_assert(static_cast<int>(Part::kSend) == 1 && static_cast<int>(Part::kReceive) == 2);

 public:
  Plan(World& world, const ExpertOptions& o, const Routing& shape, ExpertUses uses)
      : ExpertPlan(world, o), team_(world.team()), grid_{o.blocks, Rows::kThreads}, shape_(shape) {
    route_grid_ = {route_blocks(world), Route::kThreads};
    world.check_launch<Route>(route_grid_);
    if (o.wire == ExpertWire::kQuantised)
      world.check_launch<DispatchRows<T, Rows>>(grid_);
    else
      world.check_launch<DispatchRows<std::byte, Rows>>(grid_);
    world.check_launch<CombineRows<T, Rows>>(grid_);
    if (o.transport == ExpertTransport::kFused) fused_grid_ = fused_grid(world, o);
    prepare_route(world, o);
    PlanSetup setup(world, team_, "experts", grid_.blocks, o.max_tokens);
    const bool scales = o.wire != ExpertWire::kType;
    const Size row = o.hidden * (scales ? 1 : Size{sizeof(T)});
    groups_ = scales ? ceil_div(o.hidden, kScaleGroup) : 0;
    if (uses.dispatches) to_experts_ = Rows::of(setup, shape, row, groups_, o.batches);
    if constexpr (requires { to_experts_.quantises; }) to_experts_.quantises = o.wire == ExpertWire::kQuantised;
    if (uses.combines) from_experts_ = Rows::of(setup, shape, o.hidden * Size{sizeof(T)}, 0, o.batches);
    if (uses.dispatches && fused_grid_.blocks > 0) prepare_fused(world, o);
    zeros_ = filled<T>(setup, world, Rows::kPieceBytes / Size{sizeof(T)}, convert<T>(0.0F), "zeros");
    if (o.scales_by_group) set_columns(setup, world);
    if (o.wire != ExpertWire::kQuantised || fused_grid_.blocks == 0) return;
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

  /// Returns memory of this PE with these numbers, in phantom simulations, too.
  static const std::int32_t* indices(PlanSetup& setup, World& world, const std::vector<std::int32_t>& values,
                                     const char* what) {
    const auto count = static_cast<Size>(values.size());
    auto* const memory = setup.template local<Index>(count, what);
    world.copy_in(memory, values.data(), count * Size{sizeof(Index)});
    return reinterpret_cast<const std::int32_t*>(memory);
  }

  void set_columns(PlanSetup& setup, World& world) {
    if (const Size most = std::numeric_limits<std::int32_t>::max() / groups_; scales_stride() > most)
      throw InvalidArgument(fmt::format("scales_by_group: true given to {} with {} rows, allowed are {}", kExperts,
                                        scales_stride(), most));
    std::vector<std::int32_t> columns;
    for (Size group = 0; group < groups_; ++group)
      columns.push_back(static_cast<std::int32_t>(group * scales_stride()));
    columns_ = indices(setup, world, columns, "columns");
  }

  void prepare_route(World& world, const ExpertOptions& o) {
    // The name lets PEs whose transports differ find out at once.
    PlanSetup setup(world, team_, fused_grid_.blocks > 0 ? "experts fused route" : "experts route", route_grid_.blocks,
                    o.max_tokens);
    route_.routing = shape_;
    route_.experts = o.experts;
    route_.most_rows = o.most_rows;
    route_.align = o.align;
    Route::prepare(setup, route_);
    const int notes = std::max(route_grid_.blocks, fused_grid_.blocks);
    route_.refused = filled<std::int64_t>(setup, world, Size{2} * notes, 0, "refused choices");
    std::vector<std::int32_t> words(static_cast<std::size_t>(kRouteTile), -1);
    route_.no_rows = indices(setup, world, words, "no rows");
    std::iota(words.begin(), words.end(), 0);
    route_.numbers = indices(setup, world, words, "numbers");
    refused_choices_ = std::make_shared<const std::function<void()>>(
        [world, refused = route_.refused, notes, o]() mutable { throw_refused(world, refused, notes, o); });
  }

  /// A block for each expert and for each peer; of many choices for each tile, and for each expert with rows that only
  /// align.
  int route_blocks(const World& world) const {
    RouteArgs args;
    args.routing = shape_;
    args.complete();
    const bool has_empty_rows = options().align > 1 || options().most_rows > 0;
    const Size most = args.is_at_once
                          ? shape_.experts_here + shape_.pes - 1
                          : std::max<Size>(shape_.pes * args.tiles, has_empty_rows ? shape_.experts_here : 1);
    return static_cast<int>(std::min<Size>(most, world.machine().gpu.sm_count));
  }

  /// A block for each piece, and some for the routing, as long as they run at once.
  Grid fused_grid(World& world, const ExpertOptions& o) const {
    using Bytes = RouteDispatch<std::byte>;
    constexpr Size kBlocksForRouting = 2;
    const Size row = o.hidden * (o.wire == ExpertWire::kType ? Size{sizeof(T)} : 1);
    const Size pieces = shape_.pes * o.max_tokens * ceil_div(row, RowLines::kPieceBytes);
    const Size most =
        std::min<Size>(pieces + kBlocksForRouting, Size{Bytes::kBlocksPerSm} * world.machine().gpu.sm_count);
    const Grid grid{static_cast<int>(most), Bytes::kThreads};
    if (o.wire == ExpertWire::kQuantised)
      world.check_launch<RouteDispatch<T>>(grid);
    else
      world.check_launch<Bytes>(grid);
    return grid;
  }

  /// The kernel has packets of its own, since calls of the others may come in between.
  void prepare_fused(World& world, const ExpertOptions& o) {
    PlanSetup setup(world, team_, "experts route and dispatch", fused_grid_.blocks, o.max_tokens);
    fused_route_ = route_;
    Route::prepare(setup, fused_route_);
    const Size tokens = shape_.pes * shape_.max_tokens;
    Size piece = RowLines::kPieceBytes;  // small as long as all blocks have one at most
    while (piece < RouteDispatch<T>::kPieceBytes &&
           tokens * ceil_div(to_experts_.row_bytes, piece) > fused_grid_.blocks)
      piece *= 2;
    fused_rows_ = RowLines::of_met(setup, shape_, to_experts_.row_bytes, groups_, piece);
  }

  Routing at(const void* memory) const {
    Routing r = shape_;
    r.words = static_cast<std::int32_t*>(const_cast<void*>(memory));
    return r;
  }

  RouteArgs with(RouteArgs args, const RouteCall& call) const {
    args.routing = at(call.routing);
    args.ids = call.ids;
    args.long_ids = call.id_type == DType::kI64;
    args.weights = call.weights;
    args.tokens = call.tokens;
    args.tokens_on_device = call.tokens_on_device;
    return args;
  }
  void enqueue(Stream& stream, const RouteCall& call) override {
    stream.launch<Route>(route_grid_, with(route_, call), team_);
    stream.check_at_synchronize(refused_choices_);
  }

  /// The rows of a kernel that dispatches.
  template <template <class> class Kernel, class Launch>
  void with_rows(const DispatchCall& call, const Launch& launch) {
    const auto fill = [&](auto args) {
      args.out.rows = static_cast<std::byte*>(call.out);
      args.out.scales = call.out_scales;
      args.out.row_bytes = to_experts_.row_bytes;
      args.out.groups = groups_;
      args.out.columns = columns_;
      args.out.max_tokens = options().layout == ExpertLayout::kInPlace ? options().max_tokens : 0;
      return args;
    };
    if (options().wire == ExpertWire::kQuantised) {
      typename Kernel<T>::Args args;
      args.x = static_cast<const T*>(call.x);
      if constexpr (requires { args.quantised; }) {
        args.quantised = rows_;
        args.quantised_scales = scales_;
      }
      launch(std::type_identity<Kernel<T>>(), fill(args));
    } else {
      typename Kernel<std::byte>::Args args;
      args.x = static_cast<const std::byte*>(call.x);
      args.scales = call.x_scales;
      launch(std::type_identity<Kernel<std::byte>>(), fill(args));
    }
  }
  template <class Q>
  using Dispatch = DispatchRows<Q, Rows>;

  void enqueue(Stream& stream, const DispatchCall& call, Part part) override {
    with_rows<Dispatch>(call, [&]<class Kernel>(std::type_identity<Kernel>, typename Kernel::Args args) {
      args.routing = at(call.routing);
      args.rows = to_experts_;
      launch<Kernel>(stream, args, part);
    });
  }
  void enqueue(Stream& stream, const RouteCall& choices, const DispatchCall& rows) override {
    with_rows<RouteDispatch>(rows, [&]<class Kernel>(std::type_identity<Kernel>, typename Kernel::Args args) {
      args.route = with(fused_route_, choices);
      args.rows = fused_rows_;
      stream.launch<Kernel>(fused_grid_, args, team_);
    });
    stream.check_at_synchronize(refused_choices_);
  }

  void enqueue(Stream& stream, const CombineCall& call, Part part) override {
    typename CombineRows<T, Rows>::Args args;
    args.y = static_cast<const T*>(call.y);
    args.add = static_cast<const T*>(call.add);
    args.out = static_cast<T*>(call.out);
    args.zeros = zeros_;
    args.hidden = options().hidden;
    args.routing = at(call.routing);
    args.rows = from_experts_;
    launch<CombineRows<T, Rows>>(stream, args, part);
  }

  /// Whole calls of a plan with halves are both of them, since sends and receives are counted apart.
  template <class Kernel>
  void launch(Stream& stream, typename Kernel::Args args, Part part) {
    const bool both = part == Part::kAll && options().batches > 0;
    args.part = both ? CallPart::kSend : static_cast<CallPart>(part);
    stream.launch<Kernel>(grid_, args, team_);
    if (!both) return;
    args.part = CallPart::kReceive;
    stream.launch<Kernel>(grid_, args, team_);
  }

  Team team_;
  Grid grid_;
  Grid route_grid_;
  Grid fused_grid_{0, 0};
  Routing shape_;
  Route::Args route_;
  Rows to_experts_;
  Rows from_experts_;
  RouteArgs fused_route_;
  RowLines fused_rows_;
  Size groups_ = 0;
  const std::int32_t* columns_ = nullptr;
  const T* zeros_ = nullptr;
  std::byte* rows_ = nullptr;
  float* scales_ = nullptr;
};

template <class T>
std::unique_ptr<ExpertPlan> make_plan_of(World& world, const ExpertOptions& o, const Routing& shape, ExpertUses uses) {
  if (o.transport == ExpertTransport::kChunks) return std::make_unique<Plan<T, RowChunks>>(world, o, shape, uses);
  return std::make_unique<Plan<T, RowLines>>(world, o, shape, uses);
}

}  // namespace

std::unique_ptr<ExpertPlan> make_expert_plan(World& world, const ExpertOptions& o, const Routing& shape,
                                             ExpertUses uses) {
  if (o.type == DType::kF16) return make_plan_of<f16>(world, o, shape, uses);
  return make_plan_of<bf16>(world, o, shape, uses);
}

}  // namespace tandem::kernels
