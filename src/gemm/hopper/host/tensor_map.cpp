#include "gemm/hopper/host/tensor_map.h"

#include <array>

#include "cuda/driver/driver.h"
#include "cuda/driver/error.h"

namespace tandem::cuda {

namespace {

CUtensorMapDataType data_type(DType type) {
  // TMA moves bytes unchanged, so only the element size matters.
  return size_of(type) == 1 ? CU_TENSOR_MAP_DATA_TYPE_UINT8 : CU_TENSOR_MAP_DATA_TYPE_UINT16;
}

CUtensorMapSwizzle swizzle(Size row_bytes) {
  if (row_bytes > 128) return CU_TENSOR_MAP_SWIZZLE_NONE;
  if (row_bytes == 128) return CU_TENSOR_MAP_SWIZZLE_128B;
  return row_bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B : CU_TENSOR_MAP_SWIZZLE_32B;
}

}  // namespace

CUtensorMap tensor_map(const void* data, DType type, Size rows, Size cols, int box_rows, int box_cols,
                       CUtensorMapL2promotion promotion) {
  CUtensorMap map{};
  const std::array<cuuint64_t, 2> size{static_cast<cuuint64_t>(cols), static_cast<cuuint64_t>(rows)};
  const std::array<cuuint64_t, 1> row_bytes{static_cast<cuuint64_t>(cols * size_of(type))};
  const std::array<cuuint32_t, 2> box{static_cast<cuuint32_t>(box_cols), static_cast<cuuint32_t>(box_rows)};
  const std::array<cuuint32_t, 2> step{1, 1};
  check(
      driver().tensor_map_encode_tiled(&map, data_type(type), 2, const_cast<void*>(data), size.data(), row_bytes.data(),
                                       box.data(), step.data(), CU_TENSOR_MAP_INTERLEAVE_NONE,
                                       swizzle(box_cols * size_of(type)), promotion, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
      "cuTensorMapEncodeTiled");
  return map;
}

}  // namespace tandem::cuda
