#include "tools/tandem/gpu/measure/user_memory.h"

#include "cuda/driver/driver.h"
#include "cuda/driver/error.h"

namespace tandem::cli {

UserMemory::UserMemory(Size bytes, bool exportable) {
  if (!exportable) {
    void* memory = nullptr;
    cuda::check(cudaMalloc(&memory, static_cast<std::size_t>(bytes)), "cudaMalloc");
    memory_ = static_cast<std::byte*>(memory);
    return;
  }
  const cuda::Driver& driver = cuda::driver();
  int device = 0;
  cuda::check(cudaGetDevice(&device), "cudaGetDevice");
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  std::size_t granularity = 0;
  cuda::check(driver.mem_granularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
              "cuMemGetAllocationGranularity");
  mapped_ = round_up(bytes, static_cast<Size>(granularity));
  const auto size = static_cast<std::size_t>(mapped_);
  CUdeviceptr address = 0;
  cuda::check(driver.mem_create(&handle_, size, &properties, 0), "cuMemCreate");
  cuda::check(driver.mem_address_reserve(&address, size, 0, 0, 0), "cuMemAddressReserve");
  cuda::check(driver.mem_map(address, size, 0, handle_, 0), "cuMemMap");
  memory_ = reinterpret_cast<std::byte*>(address);
  const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  cuda::check(driver.mem_set_access(address, size, &access, 1), "cuMemSetAccess");
}

UserMemory::~UserMemory() {
  if (mapped_ == 0) {
    cudaFree(memory_);
    return;
  }
  const auto address = reinterpret_cast<CUdeviceptr>(memory_);
  const auto size = static_cast<std::size_t>(mapped_);
  cuda::driver().mem_unmap(address, size);
  cuda::driver().mem_release(handle_);
  cuda::driver().mem_address_free(address, size);
}

}  // namespace tandem::cli
