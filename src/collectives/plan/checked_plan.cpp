#include "collectives/plan/checked_plan.h"

#include <fmt/format.h>

#include "collectives/plan/plan.h"
#include "runtime/mismatch_detector.h"
#include "tandem/advanced/collective_traits.h"
#include "tandem/advanced/local_handle.h"
#include "tandem/error.h"

namespace tandem::kernels {

namespace {

class CheckedPlan final : public CollectivePlan {
 public:
  CheckedPlan(World& world, Collective collective, const CollectiveOptions& options, const Team& team, Staged staged,
              const std::function<std::unique_ptr<CollectivePlan>()>& make)
      : team_(team),
        world_(world),
        collective_(collective),
        element_bytes_(size_of(options.type)),
        root_(options.root),
        max_count_(options.max_count),
        local_in_(options.local_in),
        local_out_(options.local_out),
        on_device_(world.checks_calls()),
        log_(world.calls()) {
    comparison_.what = plan_name(collective, options);
    std::string whole = fmt::format("{} {}", comparison_.what, name(options.type));
    if (reduces(collective)) whole += fmt::format(" {}", name(options.op));
    if (options.wire != WireFormat::kType) whole += fmt::format(" as {}", name(options.wire));
    if (options.root != 0) whole += fmt::format(" root {}", options.root);
    if (options.blocks != 0) whole += fmt::format(" in {} blocks", options.blocks);
    // The text omits the buffers' places: a buffer that no peer accesses may lie elsewhere on every PE.
    if (staged.any()) whole += fmt::format(" that copies {}", !staged.out ? "in" : !staged.in ? "out" : "in and out");
    whole += fmt::format(" of at most {}", max_count_);
    if (log_ != nullptr) number_ = log_->add(whole, team);
    plan_ = make();
    if (!on_device_) return;
    PlanSetup setup(world, team, comparison_.what + " agreement", 1, 0);
    constexpr Size words_and_slots = 4;
    comparison_.signature = call_signature(whole);
    comparison_.words = setup.signals(words_and_slots * team.size, "words");
    comparison_.calls = setup.epochs();
  }

  void run(Stream& stream, Symm<const std::byte> in, Symm<std::byte> out, Size count) override {
    compare(stream, in, out, count, [&] { plan_->run(stream, in, out, count); });
  }
  void run_scaled(Stream& stream, Symm<const std::byte> in, Symm<std::byte> out, Size count,
                  const RunScale& scale) override {
    compare(stream, in, out, count, [&] { plan_->run_scaled(stream, in, out, count, scale); });
  }

  const std::string& algorithm() const override { return plan_->algorithm(); }
  int blocks() const override { return plan_->blocks(); }

 private:
  /// Enqueues `run` once the call is compared with those of the others.
  template <class Run>
  void compare(Stream& stream, Symm<const std::byte> in, Symm<std::byte> out, Size count, const Run& run) {
    check_call(comparison_.what, in, out, count, max_count_);
    check_handle("in", in, count, local_in_);
    check_handle("out", out, count, local_out_);
    const Size in_elements = input_elements(collective_, count, team_.size, team_.me, root_);
    const Size out_elements = output_elements(collective_, count, team_.size, team_.me, root_);
    check_held(world_, "in", in.local(), in_elements * element_bytes_, comparison_.what);
    check_held(world_, "out", out.local(), out_elements * element_bytes_, comparison_.what);
    check_overlap(collective_, comparison_.what, in.local(), out.local(), count, element_bytes_, root_, team_);
    const auto enqueue = [&] {
      if (on_device_) {
        detail::CallComparison agreement = comparison_;
        agreement.count = count;
        stream.compare_call(agreement, team_);
      }
      run();
    };
    if (log_ != nullptr)
      log_->note(number_, count, enqueue);
    else
      enqueue();
  }

  /// A handle made for a team (Symm::of) would be mistaken for the world's.
  void check_handle(const char* what, Symm<const std::byte> handle, Size count, bool may_be_local) const {
    if (count == 0) return;
    if (handle.local() != handle.on(world_.pe()))
      throw InvalidArgument(
          fmt::format("{}: a team's handle given to {}, allowed is the world's", what, comparison_.what));
    if (!may_be_local && is_local_handle(handle))
      throw InvalidArgument(
          fmt::format("{}: memory that peers do not reach given to {}, allowed is the heap's, or with local_{} any",
                      what, comparison_.what, what));
  }

  std::unique_ptr<CollectivePlan> plan_;
  Team team_;
  World world_;
  Collective collective_;
  Size element_bytes_;
  int root_;
  Size max_count_;
  bool local_in_, local_out_;
  bool on_device_;
  MismatchDetector* log_;
  std::size_t number_ = 0;
  detail::CallComparison comparison_;
};

}  // namespace

std::unique_ptr<CollectivePlan> compare_calls(World& world, Collective collective, const CollectiveOptions& options,
                                              const Team& team, Staged staged,
                                              const std::function<std::unique_ptr<CollectivePlan>()>& make) {
  if (!world.checks_calls() && world.calls() == nullptr) return make();
  return std::make_unique<CheckedPlan>(world, collective, options, team, staged, make);
}

void check_held(const World& world, const std::string& argument, const void* memory, Size bytes,
                const std::string& call) {
  const std::optional<Size> held = bytes > 0 ? world.bytes_from(memory) : std::nullopt;
  if (held && *held < bytes)
    throw InvalidArgument(fmt::format("{}: a buffer that has {} bytes from {} on given to {}, this run needs {}",
                                      argument, *held, memory, call, bytes));
}

void check_overlap(Collective collective, const std::string& collective_and_algorithm, const std::byte* in,
                   const std::byte* out, Size count, Size element_bytes, int root, const Team& team) {
  const Size in_bytes = input_elements(collective, count, team.size, team.me, root) * element_bytes;
  const Size out_bytes = output_elements(collective, count, team.size, team.me, root) * element_bytes;
  if (in_bytes == 0 || out_bytes == 0 || in + in_bytes <= out || out + out_bytes <= in) return;
  const CollectiveTraits& its = traits(collective);
  const CollectivePlaces places = its.places(count * element_bytes, team.me, root);
  if (its.has_place && in + places.out == out + places.in) return;
  throw InvalidArgument(
      fmt::format("in, out: buffers that overlap given to {}, allowed are {}", collective_and_algorithm,
                  its.has_place ? "separate ones, or the place of an in-place call" : "separate ones"));
}

}  // namespace tandem::kernels
