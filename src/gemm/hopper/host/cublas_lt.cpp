#include "gemm/hopper/host/cublas_lt.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <optional>
#include <utility>

#if !defined(TANDEM_CUDA_NAMES)
#include <cublasLt.h>
#endif

#include "cuda/driver/error.h"
#include "tandem/error.h"

namespace tandem::cuda {

namespace {

constexpr std::size_t kWorkspace = std::size_t{32} << 20;

void require(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_ALLOC_FAILED) throw OutOfMemory(fmt::format("cuBLASLt: {} found no memory", what));
  if (status != CUBLAS_STATUS_SUCCESS)
    throw RuntimeFailure(fmt::format("cuBLASLt: {} gave status {}", what, static_cast<int>(status)));
}

std::optional<cudaDataType_t> data_type(DType type) {
  switch (type) {
    case DType::kBF16:
      return CUDA_R_16BF;
    case DType::kF16:
      return CUDA_R_16F;
    case DType::kF32:
      return CUDA_R_32F;
    case DType::kE4M3:
      return CUDA_R_8F_E4M3;
    default:
      return std::nullopt;
  }
}

std::string library_name(const std::string& given) {
  if (!given.empty()) return given;
  const char* const chosen = std::getenv("TANDEM_CUBLASLT");
  return chosen != nullptr ? chosen : "libcublasLt.so.13";
}

/// cudaMalloc maps memory to all peers. It waits for their work, which may wait for this PE. Memory of a pool is mapped
/// on this GPU only.
void* allocate_beside_peers(std::size_t bytes) {
  void* memory = nullptr;
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  const cudaError_t allocated = cudaMallocAsync(&memory, bytes, stream);
  const cudaError_t waited = cudaStreamSynchronize(stream);
  cudaStreamDestroy(stream);
  if (allocated == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // otherwise the error would stay for the program's next check
    throw OutOfMemory(fmt::format("cuBLASLt: its workspace: {} bytes asked, out of memory", bytes));
  }
  check(allocated, "cudaMallocAsync");
  check(waited, "cudaMallocAsync");
  return memory;
}

/// A handle of cuBLASLt with its destructor.
template <class T>
using Owned = std::unique_ptr<std::remove_pointer_t<T>, cublasStatus_t (*)(T)>;

template <class T, class Create, class... Arguments>
Owned<T> make(Create create, cublasStatus_t (*destroy)(T), const char* what, Arguments... arguments) {
  T made = nullptr;
  require(create(&made, arguments...), what);
  return {made, destroy};
}

}  // namespace

struct CublasLt::Functions {
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtDestroy) destroy;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtMatmulDescCreate) operation;
  decltype(&cublasLtMatmulDescDestroy) drop_operation;
  decltype(&cublasLtMatmulDescSetAttribute) set_operation;
  decltype(&cublasLtMatrixLayoutCreate) layout;
  decltype(&cublasLtMatrixLayoutDestroy) drop_layout;
  decltype(&cublasLtMatmulPreferenceCreate) preference;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference;
  decltype(&cublasLtMatmulPreferenceDestroy) drop_preference;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;

  Owned<cublasLtHandle_t> handle{nullptr, nullptr};
};

struct CublasLt::Choice {
  Owned<cublasLtMatmulDesc_t> operation;
  Owned<cublasLtMatrixLayout_t> a, b, c;
  cublasLtMatmulHeuristicResult_t algorithm{};
};

/// The library stays loaded, because the next stream needs it, too.
CublasLt::CublasLt(const std::string& library) : lt_(std::make_unique<Functions>()) {
  void* const loaded = dlopen(library_name(library).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) throw Unsupported(fmt::format("cuBLASLt: {}", dlerror()));
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(loaded, name));
    if (function == nullptr) throw Unsupported(fmt::format("cuBLASLt: {} has no {}", library_name(library), name));
  };
  find(lt_->create, "cublasLtCreate");
  find(lt_->destroy, "cublasLtDestroy");
  find(lt_->matmul, "cublasLtMatmul");
  find(lt_->operation, "cublasLtMatmulDescCreate");
  find(lt_->drop_operation, "cublasLtMatmulDescDestroy");
  find(lt_->set_operation, "cublasLtMatmulDescSetAttribute");
  find(lt_->layout, "cublasLtMatrixLayoutCreate");
  find(lt_->drop_layout, "cublasLtMatrixLayoutDestroy");
  find(lt_->preference, "cublasLtMatmulPreferenceCreate");
  find(lt_->set_preference, "cublasLtMatmulPreferenceSetAttribute");
  find(lt_->drop_preference, "cublasLtMatmulPreferenceDestroy");
  find(lt_->heuristic, "cublasLtMatmulAlgoGetHeuristic");
  workspace_.reset(allocate_beside_peers(kWorkspace));
  lt_->handle = make(lt_->create, lt_->destroy, "cublasLtCreate");
}

CublasLt::~CublasLt() = default;

bool CublasLt::has_types(const PlainGemm& gemm) { return data_type(gemm.type) && data_type(gemm.out_type); }

std::unique_ptr<CublasLt::Choice> CublasLt::choose(const PlainGemm& gemm) const {
  if (!has_types(gemm)) return nullptr;
  // cuBLAS is column-major. It computes C^T (n x m) = B^T * A^T, and a row-major matrix is its column-major transpose.
  const bool rows_of_b = gemm.b_layout == BLayout::kNxK;
  const auto layout = [&](DType type, Size rows, Size columns) {
    return make(lt_->layout, lt_->drop_layout, "cublasLtMatrixLayoutCreate", *data_type(type),
                static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns), rows);
  };
  auto made = std::make_unique<Choice>(
      Choice{make(lt_->operation, lt_->drop_operation, "cublasLtMatmulDescCreate", CUBLAS_COMPUTE_32F, CUDA_R_32F),
             layout(gemm.type, rows_of_b ? gemm.k : gemm.n, rows_of_b ? gemm.n : gemm.k),
             layout(gemm.type, gemm.k, gemm.m), layout(gemm.out_type, gemm.n, gemm.m)});
  const cublasOperation_t transposed = rows_of_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  require(lt_->set_operation(made->operation.get(), CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed),
          "cublasLtMatmulDescSetAttribute");
  const std::int8_t fast = gemm.fast_accumulation ? 1 : 0;
  require(lt_->set_operation(made->operation.get(), CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast),
          "cublasLtMatmulDescSetAttribute");
  const auto preference = make(lt_->preference, lt_->drop_preference, "cublasLtMatmulPreferenceCreate");
  require(
      lt_->set_preference(preference.get(), CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkspace, sizeof kWorkspace),
      "cublasLtMatmulPreferenceSetAttribute");
  int results = 0;
  const cublasStatus_t status =
      lt_->heuristic(lt_->handle.get(), made->operation.get(), made->a.get(), made->b.get(), made->c.get(),
                     made->c.get(), preference.get(), 1, &made->algorithm, &results);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return nullptr;
  require(status, "cublasLtMatmulAlgoGetHeuristic");
  return results > 0 ? std::move(made) : nullptr;
}

const std::unique_ptr<CublasLt::Choice>& CublasLt::choice(const PlainGemm& gemm) {
  const Key key{gemm.m, gemm.n, gemm.k, gemm.type, gemm.out_type, gemm.b_layout, gemm.fast_accumulation};
  if (const auto found = choices_.find(key); found != choices_.end()) return found->second;
  return choices_[key] = choose(gemm);
}

bool CublasLt::has(const PlainGemm& gemm) { return choice(gemm) != nullptr; }

void CublasLt::prepare(const PlainGemm& gemm) {
  if (!has_types(gemm))
    throw Unsupported(fmt::format("cuBLASLt: {} to {} given, used for bf16, f16, f32, fp8_e4m3", name(gemm.type),
                                  name(gemm.out_type)));
  if (!has(gemm))
    throw Unsupported(fmt::format("cuBLASLt: no algorithm for {}x{}x{} {}", gemm.m, gemm.n, gemm.k, name(gemm.type)));
}

void CublasLt::run(const PlainGemm& gemm, const void* a, const void* b, void* c, cudaStream_t stream) {
  prepare(gemm);
  const Choice& chosen = *choice(gemm);
  const float one = 1;
  const float zero = 0;
  require(lt_->matmul(lt_->handle.get(), chosen.operation.get(), &one, b, chosen.a.get(), a, chosen.b.get(), &zero, c,
                      chosen.c.get(), c, chosen.c.get(), &chosen.algorithm.algo, workspace_.get(), kWorkspace, stream),
          "cublasLtMatmul");
}

}  // namespace tandem::cuda
