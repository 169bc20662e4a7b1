#include "cuda/memory/memory.h"

#include <fmt/format.h>

#include <cstring>

#include "cuda/driver/device_guard.h"
#include "cuda/driver/driver.h"
#include "cuda/driver/error.h"
#include "tandem/error.h"

namespace tandem::cuda {

namespace {

using world::Chunk;
using world::Handles;
using world::Holder;
using world::MemoryHandle;

CUmemAllocationHandleType type_of(Handles handles) {
  if (handles == Handles::kNone) return CU_MEM_HANDLE_TYPE_NONE;
  return handles == Handles::kFabric ? CU_MEM_HANDLE_TYPE_FABRIC : CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
}

CUmemAllocationProp properties_on(int device, Handles handles) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  properties.requestedHandleTypes = type_of(handles);
  return properties;
}

CUdeviceptr address_of(const std::byte* at) { return reinterpret_cast<CUdeviceptr>(at); }

/// A driver that does not know the attribute does not have it.
bool has(CUdevice_attribute attribute, int device) {
  int supported = 0;
  return driver().device_attribute(&supported, attribute, device) == CUDA_SUCCESS && supported != 0;
}

/// Returns why this process cannot make fabric handles; empty if it can. A GPU may have them although the process may
/// not make them.
std::string lacks_fabric(int device) {
  if (!has(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, device)) return "the GPU has none";
  const CUmemAllocationProp properties = properties_on(device, Handles::kFabric);
  std::size_t bytes = 0;
  check(driver().mem_granularity(&bytes, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
        "cuMemGetAllocationGranularity");
  CUmemGenericAllocationHandle handle{};
  const CUresult made = driver().mem_create(&handle, bytes, &properties, 0);
  if (made == CUDA_SUCCESS) driver().mem_release(handle);
  // Too little memory is reported by the allocation that needs it.
  if (made == CUDA_SUCCESS || made == CUDA_ERROR_OUT_OF_MEMORY) return "";
  const char* text = "unknown error";
  driver().error_string(made, &text);
  return fmt::format("{} (is there an IMEX channel, /dev/nvidia-caps-imex-channels?)", text);
}

/// Returns why other processes cannot map the memory; empty if they can.
std::string problem_of(CUmemGenericAllocationHandle handle) {
  CUmemAllocationProp properties{};
  if (driver().mem_properties(&properties, handle) != CUDA_SUCCESS) return "its properties are unknown";
  if ((properties.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == 0)
    return "it was not made exportable as a file descriptor";
  return "";
}

}  // namespace

Size CudaMemory::granularity(int device, Handles handles) {
  const CUmemAllocationProp properties = properties_on(device, handles);
  std::size_t needed = 0;
  check(driver().mem_granularity(&needed, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
        "cuMemGetAllocationGranularity");
  return static_cast<Size>(needed);
}

MemoryHandle CudaMemory::create(int device, Handles handles, Size bytes) {
  const CUmemAllocationProp properties = properties_on(device, handles);
  CUmemGenericAllocationHandle handle{};
  const CUresult made = driver().mem_create(&handle, static_cast<std::size_t>(bytes), &properties, 0);
  if (made == CUDA_ERROR_OUT_OF_MEMORY) {
    std::size_t free = 0;
    std::size_t total = 0;
    const DeviceGuard current(device);
    cudaMemGetInfo(&free, &total);
    throw OutOfMemory(
        fmt::format("symmetric heap: {} bytes asked for, {} of {} left on GPU {}", bytes, free, total, device));
  }
  check(made, "cuMemCreate");
  return handle;
}

void CudaMemory::release(MemoryHandle handle) noexcept { driver().mem_release(handle); }

std::byte* CudaMemory::reserve(Size bytes) {
  CUdeviceptr base = 0;
  check(driver().mem_address_reserve(&base, static_cast<std::size_t>(bytes), 0, 0, 0), "cuMemAddressReserve");
  return reinterpret_cast<std::byte*>(base);
}

void CudaMemory::give_back(std::byte* addresses, Size bytes) noexcept {
  driver().mem_address_free(address_of(addresses), static_cast<std::size_t>(bytes));
}

void CudaMemory::map(std::byte* at, const Chunk& chunk) {
  check(driver().mem_map(address_of(at), static_cast<std::size_t>(chunk.bytes), 0, chunk.handle, 0), "cuMemMap");
}

void CudaMemory::unmap(std::byte* at, Size bytes) noexcept {
  driver().mem_unmap(address_of(at), static_cast<std::size_t>(bytes));
}

void CudaMemory::allow(std::byte* at, Size bytes, const std::vector<int>& devices) {
  std::vector<CUmemAccessDesc> access;
  for (const int device : devices) {
    CUmemAccessDesc description{};
    description.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    description.location.id = device;
    description.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    access.push_back(description);
  }
  check(driver().mem_set_access(address_of(at), static_cast<std::size_t>(bytes), access.data(), access.size()),
        "cuMemSetAccess: a GPU that does not reach the other's memory, perhaps");
}

bool CudaMemory::reaches(int from, int to) {
  int reaches = 1;
  check(cudaDeviceCanAccessPeer(&reaches, from, to), "cudaDeviceCanAccessPeer");
  return reaches != 0;
}

std::string CudaMemory::lacks(int device, Handles handles) {
  if (handles == Handles::kFabric) return lacks_fabric(device);
  return has(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, device) ? "" : "the GPU exports none";
}

int CudaMemory::export_descriptor(MemoryHandle handle) {
  int descriptor = -1;
  check(driver().mem_export(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
        "cuMemExportToShareableHandle");
  return descriptor;
}

MemoryHandle CudaMemory::import_descriptor(int descriptor, Size) {
  CUmemGenericAllocationHandle handle{};
  auto* const given = reinterpret_cast<void*>(static_cast<std::uintptr_t>(descriptor));
  check(driver().mem_import(&handle, given, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
        "cuMemImportFromShareableHandle");
  return handle;
}

Bytes CudaMemory::export_fabric(MemoryHandle handle) {
  CUmemFabricHandle exported{};
  check(driver().mem_export(&exported, handle, CU_MEM_HANDLE_TYPE_FABRIC, 0), "cuMemExportToShareableHandle");
  const View bytes = std::as_bytes(std::span(&exported, 1));
  return {bytes.begin(), bytes.end()};
}

MemoryHandle CudaMemory::import_fabric(View bytes) {
  CUmemFabricHandle exported{};
  if (bytes.size() != sizeof exported)
    throw RuntimeFailure(fmt::format("fabric handle: {} bytes given, needed are {}", bytes.size(), sizeof exported));
  std::memcpy(&exported, bytes.data(), sizeof exported);
  CUmemGenericAllocationHandle handle{};
  check(driver().mem_import(&handle, &exported, CU_MEM_HANDLE_TYPE_FABRIC), "cuMemImportFromShareableHandle");
  return handle;
}

Holder CudaMemory::holder_of(void* address) {
  Holder holder;
  CUmemGenericAllocationHandle handle{};
  if (driver().mem_retain(&handle, address) != CUDA_SUCCESS) {
    holder.problem = "it is not from an allocator that uses CUDA virtual memory management";
    return holder;
  }
  CUdeviceptr base = 0;
  std::size_t size = 0;
  if (driver().mem_range(&base, &size, reinterpret_cast<CUdeviceptr>(address)) != CUDA_SUCCESS || size == 0) {
    driver().mem_release(handle);
    holder.problem = "its allocation is unknown";
    return holder;
  }
  holder.chunk = {handle, static_cast<Size>(size)};
  holder.base = reinterpret_cast<std::byte*>(base);
  holder.is_retained = true;
  holder.problem = problem_of(handle);
  return holder;
}

}  // namespace tandem::cuda
