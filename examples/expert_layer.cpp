// One layer with experts on two simulated GPUs: the routing of tokens, gates and ups with SwiGLU, and the second
// product with the weighted sums. It prints the predicted time of the layer in both forms, and runs on any computer.
//
//   expert_layer [PICTURE]     also writes the timelines, as a page (.html) or as a picture for documents (.svg)

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "tandem/layer/expert_gemms.h"
#include "tandem/simulation.h"
#include "tandem/timeline.h"

using namespace tandem;

constexpr Size kTokens = 4096, kHidden = 2048, kIntermediate = 768;  // Qwen3-30B, with 4,096 tokens of each PE
constexpr int kPes = 2, kExperts = 128, kTopK = 8;

// Different experts for each token, with the same probability.
std::vector<std::int32_t> choices(int pe) {
  std::vector<std::int32_t> ids, experts(kExperts);
  for (int i = 0; i < kExperts; ++i) experts[static_cast<std::size_t>(i)] = i;
  std::mt19937 random(static_cast<unsigned>(pe) + 1);
  for (Size token = 0; token < kTokens; ++token) {
    for (std::size_t k = 0; k < kTopK; ++k) {
      std::swap(experts[k], experts[k + random() % (kExperts - k)]);
      ids.push_back(experts[k]);
    }
  }
  return ids;
}

void layer(World& world, ExpertForm form) {
  const auto plan = make_expert_gemms(
      world, {.experts = {.max_tokens = kTokens, .hidden = kHidden, .experts = kExperts, .top_k = kTopK},
              .intermediate = kIntermediate,
              .activation = Activation::kSwiGlu,
              .dispatch_gemm = form,
              .gemm_combine = form});
  const Size rows = plan->experts().rows(), here = kExperts / kPes;
  SymmetricHeap& heap = world.heap();
  const auto matrix = [&](Size count, const char* name) { return heap.allocate_local<bf16>(count, name); };
  auto* const ids = heap.allocate_local<Index>(kTokens * kTopK, "ids");
  auto* const routing = heap.allocate_local<Index>(plan->experts().routing_bytes() / 4, "routing");
  const std::vector<std::int32_t> chosen = choices(world.pe());
  world.copy_in(ids, chosen.data(), kTokens * kTopK * Size{sizeof(Index)});
  bf16* const h = matrix(rows * kIntermediate, "between");

  Stream stream = world.make_stream("main");
  plan->route(stream, {.tokens = kTokens, .ids = ids, .routing = routing});
  plan->dispatch_gemm(stream, {.tokens = kTokens,
                               .x = matrix(kTokens * kHidden, "x"),
                               .routing = routing,
                               .b = matrix(here * 2 * kIntermediate * kHidden, "gates and ups"),
                               .rows = matrix(rows * kHidden, "rows"),
                               .out = h});
  plan->gemm_combine(stream, {.tokens = kTokens,
                              .a = h,
                              .routing = routing,
                              .b = matrix(here * kHidden * kIntermediate, "down"),
                              .y = matrix(rows * kHidden, "y"),
                              .out = matrix(kTokens * kHidden, "out")});
  stream.synchronize();
}

int main(int argc, char** argv) {
  trace::Report report{.title = "Layer with experts, Qwen3-30B, 4,096 tokens of a PE"};
  for (const ExpertForm form : {ExpertForm::kSequential, ExpertForm::kOverlapped}) {
    Simulation simulation(load_machine("h200x2-calibrated"), kPes, {.phantom = true, .record = argc > 1});
    simulation.run([form](World& world) { layer(world, form); });
    std::printf("%s: %.1f us predicted\n", name(form), simulation.time_us());
    if (argc < 2) continue;
    report.timelines.push_back(simulation.timeline());
    report.timelines.back().title = name(form);
    report.summary.emplace_back(name(form), std::to_string(std::lround(simulation.time_us())) + " us predicted");
  }
  if (argc < 2) return 0;
  const std::string path = argv[1];
  const bool is_picture = path.size() > 4 && path.compare(path.size() - 4, 4, ".svg") == 0;
  if (is_picture) {
    trace::write_svg(report, path);
  } else {
    trace::write_report(report, path);
  }
  return 0;
}
