/// The choices of an expert plan's options, and its calls.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "base/log.h"
#include "collectives/experts/check.h"
#include "collectives/experts/plan.h"
#include "collectives/experts/route_dispatch.h"
#include "collectives/experts/routing_notes.h"
#include "runtime/mismatch_detector.h"
#include "tandem/error.h"
#include "tune/expert_cache.h"

namespace tandem {

namespace kernels {

namespace {

/// Returns the options with the default of most_rows.
ExpertOptions with_most_rows(ExpertOptions o, int pes) {
  if (o.layout == ExpertLayout::kByExpert && o.most_rows == 0) o.most_rows = pes * o.max_tokens;
  return o;
}

/// With the limits of `check`, 32 bits suffice for all numbers but those of by_expert's rows.
Routing shape_of(const ExpertOptions& o, int pes) {
  Routing r;
  r.pes = pes;
  r.experts_here = experts_of_pe(o, pes);
  r.tp_size = o.tp_size;
  r.top_k = o.top_k;
  r.max_tokens = o.max_tokens;
  r.complete();
  r.rows = Size{pes} * o.max_tokens * o.top_k + Size{r.experts_here} * (o.align - 1);
  if (o.layout != ExpertLayout::kByExpert) return r;
  r.rows = r.experts_here * o.most_rows;
  if (const Size most = std::numeric_limits<std::int32_t>::max() / r.experts_here; o.most_rows > most)
    throw InvalidArgument(fmt::format("most_rows: {} given to {}, allowed are 0 to {}", o.most_rows, kExperts, most));
  return r;
}

/// Whether routing and dispatch can be one kernel: the choices of all PEs fit kChoiceParts parts of kRouteTile words.
bool can_be_fused(const ExpertOptions& o, const Routing& shape) {
  return o.batches == 0 && RouteDispatch<std::byte>::suits(shape);
}

void check_fused(const ExpertOptions& o, const Routing& shape) {
  if (o.transport == ExpertTransport::kFused && !can_be_fused(o, shape))
    throw InvalidArgument(fmt::format(
        "transport: fused given to {} of {} tokens, top {}, {} experts of a PE and batches {}, allowed are at most {} "
        "choices of a PE in at most {} messages of {} PEs, {} experts and batches 0",
        kExperts, o.max_tokens, o.top_k, shape.experts_here, o.batches, kRouteTile - kHeaderWords, kChoiceParts,
        shape.pes, kRouteTile));
}

/// Chunks pay a fence and a signal, and packets an eighth more bytes and half of the memory's rate at the receiver. The
/// fused kernel was 2 to 4 times slower than two kernels on two H100s, against the model's prediction.
ExpertTransport transport_of(const ExpertOptions& o, const Routing& shape) {
  constexpr Size kMostPackets = Size{96} << 20;  // of a plan; in the model chunks are faster from about there on
  const Size type = size_of(o.type);
  const Size bytes = RowLines::bytes(shape, o.hidden * (o.wire == ExpertWire::kType ? type : 1)) +
                     RowLines::bytes(shape, o.hidden * type);
  return bytes > kMostPackets ? ExpertTransport::kChunks : ExpertTransport::kPackets;
}

/// A block for each piece of a row that travels as packets, or for each token of a chunk.
int blocks_of(const ExpertOptions& o, const Machine& machine) {
  const Size pieces =
      o.transport == ExpertTransport::kChunks ? 1 : ceil_div(o.hidden * size_of(o.type), RowLines::kPieceBytes);
  return static_cast<int>(
      std::clamp<Size>(o.max_tokens * pieces, 1, Size{RowSlots::kBlocksPerSm} * machine.gpu.sm_count));
}

/// Chooses transport and blocks. `tandem tune` may have measured them for the calls that the plan has.
std::vector<OptionChoice> choose(World& world, ExpertOptions& o, const Routing& shape, ExpertUses uses) {
  const bool is_open = o.transport == ExpertTransport::kRule && o.blocks == 0;
  std::vector<std::string> ops;
  if (is_open && uses.dispatches) ops.emplace_back("dispatch");
  if (is_open && uses.combines) ops.emplace_back("combine");
  ExpertGemmOptions problem;
  problem.experts = o;
  const tune::ExpertTimes found = ops.empty() ? tune::ExpertTimes{} : tune::find_expert_times(world, ops, problem);
  const std::optional<tune::ExpertTime> tuned = tune::fastest_together(found);
  const auto choice = [&](const char* option, std::string value, bool is_given, bool is_tuned, const char* rule) {
    const OptionSource source = is_given   ? OptionSource::kCaller
                                : is_tuned ? OptionSource::kCache
                                           : OptionSource::kRule;
    return OptionChoice{option, std::move(value), source, is_given ? "" : is_tuned ? found.file : rule};
  };
  const bool given_transport = o.transport != ExpertTransport::kRule;
  const bool given_blocks = o.blocks > 0;
  if (tuned) {
    o.transport = parse_expert_transport(tuned->algorithm);
    o.blocks = tuned->blocks;
  }
  if (o.transport == ExpertTransport::kRule) o.transport = transport_of(o, shape);
  if (o.blocks == 0) o.blocks = blocks_of(o, world.machine());
  check_blocks(o, world.machine());
  return {choice("algo", name(o.transport), given_transport, tuned.has_value(), "packets up to 96 MiB, else chunks"),
          choice("blocks", std::to_string(o.blocks), given_blocks, tuned && tuned->blocks > 0,
                 "one for each piece of a row (packets) or token (chunks), at most four for each SM")};
}

std::string describe(const ExpertOptions& o) {
  return fmt::format("{} {} {}x{} to {} of {} tp {}, wire {}{}, {} align {} rows {}, {} in {} blocks, batches {}",
                     kExperts, name(o.type), o.max_tokens, o.hidden, o.top_k, o.experts, o.tp_size, name(o.wire),
                     o.scales_by_group ? " by group" : "", name(o.layout), o.align, o.most_rows, name(o.transport),
                     o.blocks, o.batches);
}

}  // namespace

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

Routing routing_shape(const ExpertOptions& options, int pes) {
  check(options, pes);
  return shape_of(with_most_rows(options, pes), pes);
}

std::unique_ptr<ExpertPlan> ExpertPlanMaker::make(World& world, const ExpertOptions& options, ExpertUses uses) {
  const Team team = world.team();
  check(options, team.size);
  check_blocks(options, world.machine());
  if (!team.one_node())
    throw Unsupported(fmt::format("{}: need stores to all PEs, which {} nodes do not have", kExperts, team.nodes()));
  const int most = world.on_gpus() ? kMostPesOnGpus : kMostPes;
  if (team.size > most)
    throw Unsupported(fmt::format("{}: {} PEs, at most {} are possible", kExperts, team.size, most));
  ExpertOptions complete = with_most_rows(options, team.size);
  const Routing shape = shape_of(complete, team.size);
  check_fused(options, shape);
  std::vector<OptionChoice> choices = choose(world, complete, shape, uses);
  const std::string what = describe(complete);
  log_line(team.me == 0 ? LogLevel::kInfo : LogLevel::kTrace, [&]() -> const std::string& { return what; });
  detail::NotedAllocations allocations = world.note_allocations();
  constexpr const char* kKinds[] = {"route", "dispatch", "combine", "route_and_dispatch"};
  std::array<std::size_t, std::size(kKinds)> numbers{};
  for (std::size_t kind = 0; kind < numbers.size() && world.calls() != nullptr; ++kind)
    numbers[kind] = world.calls()->add(fmt::format("{}, {}", kKinds[kind], what), team);
  std::unique_ptr<ExpertPlan> plan = make_expert_plan(world, complete, shape, uses);
  plan->choices_ = std::move(choices);
  std::copy(numbers.begin(), numbers.end(), std::begin(plan->numbers_));
  plan->memory_ = allocations.take();
  return plan;
}

}  // namespace kernels

ExpertPlan::ExpertPlan(World& world, const ExpertOptions& options) : world_(world), options_(options) {}

ExpertPlan::~ExpertPlan() { kernels::forget_routings(this); }

Size ExpertPlan::dispatched_rows() const {
  return options_.layout == ExpertLayout::kInPlace ? world_.num_pes() * options_.max_tokens : rows();
}

Size ExpertPlan::scales_stride() const { return round_up(dispatched_rows(), 4); }

std::unique_ptr<ExpertPlan> make_experts(World& world, const ExpertOptions& options) {
  return kernels::ExpertPlanMaker::make(world, options, {});
}

ExpertSizes expert_sizes(const ExpertOptions& options, int pes) {
  kernels::check(options, pes);
  const kernels::Routing shape = kernels::shape_of(kernels::with_most_rows(options, pes), pes);
  const bool in_place = options.layout == ExpertLayout::kInPlace;
  return {.routing_bytes = shape.bytes(),
          .rows = shape.rows,
          .dispatched_rows = in_place ? pes * options.max_tokens : shape.rows};
}

ExpertRouting expert_routing(const ExpertOptions& options, int pes, const void* memory) {
  kernels::check(options, pes);
  kernels::Routing routing = kernels::shape_of(kernels::with_most_rows(options, pes), pes);
  routing.words = static_cast<std::int32_t*>(const_cast<void*>(memory));
  return kernels::arrays_of(routing);
}

void ExpertPlan::check_batches(Kind kind, Part part) const {
  const char* const call = kind == kDispatch ? "dispatch" : "combine";
  const int in_flight = in_flight_[kind];
  if (part == Part::kAll && in_flight > 0)
    throw InvalidArgument(fmt::format("{}: given to {} with {} batches in flight, allowed with none", call,
                                      kernels::kExperts, in_flight));
  if (part == Part::kSend && in_flight == options_.batches)
    throw InvalidArgument(fmt::format("{}_send: given to {} with {} batches in flight, allowed are {}", call,
                                      kernels::kExperts, in_flight, options_.batches));
  if (part == Part::kReceive && in_flight == 0)
    throw InvalidArgument(fmt::format("{}_receive: given to {} with no batch in flight, allowed after a {}_send", call,
                                      kernels::kExperts, call));
}

template <class Call, class... Parts>
void ExpertPlan::note_and_enqueue(Kind kind, Stream& stream, const Call& call, Parts... part) {
  kernels::check(*this, world_, call);
  if (kind != kRoute) kernels::check_routing(*this, world_, call.routing);
  (check_batches(kind, part), ...);
  if (MismatchDetector* const calls = world_.calls(); calls != nullptr)
    calls->note(numbers_[kind], (static_cast<Size>(part) + ... + 0), [&] { enqueue(stream, call, part...); });
  else
    enqueue(stream, call, part...);
  ((in_flight_[kind] += part == Part::kSend ? 1 : part == Part::kReceive ? -1 : 0), ...);
}

void ExpertPlan::route(Stream& stream, const RouteCall& call) {
  note_and_enqueue(kRoute, stream, call);
  kernels::note_routing(*this, world_, call.routing);
}
void ExpertPlan::route_and_dispatch(Stream& stream, const RouteCall& choices, const DispatchCall& rows) {
  kernels::check(*this, world_, choices, rows);
  if (options_.transport != ExpertTransport::kFused) {
    check_batches(kDispatch, Part::kAll);
    route(stream, choices);
    dispatch(stream, rows);
    return;
  }
  if (MismatchDetector* const calls = world_.calls(); calls != nullptr)
    calls->note(numbers_[kRouteAndDispatch], 0, [&] { enqueue(stream, choices, rows); });
  else
    enqueue(stream, choices, rows);
  kernels::note_routing(*this, world_, choices.routing);
}
void ExpertPlan::dispatch(Stream& stream, const DispatchCall& call) {
  note_and_enqueue(kDispatch, stream, call, Part::kAll);
}
void ExpertPlan::dispatch_send(Stream& stream, const DispatchCall& call) {
  note_and_enqueue(kDispatch, stream, call, Part::kSend);
}
void ExpertPlan::dispatch_receive(Stream& stream, const DispatchCall& call) {
  note_and_enqueue(kDispatch, stream, call, Part::kReceive);
}
void ExpertPlan::combine(Stream& stream, const CombineCall& call) {
  note_and_enqueue(kCombine, stream, call, Part::kAll);
}
void ExpertPlan::combine_send(Stream& stream, const CombineCall& call) {
  note_and_enqueue(kCombine, stream, call, Part::kSend);
}
void ExpertPlan::combine_receive(Stream& stream, const CombineCall& call) {
  note_and_enqueue(kCombine, stream, call, Part::kReceive);
}

}  // namespace tandem
