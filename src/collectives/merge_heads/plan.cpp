/// Plans of merge_heads.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/log.h"
#include "collectives/merge_heads/packets.h"
#include "collectives/plan/checked_plan.h"
#include "collectives/plan/plan.h"
#include "runtime/mismatch_detector.h"
#include "tandem/error.h"
#include "tandem/layer/merge_heads.h"
#include "tune/selection.h"

namespace tandem {

namespace {

const char* const kCall = "merge_heads";

template <class Kernel, class T>
class Plan final : public MergeHeadsPlan {
 public:
  Plan(World& world, const MergeHeadsOptions& o)
      : MergeHeadsPlan(world, o), team_(world.team()), grid_{o.blocks, Kernel::kThreads} {
    world.check_launch<Kernel>(grid_);
    kernels::PlanSetup setup(world, team_, kCall, grid_.blocks, o.max_batch);
    args_.heads = o.heads;
    args_.head_size = o.head_size;
    args_.per_unit = o.base == LseBase::kE ? 1.44269504F : 1.0F;
    args_.own_heads = o.own_heads;
    Kernel::prepare(setup, args_);
  }

 private:
  void enqueue(Stream& stream, const MergeHeadsCall& call) override {
    auto args = args_;
    args.partial = static_cast<const T*>(call.partial);
    args.lse = call.lse;
    args.out = static_cast<T*>(call.out);
    args.batch = call.batch;
    stream.launch<Kernel>(grid_, args, team_);
  }

  Team team_;
  Grid grid_;
  typename Kernel::Args args_{};
};

/// Lines of packets take less room from four of them on.
bool takes_lines(const MergeHeadsOptions& o) {
  constexpr Size kLeastBytes = 480;
  return o.head_size * size_of(o.type) >= kLeastBytes;
}

int blocks_per_sm(const MergeHeadsOptions& o) {
  return takes_lines(o) ? kernels::MergeHeadsLL128<float>::kBlocksPerSm : kernels::MergeHeadsLL<float>::kBlocksPerSm;
}

/// Returns the choice of the caller's table (TANDEM_SELECTION) for such runs, if it has one. A head's bytes decide the
/// packets, so that only blocks are open.
std::optional<tune::SelectedChoice> tuned_heads(const World& world, const MergeHeadsOptions& o) {
  tune::Query query;
  query.layer = kCall;
  query.pes = world.team().size;
  query.element_bytes = size_of(o.type);
  query.bytes = o.max_batch * o.heads * o.head_size * size_of(o.type);
  return tune::choose(world.machine(), "", query,
                      [&](const std::string& algorithm) { return algorithm == (takes_lines(o) ? "ll128" : "ll"); });
}

template <class T>
std::unique_ptr<MergeHeadsPlan> make(World& world, const MergeHeadsOptions& o) {
  if (!takes_lines(o)) return std::make_unique<Plan<kernels::MergeHeadsLL<T>, T>>(world, o);
  return std::make_unique<Plan<kernels::MergeHeadsLL128<T>, T>>(world, o);
}

void check_number(const char* what, Size value, Size least, Size most) {
  if (value < least || value > most)
    throw InvalidArgument(fmt::format("{}: {} given to {}, allowed are {} to {}", what, value, kCall, least, most));
}

void check(const MergeHeadsOptions& o, const Machine& machine) {
  constexpr Size kMost = Size{1} << 16;
  if (o.type != DType::kF32 && o.type != DType::kF16 && o.type != DType::kBF16)
    throw InvalidArgument(fmt::format("type: {} given to {}, allowed are f32, f16 and bf16", name(o.type), kCall));
  check_number("heads", o.heads, 1, kMost);
  check_number("head_size", o.head_size, 1, kMost);
  check_number("max_batch", o.max_batch, 0, kMost);
  check_number("base", static_cast<int>(o.base), 0, static_cast<int>(LseBase::kTwo));
  check_number("blocks", o.blocks, 0, Size{blocks_per_sm(o)} * machine.gpu.sm_count);
}

Size merged_heads(const MergeHeadsOptions& o, const Team& team, int pe) {
  return o.own_heads ? split(o.heads, team.size)[pe].size() : o.heads;
}

/// Returns whether each merged element takes the place of the same one of this PE. Only the threads that merge it read
/// it: they send it to the peers before.
bool is_in_place(const MergeHeadsOptions& o, const Team& team, const MergeHeadsCall& call) {
  const bool has_all = merged_heads(o, team, team.me) == o.heads;
  if (!has_all && call.batch != 1) return false;  // heads lie closer together in the output
  const Size first = o.own_heads ? split(o.heads, team.size)[team.me].begin : 0;
  return call.out == static_cast<const std::byte*>(call.partial) + first * o.head_size * size_of(o.type);
}

void check(const MergeHeadsOptions& o, const World& world, const MergeHeadsCall& call) {
  check_number("batch", call.batch, 0, o.max_batch);
  struct Buffer {
    const char* name;
    const void* address;
    Size bytes;
    Size alignment;
  };
  const Size head = o.head_size * size_of(o.type);
  const std::array<Buffer, 3> buffers{
      {{"partial", call.partial, call.batch * o.heads * head, size_of(o.type)},
       {"lse", call.lse, call.batch * o.heads * Size{sizeof(float)}, Size{sizeof(float)}},
       {"out", call.out, call.batch * merged_heads(o, world.team(), world.pe()) * head, size_of(o.type)}}};
  for (const Buffer& b : buffers) {
    if (b.bytes > 0 && b.address == nullptr)
      throw InvalidArgument(fmt::format("{}: none given to {}, allowed is memory of this PE", b.name, kCall));
    if (b.bytes > 0 && reinterpret_cast<std::uintptr_t>(b.address) % static_cast<std::uintptr_t>(b.alignment) != 0)
      throw InvalidArgument(
          fmt::format("{}: {} given to {}, allowed are multiples of {} bytes", b.name, b.address, kCall, b.alignment));
    kernels::check_held(world, b.name, b.address, b.bytes, kCall);
  }
  const auto* const out = static_cast<const std::byte*>(call.out);
  for (const Buffer& b : {buffers[0], buffers[1]}) {
    const auto* const in = static_cast<const std::byte*>(b.address);
    if (b.address == call.partial && is_in_place(o, world.team(), call)) continue;
    if (b.bytes > 0 && buffers[2].bytes > 0 && in < out + buffers[2].bytes && out < in + b.bytes)
      throw InvalidArgument(
          fmt::format("{}, out: buffers that overlap given to {}, allowed are separate ones, or all "
                      "heads in place, or own heads of a batch of 1",
                      b.name, kCall));
  }
}

}  // namespace

MergeHeadsPlan::MergeHeadsPlan(World& world, const MergeHeadsOptions& options) : world_(world), options_(options) {}

std::unique_ptr<MergeHeadsPlan> make_merge_heads(World& world, const MergeHeadsOptions& options) {
  check(options, world.machine());
  const Team team = world.team();
  if (!team.one_node())
    throw Unsupported(fmt::format("{}: needs stores to all PEs, which {} nodes do not have", kCall, team.nodes()));
  MergeHeadsOptions complete = options;
  const Size rows = options.max_batch * merged_heads(options, team, 0);
  const std::optional<tune::SelectedChoice> tuned = options.blocks == 0 ? tuned_heads(world, options) : std::nullopt;
  if (options.blocks == 0)
    complete.blocks =
        static_cast<int>(std::clamp<Size>(rows, 1, Size{blocks_per_sm(options)} * world.machine().gpu.sm_count));
  if (tuned && tuned->blocks > 0) complete.blocks = std::min(complete.blocks, tuned->blocks);
  const std::string what =
      fmt::format("{} {} of at most {} x {} x {} base {}{} in {} blocks", kCall, name(options.type), options.max_batch,
                  options.heads, options.head_size, options.base == LseBase::kE ? "e" : "2",
                  options.own_heads ? " own heads" : "", complete.blocks);
  log_line(team.me == 0 ? LogLevel::kInfo : LogLevel::kTrace, [&]() -> const std::string& { return what; });
  detail::NotedAllocations allocations = world.note_allocations();
  const std::size_t number = world.calls() != nullptr ? world.calls()->add(what, team) : 0;
  auto plan = options.type == DType::kF32   ? make<float>(world, complete)
              : options.type == DType::kF16 ? make<f16>(world, complete)
                                            : make<bf16>(world, complete);
  OptionChoice blocks{"blocks", std::to_string(complete.blocks), OptionSource::kCaller, ""};
  if (tuned && tuned->blocks > 0) {
    blocks.source = OptionSource::kTable;
    blocks.reason = fmt::format("selection table {}: {}", tuned->table, tuned->source);
  } else if (options.blocks == 0) {
    blocks.source = OptionSource::kRule;
    blocks.reason = fmt::format("one for each merged head, at most {} for each SM", blocks_per_sm(options));
  }
  plan->choices_ = {{"algo", takes_lines(complete) ? "ll128" : "ll", OptionSource::kRule, "by the bytes of a head"},
                    blocks};
  plan->number_ = number;
  plan->memory_ = allocations.take();
  return plan;
}

void MergeHeadsPlan::run(Stream& stream, const MergeHeadsCall& call) {
  check(options_, world_, call);
  const auto enqueue_all = [&] {
    if (call.batch > 0) enqueue(stream, call);
  };
  if (MismatchDetector* const calls = world_.calls(); calls != nullptr)
    calls->note(number_, call.batch, enqueue_all);
  else
    enqueue_all();
}

}  // namespace tandem
