#pragma once
/// The inner loop of the host's GEMM, in one version for each kind of processor.
///
/// This header is part of translation units that are compiled for processors which the program may not run on. It
/// therefore holds and includes no inline function that others use. The linker could keep the copy with the wrong
/// instructions.

#include <cstdint>

/// Kernels for AVX2 are compiled for each x86-64 processor, unless the build leaves them out.
#if defined(__x86_64__) && !defined(TANDEM_WITHOUT_AVX2)
#define TANDEM_HAS_AVX2_KERNELS 1
#else
#define TANDEM_HAS_AVX2_KERNELS 0
#endif

namespace tandem::host_gemm {

/// A tile of kMr x kNr elements of C stays in registers.
inline constexpr int kMr = 4;
template <class Real>
inline constexpr int kNr = 64 / static_cast<int>(sizeof(Real));

/// Computes c (kMr x kNr, rows `ldc` apart) = or += a * b. `a` holds kMr values for each of the k steps, `b` kNr
/// values. Each element is one chain of multiply-adds from zero, in order.
template <class Real>
using Kernel = void (*)(std::int64_t k, const Real* a, const Real* b, Real* c, std::int64_t ldc, bool add);

struct Kernels {
  Kernel<float> f32;
  Kernel<double> f64;
};

extern const Kernels kGenericKernels;
#if TANDEM_HAS_AVX2_KERNELS
extern const Kernels kAvx2Kernels;
#endif

/// The loop itself. `Ops` has internal linkage, so that this function has it, too. It has the types Real and Vector,
/// the width `kLanes`, the number of vectors of one pass (`kVectors`), and load, store, broadcast, add and
/// multiply_add. The loop is unrolled explicitly: at -O2, g++ 12 would otherwise keep `sum` in memory.
template <class Ops>
inline void micro_kernel(std::int64_t k, const typename Ops::Real* a, const typename Ops::Real* b,
                         typename Ops::Real* c, std::int64_t ldc, bool add) {
  using Vector = typename Ops::Vector;
  constexpr int kPanel = kNr<typename Ops::Real>;
  for (int column = 0; column < kPanel; column += Ops::kVectors * Ops::kLanes) {
    Vector sum[kMr][Ops::kVectors] = {};
    for (std::int64_t i = 0; i < k; ++i) {
      Vector row[Ops::kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < Ops::kVectors; ++v) row[v] = Ops::load(b + i * kPanel + column + v * Ops::kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < kMr; ++r) {
        const Vector value = Ops::broadcast(a[i * kMr + r]);
#pragma GCC unroll 8
        for (int v = 0; v < Ops::kVectors; ++v) sum[r][v] = Ops::multiply_add(value, row[v], sum[r][v]);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kMr; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < Ops::kVectors; ++v) {
        typename Ops::Real* to = c + r * ldc + column + v * Ops::kLanes;
        Ops::store(to, add ? Ops::add(Ops::load(to), sum[r][v]) : sum[r][v]);
      }
    }
  }
}

}  // namespace tandem::host_gemm
