/// For every processor: vectors of 16 bytes, which the baselines of x86-64 and AArch64 have.

#include <cstring>

#include "gemm/host/host_gemm_kernel.h"

namespace tandem::host_gemm {
namespace {

template <class T>
struct Ops {
  using Real = T;
  using Vector [[gnu::vector_size(16)]] = T;
  static constexpr int kLanes = 16 / static_cast<int>(sizeof(T)), kVectors = 2;
  static Vector load(const T* p) {
    Vector v;
    std::memcpy(&v, p, sizeof(v));
    return v;
  }
  static void store(T* p, Vector v) { std::memcpy(p, &v, sizeof(v)); }
  static Vector broadcast(T x) { return x - Vector{}; }
  static Vector add(Vector a, Vector b) { return a + b; }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return a * b + c; }
};

}  // namespace

const Kernels kGenericKernels = {micro_kernel<Ops<float>>, micro_kernel<Ops<double>>};

}  // namespace tandem::host_gemm
