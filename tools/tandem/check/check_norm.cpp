// all_reduce_norm, and operators with a norm, under `tandem check`.
#include "check/run_once.h"
#include "collectives/reference/norm_runs.h"
#include "operators/reference/normed_runs.h"
#include "tools/tandem/check/check_cases.h"

namespace tandem::cli {
namespace {

using kernels::NormPlaces;
using kernels::NormRuns;
using ops::NormedRuns;

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
  Size split_hidden = 0;  ///< for rows that are split over blocks, in whole tiles; 0: not checked
};

/// A row in pieces has three, the last of them shorter. A long one has four: more than a block holds in registers.
/// Split rows have two parts, long ones three.
constexpr NormVariant kNormVariants[] = {
    {"", 40, NormPlaces::kSeparate, Quantisation::kNone, false, 0, 600},
    {"row", 40, NormPlaces::kSumInInput, Quantisation::kRow, false, 0, 600},
    {"pieces", 300, NormPlaces::kSumInResidual, Quantisation::kNone, false, 512},
    {"groups", 300, NormPlaces::kSeparate, Quantisation::kGroup, false, 512, 600},
    {"long", 500, NormPlaces::kSumInInput, Quantisation::kRow, false, 512, 1300},
    {"sharded", 40, NormPlaces::kSeparate, Quantisation::kStatic, true},
};

class NormedProgram final : public CheckProgram {
 public:
  explicit NormedProgram(NormedRuns runs) : runs_(std::move(runs)) {}
  void run(World& world) const override {
    Stream main = world.make_stream("main");
    if (const std::string wrong = ops::wrong_of_normed_runs(world, main, runs_); !wrong.empty())
      throw checker::WrongResult(world.pe(), wrong);
  }

 private:
  NormedRuns runs_;
};

struct NormedVariant {
  const char* name;
  Operator op;
  Form form;
  int shots = 0;
  OperatorNorm norm;
};

const NormedVariant kNormedVariants[] = {
    {"normed_packets", Operator::kGemmAllReduce, Form::kSequential, 0, {.norm = Norm::kRms, .residual = true}},
    {"normed_two_shot",
     Operator::kGemmAllReduce,
     Form::kOverlapped,
     2,
     {.norm = Norm::kLayer, .residual = true, .sum = true}},
    {"normed_rows",
     Operator::kGemmReduceScatter,
     Form::kOverlapped,
     0,
     {.norm = Norm::kRms, .residual = true, .sum = true, .quantisation = Quantisation::kRow}}};

CheckCase case_of(int pes, const char* algorithm, const NormedRuns& runs) {
  CheckCase one;
  one.op = name(runs.op);
  one.algorithm = algorithm;
  one.machine = machine_for(pes);
  one.pes = pes;
  one.make = [runs] { return std::make_unique<NormedProgram>(runs); };
  return one;
}

/// Norms before a gather, whose chunks have 8 rows.
struct NormedGatherVariant {
  const char* name;
  Form form;
  CopyBy copy_by;
  Direction direction = Direction::kPush;
};
constexpr NormedGatherVariant kNormedGatherVariants[] = {
    {"normed_ce_push", Form::kOverlapped, CopyBy::kCopyEngine},
    {"normed_ce_pull", Form::kOverlapped, CopyBy::kCopyEngine, Direction::kPull},
    {"normed_sm_push", Form::kOverlapped, CopyBy::kSm},
    {"normed_sm_pull", Form::kOverlapped, CopyBy::kSm, Direction::kPull},
    {"normed_and_pushed", Form::kSequential, CopyBy::kSm}};

CheckCase gather_case(int pes, const NormedGatherVariant& variant) {
  NormedRuns runs;
  runs.op = Operator::kAllGatherGemm;
  OperatorOptions& o = runs.options;
  o.m = Size{15} * pes + 1;
  o.n = 40;
  o.type = DType::kF32;
  o.form = variant.form;
  o.copy_by = variant.copy_by;
  o.direction = variant.direction;
  o.splits = 2;
  o.tile_m = 4;
  o.tile_n = 16;
  o.use_tuned = false;
  o.norm = {.norm = Norm::kRms, .residual = true, .sum = true};
  runs.rows = {o.m, 1, o.m, o.m / 2};
  runs.keeps_gathered = false;
  return case_of(pes, variant.name, runs);
}

/// The GEMM's blocks add and norm. So many columns fill the GPU.
CheckCase few_rows(int pes) {
  NormedRuns runs;
  runs.options.m = 2;
  runs.options.n = 7680;
  runs.options.form = Form::kOverlapped;
  runs.options.use_tuned = false;
  runs.options.norm = {.norm = Norm::kRms, .residual = true, .sum = true};
  runs.rows = {2, 1};
  runs.depth = 256;
  return case_of(pes, "normed_few_rows", runs);
}

void add_normed_cases(std::vector<CheckCase>& cases, int pes) {
  for (const NormedVariant& variant : kNormedVariants) {
    NormedRuns runs;
    runs.op = variant.op;
    OperatorOptions& o = runs.options;
    o.m = Size{3} * pes + 1;
    o.n = 40;
    o.type = DType::kF32;
    o.form = variant.form;
    o.shots = variant.shots;
    if (o.form == Form::kOverlapped) o.reduction = Reduction::kOwner;
    o.tile_m = 8;
    o.tile_n = 16;
    o.use_tuned = false;
    o.norm = variant.norm;
    runs.rows = {o.m, 1, o.m};
    cases.push_back(case_of(pes, variant.name, runs));
    cases.back().has_twin = true;  // all_reduce_norm and the operators' own cases cover it
  }
  for (const NormedGatherVariant& variant : kNormedGatherVariants)
    for (const int pes_per_node : node_sizes(pes)) {
      cases.push_back(gather_case(pes, variant));
      cases.back().pes_per_node = pes_per_node;
      cases.back().has_twin = pes_per_node != 0;  // the operator's own cases cover what is different between nodes
    }
  if (pes == 3) cases.push_back(few_rows(pes));
}

}  // namespace

void add_norm_cases(std::vector<CheckCase>& cases, int pes) {
  for (const AllReduceNormAlgorithm& algorithm : all_reduce_norm_algorithms())
    for (const NormVariant& variant : kNormVariants) {
      if (algorithm.splits_rows ? variant.split_hidden == 0 : variant.sharded && !algorithm.two_shots) continue;
      CheckCase one;
      one.op = "all_reduce_norm";
      one.algorithm = algorithm.name;
      one.variant = variant.name;
      one.machine = machine_for(pes);
      one.pes = pes;
      one.tile_bytes = algorithm.splits_rows ? 0 : variant.tile_bytes;
      NormRuns runs;
      runs.options.type = DType::kF32;
      runs.options.algorithm = algorithm.name;
      runs.options.hidden = algorithm.splits_rows ? variant.split_hidden : variant.hidden;
      runs.options.max_rows = Size{2} * pes + 1;
      runs.options.blocks = algorithm.splits_rows ? 4 : 2;
      runs.options.norm = variant.sharded ? Norm::kLayer : Norm::kRms;
      runs.options.quantisation = variant.quantisation;
      runs.options.sharded_residual = variant.sharded;
      runs.places = variant.places;
      // There are enough runs to use each packet slot again, and to give blocks other rows than before.
      runs.rows = {runs.options.max_rows, 1, Size{pes}, runs.options.max_rows};
      one.make = [runs] { return std::make_unique<NormProgram>(runs); };
      cases.push_back(std::move(one));
    }
  add_normed_cases(cases, pes);
}

}  // namespace tandem::cli
