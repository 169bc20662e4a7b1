// Checks operators with a norm on the GPUs that it finds, against exact results. It prints failures, and
// "N passed, N failed". The exit code is 1 if anything failed.
//
//   normed_operators_gpu_check [PES]    only so many PEs (default: 1, 2, 3 and 4; PEs may share a GPU)

#include <cstdlib>
#include <optional>

#include "gpu/counted_check.h"
#include "operators/reference/normed_runs.h"

namespace tandem::test {

namespace {

using ops::NormedRuns;

struct Way {
  Operator op;
  Form form;
  int shots;
};
constexpr Way kWays[] = {{Operator::kGemmAllReduce, Form::kSuitable, 0},
                         {Operator::kGemmAllReduce, Form::kSequential, 0},
                         {Operator::kGemmAllReduce, Form::kOverlapped, 2},
                         {Operator::kGemmReduceScatter, Form::kSuitable, 0},
                         {Operator::kGemmReduceScatter, Form::kOverlapped, 0}};
constexpr OperatorNorm kNorms[] = {
    {.norm = Norm::kRms, .residual = true, .sum = true},
    {.norm = Norm::kLayer, .residual = true, .norm_bias = true},
    {.norm = Norm::kRms, .residual = true, .sum = true, .quantisation = Quantisation::kRow},
    {.norm = Norm::kNone, .residual = true, .quantisation = Quantisation::kGroup}};

constexpr DType kTypes[] = {DType::kBF16, DType::kE4M3, DType::kF16};

std::string describe(const NormedRuns& runs, int pes) {
  const OperatorOptions& o = runs.options;
  return fmt::format("{} {} shots {} {} {}x{} norm {} quantise {}{}{}{}{} on {} PEs", name(runs.op), name(o.form),
                     o.shots, name(o.type), o.m, o.n, name(o.norm.norm), name(o.norm.quantisation),
                     o.norm.residual ? " residual" : "", o.norm.norm_bias ? " norm_bias" : "", o.norm.sum ? " sum" : "",
                     runs.sum_in_residual ? " in place" : "", pes);
}

std::vector<NormedRuns> cases() {
  std::vector<NormedRuns> all;
  for (const Way& way : kWays)
    for (const OperatorNorm& norm : kNorms)
      for (const Size rows : {Size{1}, Size{40}, Size{300}}) {
        NormedRuns runs;
        runs.op = way.op;
        OperatorOptions& o = runs.options;
        o.m = rows;
        o.n = 1032;
        o.type = kTypes[(all.size() + all.size() / 3) % std::size(kTypes)];
        o.form = way.form;
        o.shots = way.shots;
        o.norm = norm;
        o.use_tuned = false;
        runs.rows = {rows, (rows + 1) / 2, rows};
        runs.sum_in_residual = all.size() % 2 == 0;
        runs.depth = 304;  // at least the rows
        all.push_back(runs);
      }
  return all;
}

struct GatherWay {
  Form form;
  std::optional<CopyBy> copy_by;
  Direction direction = Direction::kPush;
  int splits = 0;
};
constexpr GatherWay kGatherWays[] = {{Form::kSuitable, {}},
                                     {Form::kSequential, CopyBy::kSm},
                                     {Form::kOverlapped, CopyBy::kCopyEngine, Direction::kPush, 2},
                                     {Form::kOverlapped, CopyBy::kSm, Direction::kPush, 2},
                                     {Form::kOverlapped, CopyBy::kCopyEngine, Direction::kPull, 2},
                                     {Form::kOverlapped, CopyBy::kSm, Direction::kPull, 2}};

/// Norms before a gather. A shard of 600 rows has two chunks on one and two PEs, and rows of several waves of blocks.
/// `sharing`: PEs share GPUs. Then SMs move everything, since nothing promises that copies of such PEs do not stand
/// behind each other.
std::vector<NormedRuns> gathers(bool sharing) {
  std::vector<NormedRuns> all;
  for (const GatherWay& way : kGatherWays) {
    if (sharing && way.copy_by != CopyBy::kSm) continue;
    for (const Norm norm : {Norm::kRms, Norm::kLayer, Norm::kNone})
      for (const Size rows : {Size{1}, Size{41}, Size{600}}) {
        NormedRuns runs;
        runs.op = Operator::kAllGatherGemm;
        OperatorOptions& o = runs.options;
        o.m = rows;
        o.n = 1056;  // 8 divides the parts of up to four PEs
        o.type = all.size() % 3 == 2 ? DType::kF16 : DType::kBF16;
        if (all.size() % 5 == 4) {
          o.type = DType::kE4M3;
          o.a_scale_per_row = all.size() % 2 == 0;
          o.block_scales = all.size() % 4 == 1;
        }
        o.form = way.form;
        o.copy_by = way.copy_by;
        o.direction = way.direction;
        o.splits = way.splits;
        o.norm = {.norm = norm, .residual = true, .norm_bias = norm == Norm::kLayer, .sum = all.size() % 2 == 0};
        o.use_tuned = false;
        runs.rows = {rows, (rows + 1) / 2, rows, rows};
        runs.sum_in_residual = all.size() % 4 == 0;
        runs.keeps_gathered = !sharing;
        all.push_back(runs);
      }
  }
  return all;
}

/// The GEMM's blocks add and norm; so many columns fill the SMs.
std::vector<NormedRuns> few_rows(int sms) {
  std::vector<NormedRuns> all;
  for (const Size rows : {Size{1}, Size{16}, Size{17}, Size{40}, Size{64}})
    for (const bool bias : {false, true}) {
      NormedRuns runs;
      runs.options.m = rows;
      runs.options.n = Size{64} * (sms / 2 * 2) - 8;
      runs.options.form = Form::kOverlapped;
      runs.options.norm = {.norm = Norm::kRms, .residual = !bias, .norm_bias = bias, .sum = rows != 16};
      runs.options.use_tuned = false;
      runs.rows = {rows, (rows + 1) / 2, rows, rows};
      runs.depth = 256;
      all.push_back(runs);
    }
  return all;
}

/// Returns the SMs on which a PE counts.
int sms_of_pe(int pes) {
  int sms = 0;
  CudaThreads(pes, checked_world()).run([&](World& world) {
    if (world.pe() == 0) sms = world.machine().gpu.sm_count;
  });
  return sms;
}

void check_all(int pes) {
  std::vector<NormedRuns> all = cases();
  for (const NormedRuns& runs : gathers(pes > cuda_devices())) all.push_back(runs);
  try {
    for (const NormedRuns& runs : few_rows(sms_of_pe(pes))) all.push_back(runs);
  } catch (const std::exception& error) {
    return report(fmt::format("normed operators on {} PEs", pes), error.what());
  }
  for (NormedRuns& runs : all) runs.own_buffers = pes > cuda_devices();
  // One stream serves all cases of a world, since each stream of PEs that share a GPU takes one of its 32 queues.
  check_cases(pes, all, describe, [](World& world) {
    return [&world, main = world.make_stream("main")](const NormedRuns& runs) mutable {
      return ops::wrong_of_normed_runs(world, main, runs);
    };
  });
}

}  // namespace

}  // namespace tandem::test

int main(int argc, char** argv) {
  const int only = argc > 1 ? std::atoi(argv[1]) : 0;
  for (const int pes : {1, 2, 3, 4})
    if (only == 0 || pes == only) tandem::test::check_all(pes);
  return tandem::test::finish();
}
