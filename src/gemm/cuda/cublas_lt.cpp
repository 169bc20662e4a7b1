#include "gemm/cuda/cublas_lt.h"

#include <cublasLt.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

#include "cuda/error.h"
#include "tandem/error.h"

namespace tandem::cuda {

namespace {

constexpr std::size_t kWorkspace = std::size_t{32} << 20;

void require(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw RuntimeFailure(fmt::format("cuBLASLt: {} gave status {}", what, static_cast<int>(status)));
}

cudaDataType_t data_type(DType type) {
  switch (type) {
    case DType::kBF16:
      return CUDA_R_16BF;
    case DType::kF16:
      return CUDA_R_16F;
    case DType::kF32:
      return CUDA_R_32F;
    default:
      throw Unsupported(fmt::format("cuBLASLt: {} given, used for bf16, f16, f32", name(type)));
  }
}

std::string library_name(const std::string& given) {
  if (!given.empty()) return given;
  const char* const chosen = std::getenv("TANDEM_CUBLASLT");
  return chosen != nullptr ? chosen : "libcublasLt.so.13";
}

/// cudaMalloc maps memory to all peers, so that it waits for their work; and that may wait for this PE. Memory of a
/// pool is this GPU's alone.
void* allocate_beside_peers(std::size_t bytes) {
  void* memory = nullptr;
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  const cudaError_t allocated = cudaMallocAsync(&memory, bytes, stream);
  const cudaError_t waited = cudaStreamSynchronize(stream);
  cudaStreamDestroy(stream);
  check(allocated, "cudaMallocAsync");
  check(waited, "cudaMallocAsync");
  return memory;
}

}  // namespace

struct CublasLt::Functions {
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtDestroy) destroy;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtMatmulDescCreate) operation;
  decltype(&cublasLtMatmulDescSetAttribute) set_operation;
  decltype(&cublasLtMatrixLayoutCreate) layout;
  decltype(&cublasLtMatmulPreferenceCreate) preference;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference;
  decltype(&cublasLtMatmulPreferenceDestroy) drop_preference;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
};

/// Descriptors live as long as the process: there are as many as shapes.
struct CublasLt::Choice {
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  cublasLtMatmulHeuristicResult_t algorithm{};
};

CublasLt::CublasLt(const std::string& library)
    : library_(dlopen(library_name(library).c_str(), RTLD_NOW | RTLD_LOCAL)), lt_(std::make_unique<Functions>()) {
  if (library_ == nullptr) throw Unsupported(fmt::format("cuBLASLt: {}", dlerror()));
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library_, name));
    if (function == nullptr) throw Unsupported(fmt::format("cuBLASLt: {} has no {}", library_name(library), name));
  };
  find(lt_->create, "cublasLtCreate");
  find(lt_->destroy, "cublasLtDestroy");
  find(lt_->matmul, "cublasLtMatmul");
  find(lt_->operation, "cublasLtMatmulDescCreate");
  find(lt_->set_operation, "cublasLtMatmulDescSetAttribute");
  find(lt_->layout, "cublasLtMatrixLayoutCreate");
  find(lt_->preference, "cublasLtMatmulPreferenceCreate");
  find(lt_->set_preference, "cublasLtMatmulPreferenceSetAttribute");
  find(lt_->drop_preference, "cublasLtMatmulPreferenceDestroy");
  find(lt_->heuristic, "cublasLtMatmulAlgoGetHeuristic");
  cublasLtHandle_t handle = nullptr;
  require(lt_->create(&handle), "cublasLtCreate");
  handle_ = handle;
  workspace_ = allocate_beside_peers(kWorkspace);
}

CublasLt::~CublasLt() {
  lt_->destroy(static_cast<cublasLtHandle_t>(handle_));
  cudaFree(workspace_);
}

CublasLt::Choice& CublasLt::choice(const PlainGemm& gemm) {
  std::unique_ptr<Choice>& found = choices_[{gemm.m, gemm.n, gemm.k, gemm.type, gemm.out_type, gemm.b_layout}];
  if (found != nullptr) return *found;
  auto made = std::make_unique<Choice>();
  // cuBLAS is column-major: C^T (n x m) = B^T * A^T, where a row-major matrix is its column-major transpose.
  const bool rows_of_b = gemm.b_layout == BLayout::kNxK;
  require(lt_->operation(&made->operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
  const cublasOperation_t transposed = rows_of_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  require(lt_->set_operation(made->operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed),
          "cublasLtMatmulDescSetAttribute");
  const auto m = static_cast<std::uint64_t>(gemm.m);
  const auto n = static_cast<std::uint64_t>(gemm.n);
  const auto k = static_cast<std::uint64_t>(gemm.k);
  require(
      lt_->layout(&made->a, data_type(gemm.type), rows_of_b ? k : n, rows_of_b ? n : k, rows_of_b ? gemm.k : gemm.n),
      "cublasLtMatrixLayoutCreate");
  require(lt_->layout(&made->b, data_type(gemm.type), k, m, gemm.k), "cublasLtMatrixLayoutCreate");
  require(lt_->layout(&made->c, data_type(gemm.out_type), n, m, gemm.n), "cublasLtMatrixLayoutCreate");
  cublasLtMatmulPreference_t preference = nullptr;
  require(lt_->preference(&preference), "cublasLtMatmulPreferenceCreate");
  require(lt_->set_preference(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkspace, sizeof kWorkspace),
          "cublasLtMatmulPreferenceSetAttribute");
  int results = 0;
  require(lt_->heuristic(static_cast<cublasLtHandle_t>(handle_), made->operation, made->a, made->b, made->c, made->c,
                         preference, 1, &made->algorithm, &results),
          "cublasLtMatmulAlgoGetHeuristic");
  lt_->drop_preference(preference);
  if (results == 0)
    throw Unsupported(fmt::format("cuBLASLt: no algorithm for {}x{}x{} {}", gemm.m, gemm.n, gemm.k, name(gemm.type)));
  found = std::move(made);
  return *found;
}

void CublasLt::prepare(const PlainGemm& gemm) { choice(gemm); }

void CublasLt::run(const PlainGemm& gemm, const void* a, const void* b, void* c, cudaStream_t stream) {
  const Choice& chosen = choice(gemm);
  const float one = 1;
  const float zero = 0;
  require(lt_->matmul(static_cast<cublasLtHandle_t>(handle_), chosen.operation, &one, b, chosen.a, a, chosen.b, &zero,
                      c, chosen.c, c, chosen.c, &chosen.algorithm.algo, workspace_, kWorkspace, stream),
          "cublasLtMatmul");
}

}  // namespace tandem::cuda
