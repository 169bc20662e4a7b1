#include "cuda/device/plain_gemms.h"

#include "cuda/device/gemm.h"
#include "cuda/driver/error.h"
#include "tandem/error.h"

namespace tandem::cuda {

namespace {

PlainGemm plain(const Gemm& gemm) { return {gemm.m, gemm.n, gemm.k, gemm.type, gemm.out_type, gemm.b_layout}; }

/// Permits loads and allocations while a stream of this thread is captured.
class DuringCapture {
 public:
  DuringCapture() { check(cudaThreadExchangeStreamCaptureMode(&mode_), "cudaThreadExchangeStreamCaptureMode"); }
  ~DuringCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  DuringCapture(const DuringCapture&) = delete;
  DuringCapture& operator=(const DuringCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace

bool PlainGemms::load(const Gemm& gemm) {
  if (cublas_ != nullptr) return true;
  // After a lack of room the stream keeps to the library's kernels. All runs must use the same kernels, and the test is
  // not repeated.
  if (missing_ || (without_room_ && has_own_kernel(gemm))) return false;
  try {
    cublas_ = std::make_unique<CublasLt>();
  } catch (const Unsupported&) {
    missing_ = true;
  } catch (const OutOfMemory&) {
    without_room_ = true;
    if (!has_own_kernel(gemm)) throw;
  }
  return cublas_ != nullptr;
}

bool PlainGemms::takes(const Gemm& gemm) {
  if (gemm.order != TileOrder::kRowMajor || gemm.own_a != nullptr || gemm.sms != 0 || missing_) return false;
  if (gemm.destination.is_partial() || gemm.groups.count > 0) return false;
  if (gemm.m == 0 || gemm.n == 0 || gemm.k == 0) return false;
  const GemmScales& scales = gemm.scales;
  if (gemm.bias != nullptr || gemm.activation != Activation::kNone) return false;
  if (scales.a != nullptr || scales.b != nullptr || scales.c != nullptr || scales.out != nullptr) return false;
  // Operators keep their own kernels of fp8, whose sums are more precise.
  if (gemm.type == DType::kE4M3 || gemm.out_type == DType::kE4M3) return false;
  if (!CublasLt::has_types(plain(gemm))) return false;
  const DuringCapture allowed;
  return load(gemm) && cublas_->has(plain(gemm));
}

void PlainGemms::run(const Gemm& gemm, cudaStream_t stream) {
  cublas_->run(plain(gemm), gemm.a, gemm.b, gemm.destination.c(), stream);
}

}  // namespace tandem::cuda
