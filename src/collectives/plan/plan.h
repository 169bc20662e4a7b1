#pragma once
/// Plans of collectives that are one kernel. A kernel needs
///
///   struct Args { Symm<const E> in; Symm<E> out; Size count; ... };    // optional members: op, scale, root, wire
///   template <class Setup> static Args prepare(Setup& setup);          // host side: allocates what else is in Args
///
/// Its plan is `make_plan<Kernel>` (E is the element type T of Kernel<T>) or `make_byte_plan<Kernel>` (E is std::byte,
/// and `count` is in bytes). A kernel that needs wide blocks declares `static constexpr int kLeastThreads`, and the
/// registry has `narrow_unfit<Kernel>`. A kernel that divides its blocks adapts the default with `static int
/// suitable_blocks(const Team&, int blocks)`. A marker of base/gpu_kernel.h follows the kernel.

#include <algorithm>
#include <memory>
#include <string>
#include <type_traits>

#include "base/gpu_kernel.h"
#include "collectives/plan/collective.h"
#include "tandem/error.h"

namespace tandem::kernels {

/// The interface for a kernel's `prepare`: the plan's size, and allocations for this plan. Handles belong to the team.
class PlanSetup {
 public:
  PlanSetup(World& world, const Team& team, std::string name, int blocks, Size max_count,
            const CollectiveStaging& staging = {})
      : world_(&world),
        team_(team),
        name_(std::move(name)),
        blocks_(blocks),
        max_count_(max_count),
        staging_(staging) {}

  const Team& team() const { return team_; }
  int pes() const { return team_.size; }
  int blocks() const { return blocks_; }
  /// Largest `count` of a run, in the kernel's elements.
  Size max_count() const { return max_count_; }

  template <class T>
  Symm<T> symmetric(Size count, const char* what) {
    return world_->heap().allocate<T>(count, name_ + " " + what).of(team_);
  }
  Signals signals(Size count, const char* what) { return symmetric<Signal>(count, what); }
  /// Bytes of each staging that plans share; 0: there is none.
  Size staging_bytes() const { return staging_.bytes; }
  Symm<std::byte> staging_in() const { return staging_.in.of(team_); }
  Symm<std::byte> staging_out() const { return staging_.out.of(team_); }
  /// Words for notify_all and wait_all: one for each block and PE.
  Signals slots(const char* what) { return signals(Size{blocks_} * pes(), what); }
  template <class T>
  T* local(Size count, const char* what) {
    return world_->heap().allocate_local<T>(count, name_ + " " + what);
  }
  /// One word a block.
  Epochs epochs() { return world_->heap().epochs(blocks_, name_ + " epochs"); }

 private:
  World* world_;
  Team team_;
  std::string name_;
  int blocks_;
  Size max_count_;
  CollectiveStaging staging_;
};

/// Returns "all_reduce ring", for names of buffers and for errors.
inline std::string plan_name(Collective collective, const CollectiveOptions& options) {
  return std::string(name(collective)) + " " + options.algorithm;
}

/// Returns the default number of blocks of a plan's grid: at most the SMs of this PE.
inline int plan_blocks(const World& world, Collective collective, const CollectiveOptions& options, const Team& team) {
  if (options.blocks > 0) return options.blocks;
  const Size elements = max(input_elements(collective, options.max_count, team.size, options.root, options.root),
                            output_elements(collective, options.max_count, team.size, options.root, options.root));
  return std::min(default_blocks(elements * size_of(options.type), team), world.machine().gpu.sm_count);
}

template <class Kernel>
class KernelPlan final : public CollectivePlan {
  static_assert(detail::kHasGpuMarker<Kernel>, "the kernel's header needs a marker of base/gpu_kernel.h");

 public:
  using Args = typename Kernel::Args;
  using Element = std::remove_pointer_t<decltype(std::declval<Args>().out.local())>;

  KernelPlan(World& world, Collective collective, const CollectiveOptions& options, const Team& team)
      : algorithm_(options.algorithm),
        name_(plan_name(collective, options)),
        team_(team),
        grid_{plan_blocks(world, collective, options, team), options.threads},
        max_count_(options.max_count),
        per_count_(std::is_same_v<Element, std::byte> ? size_of(options.type) : 1) {
    if constexpr (requires { Kernel::suitable_blocks(team, 1); })
      if (options.blocks == 0)
        grid_.blocks = std::min(Kernel::suitable_blocks(team, grid_.blocks), world.machine().gpu.sm_count);
    world.check_launch<Kernel>(grid_);
    PlanSetup setup(world, team, name_, grid_.blocks, max_count_ * per_count_, options.staging);
    args_ = Kernel::prepare(setup);
    if constexpr (requires { args_.op; }) args_.op = options.op;
    if constexpr (requires { args_.root; }) args_.root = options.root;
    if constexpr (requires { args_.wire; }) args_.wire = options.wire;
    if constexpr (requires { args_.scale; }) args_.scale = convert<decltype(args_.scale)>(options.scale);
  }

  void run(Stream& stream, Symm<const std::byte> in, Symm<std::byte> out, Size count) override {
    check_call(name_, in, out, count, max_count_, alignof(Element));
    Args args = args_;
    args.in = in.of(team_).template as<const Element>();
    args.out = out.of(team_).template as<Element>();
    args.count = count * per_count_;
    stream.launch<Kernel>(grid_, args, team_);
  }

  const std::string& algorithm() const override { return algorithm_; }
  int blocks() const override { return grid_.blocks; }

 private:
  std::string algorithm_;
  std::string name_;
  Team team_;
  Grid grid_;
  Size max_count_;
  Size per_count_;  // the kernel's elements for each element of the caller
  Args args_{};
};

/// A factory, as Algorithm::make, for a kernel with an element type.
template <Collective kCollective, template <class> class Kernel>
std::unique_ptr<CollectivePlan> make_plan(World& world, const CollectiveOptions& options, const Team& team) {
  return dispatch(options.type, [&]<class T>() -> std::unique_ptr<CollectivePlan> {
    return std::make_unique<KernelPlan<Kernel<T>>>(world, kCollective, options, team);
  });
}

/// A check, as Algorithm::unfit, for a kernel that needs wide blocks.
template <class Kernel>
std::string narrow_unfit(const Machine&, const CollectiveOptions& options) {
  constexpr int kLeast = Kernel::kLeastThreads;
  if (options.threads >= kLeast) return "";
  return "needs at least " + std::to_string(kLeast) + " threads a block, " + std::to_string(options.threads) + " given";
}

template <template <class> class Kernel>
std::string narrow_unfit(const Machine& machine, const CollectiveOptions& options) {
  return narrow_unfit<Kernel<float>>(machine, options);
}

/// A factory, as Algorithm::make, for a kernel that moves bytes.
template <Collective kCollective, class Kernel>
std::unique_ptr<CollectivePlan> make_byte_plan(World& world, const CollectiveOptions& options, const Team& team) {
  return std::make_unique<KernelPlan<Kernel>>(world, kCollective, options, team);
}

}  // namespace tandem::kernels
