// A tool that was built without the CUDA backend.
#include "cli/gpu.h"
#include "tandem/error.h"

namespace tandem::cli {

namespace {

[[noreturn]] void refuse() {
  throw Unsupported("--backend: 'cuda' given, but this build has no CUDA backend: configure with -DTANDEM_CUDA=ON");
}

}  // namespace

std::string cuda_build() { return "without CUDA"; }

int run_on_gpus(const Arguments&) { refuse(); }
int bench_on_gpus(const Arguments&) { refuse(); }
std::vector<Sweep> tune_on_gpus(const Arguments&) { refuse(); }

}  // namespace tandem::cli
