// Checks operators whose sums a norm follows on the GPUs that it finds, against exact results. It prints failures, and
// "N passed, N failed". The exit code is 1 if anything failed.
//
//   normed_operators_gpu_check [PES]    only so many PEs (default: 1, 2, 3 and 4; PEs may share a GPU)

#include <cstdlib>
#include <mutex>

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
        o.type = all.size() % 3 == 2 ? DType::kF16 : all.size() % 3 == 1 ? DType::kE4M3 : DType::kBF16;
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

void check_all(int pes) {
  std::mutex mutex;
  std::vector<std::string> problems;
  std::size_t count = 0;
  try {
    CudaThreads threads(pes, checked_world());
    threads.run([&](World& world) {
      std::vector<NormedRuns> all = cases();
      for (const NormedRuns& runs : few_rows(world.machine().gpu.sm_count)) all.push_back(runs);
      for (std::size_t i = 0; i < all.size(); ++i) {
        const std::string wrong = ops::wrong_of_normed_runs(world, all[i]);
        const std::lock_guard lock(mutex);
        count = all.size();
        problems.resize(all.size());
        if (!wrong.empty()) problems[i] = wrong;
      }
    });
  } catch (const std::exception& exception) {
    return report(fmt::format("normed operators on {} PEs", pes), exception.what());
  }
  for (std::size_t i = 0; i < count; ++i) report(fmt::format("case {} on {} PEs", i, pes), problems[i]);
}

}  // namespace

}  // namespace tandem::test

int main(int argc, char** argv) {
  const int only = argc > 1 ? std::atoi(argv[1]) : 0;
  for (const int pes : {1, 2, 3, 4})
    if (only == 0 || pes == only) tandem::test::check_all(pes);
  return tandem::test::finish();
}
