#include <algorithm>
#include <vector>

#include "collectives/plan/plan.h"

namespace tandem::kernels {

namespace {

class KernelPlan final : public CollectivePlan {
 public:
  KernelPlan(World& world, Collective collective, const CollectiveOptions& options, const Team& team,
             const PlannedKernel& kernel)
      : kernel_(kernel),
        algorithm_(options.algorithm),
        name_(plan_name(collective, options)),
        team_(team),
        grid_{plan_blocks(world, collective, options, team), options.threads},
        max_count_(options.max_count),
        per_count_(kernel.moves_bytes ? size_of(options.type) : 1),
        args_(kernel.type->args_bytes) {
    if (kernel.suitable_blocks != nullptr && options.blocks == 0)
      grid_.blocks = std::min(kernel.suitable_blocks(team, grid_.blocks), world.machine().gpu.sm_count);
    world.check_launch(*kernel.type, grid_);
    PlanSetup setup(world, team, name_, grid_.blocks, max_count_ * per_count_, options.staging);
    kernel.prepare(setup, options, args_.data());
  }

  void run(Stream& stream, Symm<const std::byte> in, Symm<std::byte> out, Size count) override {
    check_call(name_, in, out, count, max_count_, static_cast<std::size_t>(kernel_.element_bytes));
    kernel_.set_call(args_.data(), in.of(team_), out.of(team_), count * per_count_);
    stream.launch(*kernel_.type, grid_, args_.data(), team_);
  }

  const std::string& algorithm() const override { return algorithm_; }
  int blocks() const override { return grid_.blocks; }

 private:
  PlannedKernel kernel_;
  std::string algorithm_;
  std::string name_;
  Team team_;
  Grid grid_;
  Size max_count_;
  Size per_count_;               // the kernel's elements for each element of the caller
  std::vector<std::byte> args_;  // aligned for any Args
};

}  // namespace

std::string PlanSetup::name_of(const char* what) const { return name_ + " " + what; }

std::string plan_name(Collective collective, const CollectiveOptions& options) {
  return std::string(name(collective)) + " " + options.algorithm;
}

int plan_blocks(const World& world, Collective collective, const CollectiveOptions& options, const Team& team) {
  if (options.blocks > 0) return options.blocks;
  const Size elements = max(input_elements(collective, options.max_count, team.size, options.root, options.root),
                            output_elements(collective, options.max_count, team.size, options.root, options.root));
  return std::min(default_blocks(elements * size_of(options.type), team), world.machine().gpu.sm_count);
}

std::unique_ptr<CollectivePlan> make_kernel_plan(World& world, Collective collective, const CollectiveOptions& options,
                                                 const Team& team, const PlannedKernel& kernel) {
  return std::make_unique<KernelPlan>(world, collective, options, team, kernel);
}

}  // namespace tandem::kernels
