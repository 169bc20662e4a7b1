// A call or two of every algorithm, small enough for compute-sanitizer: see scripts/gpu_sanitize.
//
//   sanitizer_gpu_check [TIMEOUT_S]      how long a wait may last (120): under a sanitizer kernels are slow

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "gpu/graph.h"
#include "support/collective_rounds.h"
#include "tandem/cuda.h"

namespace tandem::test {

namespace {

int check(double timeout_s) {
  const int pes = cuda_devices();
  if (pes == 0) {
    std::printf("no GPU\n");
    return 2;
  }
  CudaOptions options;
  options.heap_bytes = Size{64} << 20;
  options.timeout_s = options.arrival_timeout_s = timeout_s;
  CudaThreads threads(pes, options);
  std::atomic<Size> wrong{0};
  int cases = 0;
  for (const AlgorithmInfo& info : collective_algorithms()) {
    if (info.name == "multimem") continue;  // needs multicast
    RoundsCase c{info, DType::kBF16, ReduceOp::kSum, 4099};
    c.blocks = 2;
    const Size before = wrong;
    threads.run([&](World& world) { wrong += CollectiveRounds<bf16>(world, c, capture_graph).run().wrong; });
    if (wrong != before)
      std::printf("FAILED %s: %lld wrong\n", describe(c, pes).c_str(), static_cast<long long>(wrong - before));
    ++cases;
  }
  std::printf("%d cases on %d GPUs, %lld elements wrong\n", cases, pes, static_cast<long long>(wrong));
  return wrong == 0 ? 0 : 1;
}

}  // namespace

}  // namespace tandem::test

int main(int argc, char** argv) { return tandem::test::check(argc > 1 ? std::atof(argv[1]) : 120); }
