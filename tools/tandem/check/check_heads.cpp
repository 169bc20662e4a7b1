// merge_heads under `tandem check`.
#include <tuple>

#include "check/run_once.h"
#include "collectives/reference/heads_runs.h"
#include "tools/tandem/check/check_cases.h"

namespace tandem::cli {
namespace {

class HeadsProgram final : public CheckProgram {
 public:
  explicit HeadsProgram(kernels::HeadsRuns runs) : runs_(std::move(runs)) {}
  void run(World& world) const override {
    if (const std::string wrong = kernels::wrong_of_runs(world, runs_); !wrong.empty())
      throw checker::WrongResult(world.pe(), wrong);
  }

 private:
  kernels::HeadsRuns runs_;
};

}  // namespace

void add_heads_cases(std::vector<CheckCase>& cases, int pes) {
  for (const Size head_size : {Size{20}, Size{300}})  // with LL packets; in two pieces with lines
    for (const auto& [variant, own_heads, in_place] :
         {std::tuple{"", true, false}, std::tuple{"all", false, false}, std::tuple{"all_in_place", false, true}}) {
      CheckCase one;
      one.op = "merge_heads";
      one.algorithm = head_size == 20 ? "ll" : "ll128";
      one.variant = variant;
      one.has_twin = in_place;
      one.machine = machine_for(pes);
      one.pes = pes;
      kernels::HeadsRuns runs;
      runs.options.type = DType::kF32;
      runs.options.max_batch = 3;
      runs.options.heads = Size{2} * pes - 1;
      runs.options.head_size = head_size;
      runs.options.base = LseBase::kTwo;
      runs.options.own_heads = own_heads;
      runs.options.blocks = 2;
      runs.batches = {3, 1, 3, 2};
      runs.in_place = in_place;
      one.make = [runs] { return std::make_unique<HeadsProgram>(runs); };
      cases.push_back(std::move(one));
    }
}

}  // namespace tandem::cli
