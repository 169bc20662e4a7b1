// all_reduce_norm under `tandem check`.
#include "check/run_once.h"
#include "collectives/reference/norm_runs.h"
#include "tools/tandem/check/check_cases.h"

namespace tandem::cli {
namespace {

using kernels::NormPlaces;
using kernels::NormRuns;

class NormProgram final : public CheckProgram {
 public:
  explicit NormProgram(NormRuns runs) : runs_(std::move(runs)) {}
  void run(World& world) const override {
    if (const std::string wrong = kernels::wrong_of_runs(world, runs_); !wrong.empty())
      throw checker::WrongResult(world.pe(), wrong);
  }

 private:
  NormRuns runs_;
};

struct NormVariant {
  const char* name;
  Size hidden;
  NormPlaces places = NormPlaces::kSeparate;
  Quantisation quantisation = Quantisation::kNone;
  bool sharded = false;
  Size tile_bytes = 0;
};

/// A row in pieces has three, the last of them shorter.
constexpr NormVariant kNormVariants[] = {
    {"", 40},
    {"row", 40, NormPlaces::kSumInInput, Quantisation::kRow},
    {"pieces", 300, NormPlaces::kSumInResidual, Quantisation::kNone, false, 512},
    {"groups", 300, NormPlaces::kSeparate, Quantisation::kGroup, false, 512},
    {"sharded", 40, NormPlaces::kSeparate, Quantisation::kStatic, true},
};

}  // namespace

void add_norm_cases(std::vector<CheckCase>& cases, int pes) {
  for (const AllReduceNormAlgorithm& algorithm : all_reduce_norm_algorithms())
    for (const NormVariant& variant : kNormVariants) {
      if (variant.sharded && !algorithm.two_shots) continue;
      CheckCase one;
      one.op = "all_reduce_norm";
      one.algorithm = algorithm.name;
      one.variant = variant.name;
      one.machine = machine_for(pes);
      one.pes = pes;
      one.tile_bytes = variant.tile_bytes;
      NormRuns runs;
      runs.options.type = DType::kF32;
      runs.options.algorithm = algorithm.name;
      runs.options.hidden = variant.hidden;
      runs.options.max_rows = Size{2} * pes + 1;
      runs.options.blocks = 2;
      runs.options.norm = variant.sharded ? Norm::kLayer : Norm::kRms;
      runs.options.quantisation = variant.quantisation;
      runs.options.sharded_residual = variant.sharded;
      runs.places = variant.places;
      // There are enough runs to use each packet slot again, and to give blocks other rows than before.
      runs.rows = {runs.options.max_rows, 1, Size{pes}, runs.options.max_rows};
      one.make = [runs] { return std::make_unique<NormProgram>(runs); };
      cases.push_back(std::move(one));
    }
}

}  // namespace tandem::cli
