// Checks dispatch_gemm and gemm_combine of experts on the GPUs that it finds, against known results. It prints
// failures, and "N passed, N failed". The exit code is 1 if anything failed.
//
//   expert_layer_gpu_check [PES]     only so many PEs (default: 1, 2 and 4, which may share a GPU)
//   expert_layer_gpu_check --time    microseconds of both forms on one PE, alternating, as a table

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "gpu/counted_check.h"
#include "operators/reference/expert_gemm_trial.h"

namespace tandem::test {

namespace {

using ops::ExpertGemmRuns;

ExpertGemmRuns runs_of(int pes, ExpertForm form, DType type, Activation activation, Size tokens) {
  ExpertGemmRuns runs;
  ExpertGemmOptions& o = runs.options;
  o.experts = {.type = type, .max_tokens = tokens, .hidden = 512, .experts = 4 * pes, .top_k = 2};
  o.intermediate = 384;
  o.activation = activation;
  o.dispatch_gemm = o.gemm_combine = form;
  o.column_chunks = 2;
  runs.rounds = {{"random", tokens, 1}, {"one", tokens, 3}, {"none", tokens, 1}, {"ragged", tokens, 2}};
  runs.input.add = true;
  return runs;
}

/// With "one", the experts of PE 0 have about half of the tokens each: fewer than a tile, a tile, and more. Up to
/// 40 tokens have the tiles for few rows. Kernels of PEs that share a GPU wait for each other, so they have to be
/// resident together. So four PEs have kernels of few blocks, and no GEMM that holds SMs while rows travel.
std::vector<ExpertGemmRuns> cases_for(int pes) {
  std::vector<ExpertGemmRuns> cases;
  for (const ExpertForm form : {ExpertForm::kSequential, ExpertForm::kOverlapped}) {
    if (pes > 2 && form == ExpertForm::kOverlapped) continue;
    for (const Size tokens : {1, 40, 254, 256, 258, 700})
      cases.push_back(runs_of(pes, form, DType::kBF16, Activation::kNone, tokens));
    for (const Size tokens : {40, 300}) {
      cases.push_back(runs_of(pes, form, DType::kF16, Activation::kRelu, tokens));
      cases.push_back(runs_of(pes, form, DType::kBF16, Activation::kSwiGlu, tokens));
      for (const ExpertWire wire : {ExpertWire::kQuantised, ExpertWire::kGiven}) {
        ExpertGemmRuns runs = runs_of(pes, form, DType::kBF16, Activation::kSwiGlu, tokens);
        runs.options.experts.wire = wire;
        runs.options.dispatch_gemm = ExpertForm::kSequential;
        cases.push_back(runs);
      }
    }
  }
  for (const Size tokens : {1, 40, 257}) {
    cases.push_back(runs_of(pes, ExpertForm::kSequential, DType::kBF16, Activation::kSwiGlu, tokens));
    cases.back().options.experts.tp_size = pes;
  }
  for (ExpertGemmRuns& runs : cases)
    if (pes > 2) runs.options.experts.blocks = 32;
  return cases;
}

std::string describe(const ExpertGemmRuns& runs, int pes) {
  const ExpertGemmOptions& o = runs.options;
  return fmt::format("{} {} wire {} tokens {} activation {} tp {} on {} PEs", name(o.gemm_combine),
                     name(o.experts.type), name(o.experts.wire), o.experts.max_tokens, static_cast<int>(o.activation),
                     o.experts.tp_size, pes);
}

CudaOptions world_with(Size gigabytes) {
  CudaOptions options = checked_world();
  options.heap_bytes = gigabytes << 30;  // a trial keeps its buffers until the world ends
  return options;
}

void check_all(int pes) {
  const std::vector<ExpertGemmRuns> cases = cases_for(pes);
  struct Outcome {
    int ended = 0;  // PEs
    std::string problem;
  };
  std::vector<Outcome> outcomes(cases.size());
  std::string error;
  std::mutex mutex;
  try {
    CudaThreads threads(pes, world_with(8));
    threads.run([&](World& world) {
      Stream stream = world.make_stream("main");
      for (std::size_t i = 0; i < cases.size(); ++i) {
        const std::string wrong = ops::wrong_of_expert_gemms(world, stream, cases[i]);
        const std::lock_guard lock(mutex);
        Outcome& outcome = outcomes[i];
        if (outcome.problem.empty()) outcome.problem = wrong;
        if (++outcome.ended == pes) report(describe(cases[i], pes), outcome.problem);
      }
    });
  } catch (const std::exception& exception) {
    error = exception.what();
  }
  for (std::size_t i = 0; i < cases.size(); ++i)
    if (outcomes[i].ended < pes) report(describe(cases[i], pes), error);
}

struct Timed {
  const char* model;
  Size hidden, intermediate;
  int experts, top_k;
};

/// Returns the median of the microseconds of a call, over rounds of several calls.
template <class Enqueue>
double median_us(Stream& stream, const Enqueue& enqueue) {
  constexpr int kRounds = 11, kCalls = 5;
  std::vector<double> all;
  for (int round = 0; round < kRounds; ++round) {
    stream.synchronize();
    const auto begin = std::chrono::steady_clock::now();
    for (int call = 0; call < kCalls; ++call) enqueue();
    stream.synchronize();
    all.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / kCalls);
  }
  std::nth_element(all.begin(), all.begin() + kRounds / 2, all.end());
  return all[kRounds / 2];
}

void time_all() {
  // The experts of one of eight PEs, with as many choices as it gets of 4096 tokens.
  const Timed models[] = {{"deepseek-v3", 7168, 2048, 32, 8}, {"qwen3-30b", 2048, 768, 16, 8}};
  std::printf("%-12s %-14s %14s %14s\n", "model", "operator", "sequential us", "overlapped us");
  for (const Timed& model : models) {
    CudaThreads threads(1, world_with(40));
    threads.run([&](World& world) {
      Stream stream = world.make_stream("main");
      double us[2][2];
      for (const ExpertForm form : {ExpertForm::kSequential, ExpertForm::kOverlapped}) {
        ExpertGemmOptions o;
        o.experts = {.max_tokens = 4096, .hidden = model.hidden, .experts = model.experts, .top_k = model.top_k};
        o.intermediate = model.intermediate;
        o.dispatch_gemm = o.gemm_combine = form;
        const auto plan = make_expert_gemms(world, o);
        const auto trial = ops::make_expert_gemm_trial(world, *plan, {.routing = "random", .tokens = 4096});
        trial->route(stream);
        const int place = form == ExpertForm::kOverlapped ? 1 : 0;
        us[0][place] = median_us(stream, [&] { trial->dispatch_gemm(stream); });
        us[1][place] = median_us(stream, [&] { trial->gemm_combine(stream); });
      }
      std::printf("%-12s %-14s %14.1f %14.1f\n", model.model, "dispatch_gemm", us[0][0], us[0][1]);
      std::printf("%-12s %-14s %14.1f %14.1f\n", model.model, "gemm_combine", us[1][0], us[1][1]);
    });
  }
}

}  // namespace

}  // namespace tandem::test

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--time") == 0) {
    tandem::test::time_all();
    return 0;
  }
  const int only = argc > 1 ? std::atoi(argv[1]) : 0;
  for (const int pes : {1, 2, 4})
    if (only == 0 || pes == only) tandem::test::check_all(pes);
  return tandem::test::finish();
}
