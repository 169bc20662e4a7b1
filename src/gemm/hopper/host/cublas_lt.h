#pragma once
/// Plain GEMMs by cuBLASLt, which is loaded at run time if the machine has it. The operators' fallback forms use it,
/// and benchmarks compare with it.

#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "base/cuda_names.h"
#include "tandem/advanced/gemm.h"

namespace tandem::cuda {

/// C (m x n) = A (m x k) * B like Gemm, all row-major, with sums in f32.
struct PlainGemm {
  Size m = 0, n = 0, k = 0;
  DType type = DType::kBF16;  ///< type of A and B
  DType out_type = DType::kBF16;
  BLayout b_layout = BLayout::kNxK;
  bool fast_accumulation = false;  ///< of fp8_e4m3, as in Gemm
};

/// A handle for one GPU and one host thread.
class CublasLt {
 public:
  /// Loads `library`, or TANDEM_CUBLASLT or libcublasLt.so.13 if it is empty. Throws Unsupported if there is none, and
  /// OutOfMemory if the GPU has no room for its workspace.
  explicit CublasLt(const std::string& library = {});
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  /// Returns whether it takes matrices of these types.
  static bool has_types(const PlainGemm& gemm);
  /// Returns whether it has an algorithm for the shape, and chooses it by cuBLASLt's own heuristic. `run` would
  /// otherwise choose at its first call, which may be captured.
  bool has(const PlainGemm& gemm);
  /// Does the same, but throws Unsupported if it has none.
  void prepare(const PlainGemm& gemm);
  void run(const PlainGemm& gemm, const void* a, const void* b, void* c, cudaStream_t stream);

 private:
  struct Functions;
  struct Choice;
  struct Free {
    void operator()(void* memory) const { cudaFree(memory); }
  };
  using Key = std::tuple<Size, Size, Size, DType, DType, BLayout, bool>;
  /// Returns null if there is no algorithm.
  std::unique_ptr<Choice> choose(const PlainGemm& gemm) const;
  /// The algorithms of all shapes so far.
  const std::unique_ptr<Choice>& choice(const PlainGemm& gemm);

  std::unique_ptr<Functions> lt_;
  std::unique_ptr<void, Free> workspace_;
  std::map<Key, std::unique_ptr<Choice>> choices_;
};

}  // namespace tandem::cuda
