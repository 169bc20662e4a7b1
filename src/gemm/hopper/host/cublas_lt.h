#pragma once
/// Plain GEMMs by cuBLASLt, which is loaded at run time where the machine has it: what the operators' fallback forms
/// compute with, and what benchmarks compare with.

#include <cuda_runtime.h>

#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "tandem/advanced/gemm.h"

namespace tandem::cuda {

/// C (m x n) = A (m x k) * B, as of Gemm, all row-major; sums in f32.
struct PlainGemm {
  Size m = 0, n = 0, k = 0;
  DType type = DType::kBF16;  ///< of A and B
  DType out_type = DType::kBF16;
  BLayout b_layout = BLayout::kNxK;
};

/// For one GPU and one host thread.
class CublasLt {
 public:
  /// Loads `library`, empty: TANDEM_CUBLASLT or libcublasLt.so.13; throws Unsupported where there is none, OutOfMemory
  /// where the GPU has no room for its workspace.
  explicit CublasLt(const std::string& library = {});
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  /// Whether matrices of these types are given to it.
  static bool has_types(const PlainGemm& gemm);
  /// Whether it has an algorithm for the shape. Chooses it, as cuBLASLt's own heuristic ranks them: what `run` would do
  /// at its first call, where it may not be captured.
  bool has(const PlainGemm& gemm);
  /// The same; throws Unsupported where it has none.
  void prepare(const PlainGemm& gemm);
  void run(const PlainGemm& gemm, const void* a, const void* b, void* c, cudaStream_t stream);

 private:
  struct Functions;
  struct Choice;
  struct Free {
    void operator()(void* memory) const { cudaFree(memory); }
  };
  using Key = std::tuple<Size, Size, Size, DType, DType, BLayout>;
  /// Null: there is no algorithm.
  std::unique_ptr<Choice> choose(const PlainGemm& gemm) const;
  /// Of all shapes so far.
  const std::unique_ptr<Choice>& choice(const PlainGemm& gemm);

  std::unique_ptr<Functions> lt_;
  std::unique_ptr<void, Free> workspace_;
  std::map<Key, std::unique_ptr<Choice>> choices_;
};

}  // namespace tandem::cuda
