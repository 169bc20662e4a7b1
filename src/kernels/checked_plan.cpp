#include "kernels/checked_plan.h"

#include <fmt/format.h>

#include "kernels/plan.h"

namespace tandem::kernels {

namespace {

/// FNV-1a (RFC 9923) over the call's description: the same on every machine.
std::uint32_t hash_of(const std::string& text) {
  std::uint32_t hash = 2166136261U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

class CheckedPlan final : public CollectivePlan {
 public:
  CheckedPlan(World& world, Collective collective, const CollectiveOptions& options, const Team& team,
              std::unique_ptr<CollectivePlan> plan)
      : plan_(std::move(plan)), team_(team) {
    PlanSetup setup(world, team, plan_name(collective, options) + " agreement", 1, 0);
    constexpr Size words_and_slots = 4;
    agreement_.what = plan_name(collective, options);
    agreement_.signature = hash_of(fmt::format("{} {} {} {} {}", agreement_.what, name(options.type), name(options.op),
                                               options.root, options.max_count));
    agreement_.words = setup.signals(words_and_slots * team.size, "words");
    agreement_.calls = setup.epochs();
  }

  void run(Stream& stream, Symm<const std::byte> in, Symm<std::byte> out, Size count) override {
    detail::Agreement agreement = agreement_;
    agreement.count = count;
    stream.agree(agreement, team_);
    plan_->run(stream, in, out, count);
  }

  const std::string& algorithm() const override { return plan_->algorithm(); }

 private:
  std::unique_ptr<CollectivePlan> plan_;
  Team team_;
  detail::Agreement agreement_;
};

}  // namespace

std::unique_ptr<CollectivePlan> check_calls(World& world, Collective collective, const CollectiveOptions& options,
                                            const Team& team, std::unique_ptr<CollectivePlan> plan) {
  return std::make_unique<CheckedPlan>(world, collective, options, team, std::move(plan));
}

}  // namespace tandem::kernels
