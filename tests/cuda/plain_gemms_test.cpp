// Plain GEMMs by cuBLASLt, on one that counts: what it does not take is the library's own, at no cost and no leak.
#include "cuda/device/plain_gemms.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "cuda/device/gemm.h"
#include "cuda/simulated/gpus.h"
#include "tandem/error.h"

namespace tandem::test {
namespace {

class PlainGemmsTest : public ::testing::Test {
 public:
  PlainGemmsTest() {
    cublas() = {};
    have_gemm_kernels(true);
    setenv("TANDEM_CUBLASLT", "", 1);  // this program
  }
  ~PlainGemmsTest() override {
    have_gemm_kernels(false);
    EXPECT_EQ(allocated(), 0);
  }

 protected:
  static Gemm gemm(DType type = DType::kBF16, Size m = 64) {
    Gemm given;
    given.m = m;
    given.n = given.k = 64;
    given.type = given.out_type = type;
    return given;
  }
  static void no_room() { fail_next("cudaMallocAsync", CUDA_ERROR_OUT_OF_MEMORY); }
  int allocated() const { return allocations_left() - before_; }
  static int left() { return cublas().operations + cublas().layouts + cublas().preferences + cublas().handles; }

 private:
  const int before_ = allocations_left();
};

TEST_F(PlainGemmsTest, AreCublasLts) {
  {
    cuda::PlainGemms gemms;
    for (int run = 0; run < 3; ++run) {
      ASSERT_TRUE(gemms.takes(gemm()));
      gemms.run(gemm(), nullptr);
    }
    EXPECT_EQ(cublas().multiplied, 3);
    EXPECT_EQ(cublas().asked, 1) << "once for a shape";
    EXPECT_TRUE(gemms.takes(gemm(DType::kF16)) && gemms.takes(gemm(DType::kF32)));
    EXPECT_EQ(cublas().preferences, 0);
    EXPECT_EQ(allocated(), 1) << "the workspace";
  }
  EXPECT_EQ(left(), 0);
  EXPECT_EQ(allocated(), 0);
}

TEST_F(PlainGemmsTest, OfTypesThatItHasNotAskItNothing) {
  cuda::PlainGemms gemms;
  for (int run = 0; run < 3; ++run) EXPECT_FALSE(gemms.takes(gemm(DType::kE4M3)));
  Gemm to_fp8 = gemm();
  to_fp8.out_type = DType::kE4M3;
  EXPECT_FALSE(gemms.takes(to_fp8));
  EXPECT_EQ(left(), 0);
  EXPECT_EQ(allocated(), 0);
}

TEST_F(PlainGemmsTest, WithoutAnAlgorithmAreNotTaken) {
  for (const bool says_so : {true, false}) {
    cublas() = {};
    cublas().algorithms = 0;
    if (says_so) cublas().heuristic = CUBLAS_STATUS_NOT_SUPPORTED;
    cuda::PlainGemms gemms;
    for (int run = 0; run < 3; ++run) EXPECT_FALSE(gemms.takes(gemm()));
    EXPECT_EQ(cublas().asked, 1) << "once for a shape";
    EXPECT_EQ(left(), 1) << "the handle";
    cublas().algorithms = 1;
    cublas().heuristic = CUBLAS_STATUS_SUCCESS;
    EXPECT_TRUE(gemms.takes(gemm(DType::kBF16, 128))) << "of another shape";
  }
}

TEST_F(PlainGemmsTest, LeaveNothingWhereItFails) {
  cuda::PlainGemms gemms;
  ASSERT_TRUE(gemms.takes(gemm()));
  const int before = left();
  cublas().heuristic = CUBLAS_STATUS_EXECUTION_FAILED;
  EXPECT_THROW(gemms.takes(gemm(DType::kBF16, 128)), RuntimeFailure);
  cublas().heuristic = CUBLAS_STATUS_SUCCESS;
  cublas().layout = CUBLAS_STATUS_EXECUTION_FAILED;
  EXPECT_THROW(gemms.takes(gemm(DType::kBF16, 128)), RuntimeFailure);
  EXPECT_EQ(left(), before);
}

TEST_F(PlainGemmsTest, WithoutRoomForItsWorkspaceAreTheLibrarysOwn) {
  no_room();
  cuda::PlainGemms gemms;
  for (int run = 0; run < 3; ++run) EXPECT_FALSE(gemms.takes(gemm())) << "asked once for a stream";
  EXPECT_EQ(left(), 0);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "no other call finds that error";
}

TEST_F(PlainGemmsTest, WithoutRoomAndKernelAreOutOfMemory) {
  have_gemm_kernels(false);
  cuda::PlainGemms gemms;
  for (int run = 0; run < 2; ++run) {
    no_room();
    std::string text;
    try {
      gemms.takes(gemm());
    } catch (const OutOfMemory& error) {
      text = error.what();
    }
    EXPECT_EQ(text, "cuBLASLt: its workspace: 33554432 bytes asked, out of memory");
  }
  EXPECT_EQ(left(), 0);
  EXPECT_TRUE(gemms.takes(gemm())) << "there is room now";
}

TEST_F(PlainGemmsTest, WithoutTheLibraryAreTheLibrarysOwn) {
  setenv("TANDEM_CUBLASLT", "libnone.so", 1);
  cuda::PlainGemms gemms;
  EXPECT_FALSE(gemms.takes(gemm()));
  EXPECT_EQ(allocated(), 0);
}

}  // namespace
}  // namespace tandem::test
