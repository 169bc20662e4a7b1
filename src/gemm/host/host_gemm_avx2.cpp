/// Compiled with -mavx2 -mfma, and used if the processor has both. It includes only constants of headers that other
/// files share.

#include <immintrin.h>

#include "gemm/host/host_gemm_kernel.h"

namespace tandem::host_gemm {
namespace {

struct F32 {
  using Real = float;
  using Vector = __m256;
  static constexpr int kLanes = 8, kVectors = 2;
  static Vector load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, Vector v) { _mm256_storeu_ps(p, v); }
  static Vector broadcast(float x) { return _mm256_set1_ps(x); }
  static Vector add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
};

struct F64 {
  using Real = double;
  using Vector = __m256d;
  static constexpr int kLanes = 4, kVectors = 2;
  static Vector load(const double* p) { return _mm256_loadu_pd(p); }
  static void store(double* p, Vector v) { _mm256_storeu_pd(p, v); }
  static Vector broadcast(double x) { return _mm256_set1_pd(x); }
  static Vector add(Vector a, Vector b) { return _mm256_add_pd(a, b); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_pd(a, b, c); }
};

}  // namespace

const Kernels kAvx2Kernels = {micro_kernel<F32>, micro_kernel<F64>};

}  // namespace tandem::host_gemm
