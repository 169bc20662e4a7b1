// Operators on simulated GPUs, with GEMMs that wait and signal tile by tile and without.
#include <gmock/gmock.h>

#include <string>

#include "cuda/simulated/gpus.h"
#include "tandem/cuda.h"
#include "tandem/error.h"
#include "tandem/operators.h"

namespace tandem::test {
namespace {

using ::testing::HasSubstr;

class OperatorsOnSimulatedGpus : public ::testing::Test {
 public:
  ~OperatorsOnSimulatedGpus() override { have_fused_gemms(true); }

 protected:
  /// Returns the strategy of AllGather + GEMM on two PEs.
  static std::string strategy(OperatorOptions options) {
    options.m = options.n = options.k = 4096;
    CudaOptions cuda;
    cuda.heap_bytes = Size{128} << 20;
    std::string found;
    CudaThreads(2, cuda).run([&](World& world) {
      const auto plan = make_operator(world, Operator::kAllGatherGemm, options);
      if (world.pe() == 0) found = plan->strategy(4096);
    });
    return found;
  }
};

TEST_F(OperatorsOnSimulatedGpus, TakeTheSequentialFormWhereGemmsAreNotFusedAndSaySoOnce) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(strategy({}), "overlapped");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  have_fused_gemms(false);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(strategy({}), "sequential");
  EXPECT_EQ(strategy({}), "sequential");
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("tandem warning all_gather_gemm: the sequential form runs on "));
  EXPECT_EQ(said.find("tandem warning"), said.rfind("tandem warning")) << said;
}

TEST_F(OperatorsOnSimulatedGpus, RefuseFormsAndTilesThatTheCallerChose) {
  have_fused_gemms(false);
  EXPECT_THROW(strategy({.form = Form::kOverlapped}), Unsupported);
  EXPECT_THROW(strategy({.tile_n = 128}), Unsupported);
  EXPECT_EQ(strategy({.form = Form::kSequential}), "sequential");
}

}  // namespace
}  // namespace tandem::test
