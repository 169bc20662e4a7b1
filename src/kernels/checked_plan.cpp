#include "kernels/checked_plan.h"

#include <fmt/format.h>

#include "kernels/plan.h"
#include "model/call_log.h"

namespace tandem::kernels {

namespace {

class CheckedPlan final : public CollectivePlan {
 public:
  CheckedPlan(World& world, Collective collective, const CollectiveOptions& options, const Team& team,
              std::unique_ptr<CollectivePlan> plan)
      : plan_(std::move(plan)),
        team_(team),
        max_count_(options.max_count),
        on_device_(world.checks_calls()),
        log_(world.calls()) {
    agreement_.what = plan_name(collective, options);
    std::string whole = fmt::format("{} {}", agreement_.what, name(options.type));
    if (reduces(collective)) whole += fmt::format(" {}", name(options.op));
    if (options.root != 0) whole += fmt::format(" root {}", options.root);
    if (options.blocks != 0) whole += fmt::format(" in {} blocks", options.blocks);
    whole += fmt::format(" of at most {}", max_count_);
    if (log_ != nullptr) number_ = log_->add(whole, team);
    if (!on_device_) return;
    PlanSetup setup(world, team, agreement_.what + " agreement", 1, 0);
    constexpr Size words_and_slots = 4;
    agreement_.signature = call_signature(whole);
    agreement_.words = setup.signals(words_and_slots * team.size, "words");
    agreement_.calls = setup.epochs();
  }

  void run(Stream& stream, Symm<const std::byte> in, Symm<std::byte> out, Size count) override {
    check_call(agreement_.what, in, out, count, max_count_);
    const auto enqueue = [&] {
      if (on_device_) {
        detail::Agreement agreement = agreement_;
        agreement.count = count;
        stream.agree(agreement, team_);
      }
      plan_->run(stream, in, out, count);
    };
    if (log_ != nullptr)
      log_->note(number_, count, enqueue);
    else
      enqueue();
  }

  const std::string& algorithm() const override { return plan_->algorithm(); }

 private:
  std::unique_ptr<CollectivePlan> plan_;
  Team team_;
  Size max_count_;
  bool on_device_;
  CallLog* log_;
  std::size_t number_ = 0;
  detail::Agreement agreement_;
};

}  // namespace

std::unique_ptr<CollectivePlan> compare_calls(World& world, Collective collective, const CollectiveOptions& options,
                                              const Team& team, std::unique_ptr<CollectivePlan> plan) {
  if (!world.checks_calls() && world.calls() == nullptr) return plan;
  return std::make_unique<CheckedPlan>(world, collective, options, team, std::move(plan));
}

}  // namespace tandem::kernels
