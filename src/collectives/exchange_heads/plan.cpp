/// Plans of exchange_heads.

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "collectives/exchange_heads/segments.h"
#include "collectives/plan/checked_plan.h"
#include "collectives/plan/plan.h"
#include "runtime/mismatch_detector.h"
#include "tandem/advanced/local_handle.h"
#include "tandem/error.h"

namespace tandem {

namespace {

using kernels::ExchangeSegments;

const char* const kExchangeHeads = "exchange_heads";

class ExchangePlan final : public ExchangeHeadsPlan {
 public:
  ExchangePlan(World& world, const ExchangeHeadsOptions& o)
      : ExchangeHeadsPlan(world, o), team_(world.team()), grid_{o.blocks, ExchangeSegments::kThreads} {
    world.check_launch<ExchangeSegments>(grid_);
    kernels::PlanSetup setup(world, team_, kExchangeHeads, grid_.blocks, o.max_rows);
    args_.count = static_cast<int>(o.segments.size());
    args_.to_heads = o.direction == HeadsDirection::kToHeads;
    ExchangeSegments::prepare(setup, args_);
  }

 private:
  void enqueue(Stream& stream, const ExchangeHeadsCall& call) override {
    auto args = args_;
    args.rows = call.rows;
    for (std::size_t i = 0; i < call.tensors.size(); ++i)
      args.tensors[i] = {static_cast<const std::byte*>(call.tensors[i].in), call.tensors[i].out,
                         options().segments[i] * size_of(options().type)};
    stream.launch<ExchangeSegments>(grid_, args, team_);
  }

  Team team_;
  Grid grid_;
  ExchangeSegments::Args args_{};
};

void check_number(const std::string& what, Size value, Size least, Size most) {
  if (value < least || value > most)
    throw InvalidArgument(
        fmt::format("{}: {} given to {}, allowed are {} to {}", what, value, kExchangeHeads, least, most));
}

void check(const ExchangeHeadsOptions& o, const Machine& machine) {
  constexpr Size kMostRows = Size{1} << 24, kMostSegment = Size{1} << 20;
  if (std::find(std::begin(kDTypes), std::end(kDTypes), o.type) == std::end(kDTypes))
    throw InvalidArgument(
        fmt::format("type: {} given to {}, allowed are the values of DType", static_cast<int>(o.type), kExchangeHeads));
  check_number("segments", static_cast<Size>(o.segments.size()), 1, kExchangedTensors);
  for (std::size_t i = 0; i < o.segments.size(); ++i)
    check_number(fmt::format("segments[{}]", i), o.segments[i], 1, kMostSegment);
  check_number("max_rows", o.max_rows, 0, kMostRows);
  check_number("direction", static_cast<int>(o.direction), 0, static_cast<int>(HeadsDirection::kToRows));
  check_number("blocks", o.blocks, 0, Size{ExchangeSegments::kBlocksPerSm} * machine.gpu.sm_count);
}

/// A buffer of a call.
struct ExchangedBuffer {
  std::string name;
  const std::byte* address;
  Size bytes;
  bool is_output;
};

std::vector<ExchangedBuffer> buffers_of(const ExchangeHeadsOptions& o, const ExchangeHeadsCall& call, int pes) {
  std::vector<ExchangedBuffer> all;
  for (std::size_t i = 0; i < call.tensors.size(); ++i) {
    const ExchangedTensor& one = call.tensors[i];
    const Size bytes = call.rows * pes * o.segments[i] * size_of(o.type);
    all.push_back({fmt::format("tensors[{}].in", i), static_cast<const std::byte*>(one.in), bytes, false});
    all.push_back({fmt::format("tensors[{}].out", i), one.out ? one.out.local() : nullptr, bytes, true});
  }
  return all;
}

void check(const ExchangeHeadsOptions& o, const World& world, const ExchangeHeadsCall& call) {
  check_number("rows", call.rows, 0, o.max_rows);
  const auto tensors = static_cast<Size>(o.segments.size());
  check_number("tensors", static_cast<Size>(call.tensors.size()), tensors, tensors);
  if (call.rows == 0) return;
  const std::vector<ExchangedBuffer> buffers = buffers_of(o, call, world.num_pes());
  for (const ExchangedBuffer& one : buffers) {
    if (one.address == nullptr)
      throw InvalidArgument(fmt::format("{}: none given to {}, allowed is {}", one.name, kExchangeHeads,
                                        one.is_output ? "a heap buffer" : "memory of this PE"));
    const auto alignment = static_cast<std::uintptr_t>(size_of(o.type));
    if (reinterpret_cast<std::uintptr_t>(one.address) % alignment != 0)
      throw InvalidArgument(fmt::format("{}: {} given to {}, allowed are multiples of {} bytes", one.name,
                                        fmt::ptr(one.address), kExchangeHeads, alignment));
    kernels::check_held(world, one.name, one.address, one.bytes, kExchangeHeads);
  }
  for (std::size_t i = 0; i < call.tensors.size(); ++i)
    if (is_local_handle(call.tensors[i].out))
      throw InvalidArgument(fmt::format(
          "tensors[{}].out: memory that peers do not reach given to {}, allowed is the heap's", i, kExchangeHeads));
  for (const ExchangedBuffer& a : buffers)
    for (const ExchangedBuffer& b : buffers)
      if (a.is_output && &a != &b && a.address < b.address + b.bytes && b.address < a.address + a.bytes)
        throw InvalidArgument(fmt::format("{}, {}: buffers that overlap given to {}, allowed are separate ones", b.name,
                                          a.name, kExchangeHeads));
}

}  // namespace

ExchangeHeadsPlan::ExchangeHeadsPlan(World& world, const ExchangeHeadsOptions& options)
    : world_(world), options_(options) {}

std::unique_ptr<ExchangeHeadsPlan> make_exchange_heads(World& world, const ExchangeHeadsOptions& options) {
  check(options, world.machine());
  const Team team = world.team();
  if (!team.one_node())
    throw Unsupported(
        fmt::format("{}: needs stores to all PEs, which {} nodes do not have", kExchangeHeads, team.nodes()));
  ExchangeHeadsOptions complete = options;
  if (options.blocks == 0)
    complete.blocks = static_cast<int>(std::clamp<Size>(
        options.max_rows * team.size, 1, Size{ExchangeSegments::kBlocksPerSm} * world.machine().gpu.sm_count));
  const std::string what =
      fmt::format("{} {} to {} of at most {} rows of {} in {} blocks", kExchangeHeads, name(options.type),
                  options.direction == HeadsDirection::kToHeads ? "heads" : "rows", options.max_rows,
                  fmt::join(options.segments, " and "), complete.blocks);
  log_line(team.me == 0 ? LogLevel::kInfo : LogLevel::kTrace, [&]() -> const std::string& { return what; });
  detail::NotedAllocations allocations = world.note_allocations();
  const std::size_t number = world.calls() != nullptr ? world.calls()->add(what, team) : 0;
  auto plan = std::make_unique<ExchangePlan>(world, complete);
  const bool has_default_blocks = options.blocks == 0;
  plan->choices_ = {{"blocks", std::to_string(complete.blocks),
                     has_default_blocks ? OptionSource::kRule : OptionSource::kCaller,
                     has_default_blocks ? "one for each row and PE, at most four for each SM" : ""}};
  plan->number_ = number;
  plan->memory_ = allocations.take();
  return plan;
}

void ExchangeHeadsPlan::run(Stream& stream, const ExchangeHeadsCall& call) {
  check(options_, world_, call);
  const auto enqueue_all = [&] {
    if (call.rows > 0) enqueue(stream, call);
  };
  if (MismatchDetector* const calls = world_.calls(); calls != nullptr)
    calls->note(number_, call.rows, enqueue_all);
  else
    enqueue_all();
}

}  // namespace tandem
