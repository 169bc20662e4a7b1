// A cuBLASLt that does nothing but count.
#include "cuda/simulated/names.h"

namespace tandem::test {

Cublas& cublas() {
  static Cublas only;
  return only;
}

}  // namespace tandem::test

using tandem::test::cublas;

namespace {

template <class T>
cublasStatus_t made(T* made, int& count) {
  ++count;
  *made = reinterpret_cast<T>(&count);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t destroyed(int& count) {
  --count;
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) { return made(handle, cublas().handles); }
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return destroyed(cublas().handles); }
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t, const void*, const void*, cublasLtMatrixLayout_t,
                              const void*, cublasLtMatrixLayout_t, const void*, const void*, cublasLtMatrixLayout_t,
                              void*, cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t*, void*, std::size_t,
                              cudaStream_t) {
  ++cublas().multiplied;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* operation, cublasComputeType_t, cudaDataType_t) {
  return made(operation, cublas().operations);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t) { return destroyed(cublas().operations); }
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, const void*,
                                              std::size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t, std::uint64_t, std::uint64_t,
                                          std::int64_t) {
  return cublas().layout == CUBLAS_STATUS_SUCCESS ? made(layout, cublas().layouts) : cublas().layout;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t) { return destroyed(cublas().layouts); }
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return made(preference, cublas().preferences);
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t) { return destroyed(cublas().preferences); }
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
                                                    const void*, std::size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int, cublasLtMatmulHeuristicResult_t* results,
                                              int* found) {
  ++cublas().asked;
  *results = {};
  *found = cublas().heuristic == CUBLAS_STATUS_SUCCESS ? cublas().algorithms : 0;
  return cublas().heuristic;
}
