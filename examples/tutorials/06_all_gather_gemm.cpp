// Tutorial 06: AllGather+GEMM, sequential and overlapped. docs/tutorials/06_all_gather_gemm.md explains it.
//
//   06_all_gather_gemm [REPORT.html]     also writes both timelines as a page

#include <cmath>
#include <cstdio>
#include <exception>
#include <vector>

#include "tandem/operators.h"
#include "tandem/simulation.h"
#include "tandem/timeline.h"

using namespace tandem;

// listing: layer
/// One run of A * B^T. Each PE holds m / pes rows of A and n / pes rows of B, and gets n / pes columns of C.
void run_layer(World& world, const OperatorOptions& options, const std::vector<float>& a, const std::vector<float>& b,
               std::vector<float>& c) {
  const Size rows = options.m / world.num_pes(), columns = options.n / world.num_pes();
  SymmetricHeap& heap = world.heap();
  auto* const a_part = heap.allocate_local<float>(rows * options.k, "a");
  auto* const b_part = heap.allocate_local<float>(columns * options.k, "b");
  auto* const c_part = heap.allocate_local<float>(options.m * columns, "c");
  const Size row_bytes = options.k * Size{sizeof(float)};
  if (!world.phantom()) {
    world.copy_in(a_part, a.data() + world.pe() * rows * options.k, rows * row_bytes);
    world.copy_in(b_part, b.data() + world.pe() * columns * options.k, columns * row_bytes);
  }

  const auto plan = make_operator(world, Operator::kAllGatherGemm, options);
  Stream stream = world.make_stream("main");
  plan->run(stream, a_part, b_part, c_part);
  stream.synchronize();
  if (!world.phantom()) world.copy_out(c.data(), c_part, options.m * columns * Size{sizeof(float)});
}
// end of listing

// listing: verify
/// Runs a small layer with real data on four PEs, and returns the elements of C that are wrong.
int count_wrong() {
  constexpr Size kM = 64, kN = 64, kK = 32, kPes = 4, kColumns = kN / kPes;
  const OperatorOptions options{.m = kM, .n = kN, .k = kK, .type = DType::kF32, .form = Form::kOverlapped};
  std::vector<float> a(kM * kK), b(kN * kK);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 7);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 5);
  int wrong = 0;
  Simulation simulation(load_machine("h200x4"), kPes);
  simulation.run([&](World& world) {
    std::vector<float> c(kM * kColumns);
    run_layer(world, options, a, b, c);
    for (std::size_t row = 0; row < kM; ++row)
      for (std::size_t column = 0; column < kColumns; ++column) {
        const std::size_t of_b = static_cast<std::size_t>(world.pe()) * kColumns + column;
        float sum = 0;  // small integers: every order of additions gives these bits
        for (std::size_t i = 0; i < kK; ++i) sum += a[row * kK + i] * b[of_b * kK + i];
        wrong += c[row * kColumns + column] != sum ? 1 : 0;
      }
  });
  return wrong;
}
// end of listing

// listing: compare
/// Predicts one run of Llama-3 8B's feed-forward layer (512 rows) without data.
trace::Timeline predict(Form form) {
  Simulation simulation(load_machine("h200x4"), 4, {.phantom = true, .record = true});
  simulation.run([&](World& world) {
    std::vector<float> none;
    run_layer(world, {.m = 512, .n = 28672, .k = 4096, .form = form}, none, none, none);
  });
  trace::Timeline timeline = simulation.timeline();
  timeline.title = name(form);
  return timeline;
}
// end of listing

int main(int argc, char** argv) try {
  const int wrong = count_wrong();
  std::printf("small layer with data: %d elements wrong\n", wrong);
  trace::Report report{.title = "AllGather+GEMM of a feed-forward layer"};
  for (const Form form : {Form::kSequential, Form::kOverlapped}) report.timelines.push_back(predict(form));
  for (const trace::Timeline& timeline : report.timelines)
    std::printf("%-10s %lld us predicted\n", timeline.title.c_str(),
                static_cast<long long>(std::llround(static_cast<double>(timeline.duration()) / trace::kMicrosecond)));
  if (argc > 1) trace::write_report(report, argv[1]);
  return wrong == 0 ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
