#include "cuda/driver/driver.h"

#include <fmt/format.h>

#include "cuda/driver/error.h"
#include "tandem/error.h"

namespace tandem::cuda {

namespace {

template <class Function>
void find(Function& function, const char* name) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found{};
  const cudaError_t code = cudaGetDriverEntryPointByVersion(name, &address, 12000, cudaEnableDefault, &found);
  if (code != cudaSuccess || found != cudaDriverEntryPointSuccess)
    throw Unsupported(
        fmt::format("cuda backend: the driver has no {} ({}); an NVIDIA driver of version 525 or newer is needed", name,
                    cudaGetErrorString(code)));
  function = reinterpret_cast<Function>(address);
}

Driver load() {
  Driver found{};
  find(found.mem_address_reserve, "cuMemAddressReserve");
  find(found.mem_address_free, "cuMemAddressFree");
  find(found.mem_create, "cuMemCreate");
  find(found.mem_release, "cuMemRelease");
  find(found.mem_map, "cuMemMap");
  find(found.mem_unmap, "cuMemUnmap");
  find(found.mem_set_access, "cuMemSetAccess");
  find(found.mem_granularity, "cuMemGetAllocationGranularity");
  find(found.mem_export, "cuMemExportToShareableHandle");
  find(found.mem_import, "cuMemImportFromShareableHandle");
  find(found.mem_retain, "cuMemRetainAllocationHandle");
  find(found.mem_properties, "cuMemGetAllocationPropertiesFromHandle");
  find(found.mem_range, "cuMemGetAddressRange");
  find(found.device_attribute, "cuDeviceGetAttribute");
  find(found.primary_context_retain, "cuDevicePrimaryCtxRetain");
  find(found.primary_context_release, "cuDevicePrimaryCtxRelease");
  find(found.context_push, "cuCtxPushCurrent");
  find(found.context_pop, "cuCtxPopCurrent");
  find(found.stream_write_value, "cuStreamWriteValue64");
  find(found.tensor_map_encode_tiled, "cuTensorMapEncodeTiled");
  find(found.error_string, "cuGetErrorString");
  return found;
}

}  // namespace

const Driver& driver() {
  static const Driver loaded = load();
  return loaded;
}

void check(cudaError_t code, const char* what) {
  if (code != cudaSuccess) throw RuntimeFailure(fmt::format("{}: {}", what, cudaGetErrorString(code)));
}

void check(CUresult code, const char* what) {
  if (code == CUDA_SUCCESS) return;
  const char* text = "unknown error";
  driver().error_string(code, &text);
  throw RuntimeFailure(fmt::format("{}: {}", what, text));
}

}  // namespace tandem::cuda
