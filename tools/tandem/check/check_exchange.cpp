// exchange_heads under `tandem check`.
#include "check/run_once.h"
#include "collectives/reference/exchange_example.h"
#include "tools/tandem/check/check_cases.h"

namespace tandem::cli {
namespace {

class ExchangeProgram final : public CheckProgram {
 public:
  explicit ExchangeProgram(kernels::ExchangeRuns runs) : runs_(std::move(runs)) {}
  void run(World& world) const override {
    if (const std::string wrong = kernels::wrong_of_runs(world, runs_); !wrong.empty())
      throw checker::WrongResult(world.pe(), wrong);
  }

 private:
  kernels::ExchangeRuns runs_;
};

}  // namespace

void add_exchange_cases(std::vector<CheckCase>& cases, int pes) {
  for (const HeadsDirection direction : {HeadsDirection::kToHeads, HeadsDirection::kToRows}) {
    CheckCase one;
    one.op = "exchange_heads";
    one.algorithm = "segments";
    one.variant = direction == HeadsDirection::kToHeads ? "" : "to_rows";
    one.machine = machine_for(pes);
    one.pes = pes;
    one.tile_bytes = 64;
    kernels::ExchangeRuns runs;
    runs.options.segments = {40, 10};
    runs.options.direction = direction;
    runs.options.max_rows = 3;
    runs.options.blocks = 2;
    runs.rows = {3, 1, 3, 2};
    one.make = [runs] { return std::make_unique<ExchangeProgram>(runs); };
    cases.push_back(std::move(one));
  }
}

}  // namespace tandem::cli
