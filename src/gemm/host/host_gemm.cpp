#include "gemm/host/host_gemm.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gemm/host/host_gemm_kernel.h"
#include "gemm/host/host_gemm_pack.h"
#include "tandem/error.h"

namespace tandem {
namespace host_gemm {
namespace {

const Kernels& kernels() {
#if TANDEM_HAS_AVX2_KERNELS
  static const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx2) return kAvx2Kernels;
#endif
  return kGenericKernels;
}

template <class Real>
Kernel<Real> kernel() {
  if constexpr (sizeof(Real) == 4) return kernels().f32;
  if constexpr (sizeof(Real) == 8) return kernels().f64;
}

// Parts of A and B that are packed at a time. Together they fit a second-level cache of 1 MB.
constexpr Size kRows = 128;
constexpr Size kColumns = 256;

template <class Real>
struct Panels {
  alignas(64) Real a[kRows * kDepth];
  alignas(64) Real b[kColumns * kDepth];
};

/// Computes one block of C from packed panels. Tiles beyond the edge use a buffer.
template <class Real>
void multiply_block(const Panels<Real>& panels, Size rows, Size columns, Size depth, Real* c, Size ldc, bool add) {
  constexpr Size nr = kNr<Real>;
  const Kernel<Real> run = kernel<Real>();
  for (Size column = 0; column < columns; column += nr) {
    for (Size row = 0; row < rows; row += kMr) {
      const Real* a = panels.a + row * kDepth;
      const Real* b = panels.b + column * kDepth;
      Real* to = c + row * ldc + column;
      if (row + kMr <= rows && column + nr <= columns) {
        run(depth, a, b, to, ldc, add);
        continue;
      }
      alignas(64) Real edge[kMr * nr];
      run(depth, a, b, edge, nr, false);
      for (Size r = 0; r < min(kMr, rows - row); ++r) {
        for (Size i = 0; i < min(nr, columns - column); ++i) {
          Real& element = to[r * ldc + i];
          element = add ? element + edge[r * nr + i] : edge[r * nr + i];
        }
      }
    }
  }
}

template <class T, class Real>
void multiply(const T* a, Size lda, const T* b, Size ldb, Real* c, Size ldc, Size m, Size n, Size k, BLayout layout) {
  if (m == 0 || n == 0) return;
  for (Size row = 0; k == 0 && row < m; ++row) std::fill_n(c + row * ldc, n, Real{0});
  const std::unique_ptr<Panels<Real>> panels(new Panels<Real>);  // not initialised
  for (Size column = 0; column < n; column += kColumns) {
    const Size columns = min(kColumns, n - column);
    for (Size at = 0; at < k; at += kDepth) {
      const Size depth = min(kDepth, k - at);
      if (layout == BLayout::kNxK) {
        pack_rows<kNr<Real>>(b + column * ldb + at, ldb, columns, depth, panels->b);
      } else {
        pack_columns<kNr<Real>>(b + at * ldb + column, ldb, columns, depth, panels->b);
      }
      for (Size row = 0; row < m; row += kRows) {
        const Size rows = min(kRows, m - row);
        pack_rows<kMr>(a + row * lda + at, lda, rows, depth, panels->a);
        multiply_block(*panels, rows, columns, depth, c + row * ldc + column, ldc, at > 0);
      }
    }
  }
}

void require(bool holds, const char* what, Size given, const std::string& allowed) {
  if (!holds) throw InvalidArgument(std::string(what) + ": " + std::to_string(given) + " given, " + allowed);
}

void check_shape(Size lda, Size ldb, Size ldc, Size m, Size n, Size k, BLayout layout) {
  require(m >= 0, "m", m, "at least 0 needed");
  require(n >= 0, "n", n, "at least 0 needed");
  require(k >= 0, "k", k, "at least 0 needed");
  const Size b_row = layout == BLayout::kNxK ? k : n;
  require(lda >= k, "lda", lda, "at least a row of A, " + std::to_string(k) + ", needed");
  require(ldb >= b_row, "ldb", ldb, "at least a row of B, " + std::to_string(b_row) + ", needed");
  require(ldc >= n, "ldc", ldc, "at least a row of C, " + std::to_string(n) + ", needed");
}

template <class Real>
void multiply_any(const void* a, Size lda, const void* b, Size ldb, Real* c, Size ldc, Size m, Size n, Size k,
                  DType type, BLayout layout) {
  check_shape(lda, ldb, ldc, m, n, k, layout);
  dispatch(type, [&]<class T>() {
    if constexpr (is_float<T>) {
      multiply(static_cast<const T*>(a), lda, static_cast<const T*>(b), ldb, c, ldc, m, n, k, layout);
    } else {
      throw InvalidArgument(std::string("dtype: ") + name(type) + " given, GEMM takes floating-point types");
    }
  });
}

}  // namespace
}  // namespace host_gemm

void host_gemm_tile(const void* a, Size lda, const void* b, Size ldb, float* c, Size ldc, Size m, Size n, Size k,
                    DType type, BLayout layout) {
  if (type != DType::kF64) return host_gemm::multiply_any(a, lda, b, ldb, c, ldc, m, n, k, type, layout);
  host_gemm::check_shape(lda, ldb, ldc, m, n, k, layout);
  std::vector<double> exact(static_cast<std::size_t>(m * n));
  host_gemm_tile_f64(a, lda, b, ldb, exact.data(), n, m, n, k, type, layout);
  for (Size row = 0; row < m; ++row) convert(exact.data() + row * n, c + row * ldc, n);
}

void host_gemm_tile_f64(const void* a, Size lda, const void* b, Size ldb, double* c, Size ldc, Size m, Size n, Size k,
                        DType type, BLayout layout) {
  host_gemm::multiply_any(a, lda, b, ldb, c, ldc, m, n, k, type, layout);
}

}  // namespace tandem
