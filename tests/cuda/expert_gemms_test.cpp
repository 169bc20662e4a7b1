// Plans of the products of experts on simulated GPUs without kernels for them.
#include "tandem/layer/expert_gemms.h"

#include <gmock/gmock.h>

#include <string>

#include "cuda/simulated/gpus.h"
#include "tandem/cuda.h"
#include "tandem/error.h"

namespace tandem::test {
namespace {

class ExpertGemmsOnSimulatedGpus : public ::testing::Test {
 public:
  ~ExpertGemmsOnSimulatedGpus() override { have_fused_gemms(true); }
};

TEST_F(ExpertGemmsOnSimulatedGpus, AreRefusedWithThePlanIfNoKernelSuits) {
  have_fused_gemms(false);
  CudaOptions cuda;
  cuda.heap_bytes = Size{64} << 20;
  CudaThreads(2, cuda).run([](World& world) {
    std::string text;
    try {
      make_expert_gemms(world,
                        {.experts = {.max_tokens = 8, .hidden = 64, .experts = 4, .top_k = 2}, .intermediate = 64});
    } catch (const Unsupported& error) {
      text = error.what();
    }
    EXPECT_THAT(text, ::testing::HasSubstr("gemm: no kernels of fused GEMMs on these simulated GPUs"));
  });
}

}  // namespace
}  // namespace tandem::test
