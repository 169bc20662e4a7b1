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

#include <fmt/format.h>

#include <memory>
#include <new>
#include <span>
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
    return world_->heap().allocate<T>(count, name_of(what)).of(team_);
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
    return world_->heap().allocate_local<T>(count, name_of(what));
  }
  /// Returns local memory with these values.
  template <class T>
  const T* constants(std::span<const T> values, const char* what) {
    const auto count = static_cast<Size>(values.size());
    T* const memory = local<T>(count, what);
    world_->copy_in(memory, values.data(), count * Size{sizeof(T)});
    return memory;
  }
  /// One word a block.
  Epochs epochs() { return world_->heap().epochs(blocks_, name_of("epochs")); }

 private:
  std::string name_of(const char* what) const;

  World* world_;
  Team team_;
  std::string name_;
  int blocks_;
  Size max_count_;
  CollectiveStaging staging_;
};

/// Returns "all_reduce ring", for names of buffers and for errors.
std::string plan_name(Collective collective, const CollectiveOptions& options);

/// Returns the default number of blocks of a plan's grid: at most the SMs of this PE.
int plan_blocks(const World& world, Collective collective, const CollectiveOptions& options, const Team& team);

/// The parts of a plan that depend on its kernel.
struct PlannedKernel {
  const detail::KernelType* type = nullptr;
  int (*suitable_blocks)(const Team& team, int blocks) = nullptr;  ///< null: any number suits
  /// Writes the kernel's Args: allocations, and the options that it takes.
  void (*prepare)(PlanSetup& setup, const CollectiveOptions& options, void* args) = nullptr;
  /// Sets the buffers of one call, as the team's, and the number of the kernel's elements.
  void (*set_call)(void* args, Symm<const std::byte> in, Symm<std::byte> out, Size count) = nullptr;
  Size element_bytes = 1;
  bool moves_bytes = false;  ///< the kernel's elements are bytes of any type
};

/// Returns the plan of a collective that is one kernel.
std::unique_ptr<CollectivePlan> make_kernel_plan(World& world, Collective collective, const CollectiveOptions& options,
                                                 const Team& team, const PlannedKernel& kernel);

template <class Kernel>
std::unique_ptr<CollectivePlan> make_kernel_plan(World& world, Collective collective, const CollectiveOptions& options,
                                                 const Team& team) {
  static_assert(detail::kHasGpuMarker<Kernel>, "the kernel's header needs a marker of base/gpu_kernel.h");
  using Args = typename Kernel::Args;
  using Element = std::remove_pointer_t<decltype(std::declval<Args>().out.local())>;
  PlannedKernel kernel;
  kernel.type = &detail::kernel_type<Kernel>();
  if constexpr (requires { Kernel::suitable_blocks(team, 1); }) kernel.suitable_blocks = Kernel::suitable_blocks;
  kernel.prepare = [](PlanSetup& setup, const CollectiveOptions& of, void* memory) {
    Args& args = *new (memory) Args(Kernel::prepare(setup));
    if constexpr (requires { args.op; }) args.op = of.op;
    if constexpr (requires { args.root; }) args.root = of.root;
    if constexpr (requires { args.wire; }) args.wire = of.wire;
    if constexpr (requires { args.scale; }) args.scale = convert<decltype(args.scale)>(of.scale);
  };
  kernel.set_call = [](void* memory, Symm<const std::byte> in, Symm<std::byte> out, Size count) {
    Args& args = *static_cast<Args*>(memory);
    args.in = in.template as<const Element>();
    args.out = out.template as<Element>();
    args.count = count;
  };
  kernel.element_bytes = sizeof(Element);
  kernel.moves_bytes = std::is_same_v<Element, std::byte>;
  return make_kernel_plan(world, collective, options, team, kernel);
}

/// A factory, as Algorithm::make, for a kernel with an element type.
template <Collective kCollective, template <class> class Kernel>
std::unique_ptr<CollectivePlan> make_plan(World& world, const CollectiveOptions& options, const Team& team) {
  return dispatch(options.type, [&]<class T>() -> std::unique_ptr<CollectivePlan> {
    return make_kernel_plan<Kernel<T>>(world, kCollective, options, team);
  });
}

/// A check, as Algorithm::unfit, for a kernel that needs wide blocks.
template <class Kernel>
std::string narrow_unfit(const Machine&, const CollectiveOptions& options) {
  constexpr int kLeast = Kernel::kLeastThreads;
  if (options.threads >= kLeast) return "";
  return fmt::format("needs at least {} threads a block, {} given", kLeast, options.threads);
}

template <template <class> class Kernel>
std::string narrow_unfit(const Machine& machine, const CollectiveOptions& options) {
  return narrow_unfit<Kernel<float>>(machine, options);
}

/// A factory, as Algorithm::make, for a kernel that moves bytes.
template <Collective kCollective, class Kernel>
std::unique_ptr<CollectivePlan> make_byte_plan(World& world, const CollectiveOptions& options, const Team& team) {
  return make_kernel_plan<Kernel>(world, kCollective, options, team);
}

}  // namespace tandem::kernels
