#include "cuda/segment.h"

#include <fmt/format.h>

#include <algorithm>

#include "cuda/driver.h"
#include "cuda/error.h"
#include "tandem/error.h"

namespace tandem::cuda {

namespace {

CUmemAllocationProp properties_on(int device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  return properties;
}

void check_reach(const std::vector<int>& devices) {
  for (const int from : devices)
    for (const int to : devices) {
      int reaches = 1;
      if (from != to) check(cudaDeviceCanAccessPeer(&reaches, from, to), "cudaDeviceCanAccessPeer");
      if (reaches == 0)
        throw Unsupported(fmt::format("cuda backend: GPU {} does not reach GPU {} by loads and stores", from, to));
    }
}

}  // namespace

Segment::Segment(const std::vector<int>& devices, Size bytes) : pes_(static_cast<int>(devices.size())) {
  check_reach(devices);
  Size granularity = 1;
  for (const int device : devices) {
    const CUmemAllocationProp properties = properties_on(device);
    std::size_t needed = 0;
    check(driver().mem_granularity(&needed, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
          "cuMemGetAllocationGranularity");
    granularity = std::max(granularity, static_cast<Size>(needed));
  }
  stride_ = round_up(std::max<Size>(bytes, 1), granularity);
  const auto all = static_cast<std::size_t>(stride_ * pes_);
  check(driver().mem_address_reserve(&base_, all, 0, 0, 0), "cuMemAddressReserve");
  try {
    map(devices);
  } catch (...) {
    release();
    throw;
  }
}

void Segment::map(const std::vector<int>& devices) {
  std::vector<CUmemAccessDesc> access;
  for (const int device : devices) {
    CUmemAccessDesc description{};
    description.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    description.location.id = device;
    description.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (std::none_of(access.begin(), access.end(), [&](const auto& other) { return other.location.id == device; }))
      access.push_back(description);
  }
  for (int pe = 0; pe < pes_; ++pe) {
    const CUmemAllocationProp properties = properties_on(devices[static_cast<std::size_t>(pe)]);
    CUmemGenericAllocationHandle handle{};
    const CUresult made = driver().mem_create(&handle, static_cast<std::size_t>(stride_), &properties, 0);
    if (made == CUDA_ERROR_OUT_OF_MEMORY) {
      std::size_t free = 0;
      std::size_t total = 0;
      cudaSetDevice(devices[static_cast<std::size_t>(pe)]);
      cudaMemGetInfo(&free, &total);
      throw OutOfMemory(fmt::format("symmetric heap: {} bytes asked for PE {}, {} of {} left on GPU {}", stride_, pe,
                                    free, total, devices[static_cast<std::size_t>(pe)]));
    }
    check(made, "cuMemCreate");
    const CUdeviceptr address = base_ + static_cast<CUdeviceptr>(stride_ * pe);
    const CUresult mapped = driver().mem_map(address, static_cast<std::size_t>(stride_), 0, handle, 0);
    if (mapped != CUDA_SUCCESS) driver().mem_release(handle);
    check(mapped, "cuMemMap");
    mapped_.push_back(handle);
    check(driver().mem_set_access(address, static_cast<std::size_t>(stride_), access.data(), access.size()),
          "cuMemSetAccess");
  }
}

Segment::~Segment() { release(); }

void Segment::release() {
  for (std::size_t pe = 0; pe < mapped_.size(); ++pe) {
    driver().mem_unmap(base_ + static_cast<CUdeviceptr>(stride_) * pe, static_cast<std::size_t>(stride_));
    driver().mem_release(mapped_[pe]);
  }
  if (base_ != 0) driver().mem_address_free(base_, static_cast<std::size_t>(stride_ * pes_));
}

}  // namespace tandem::cuda
