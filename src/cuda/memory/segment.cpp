#include "cuda/memory/segment.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cuda/driver/device_guard.h"
#include "cuda/driver/driver.h"
#include "cuda/driver/error.h"
#include "tandem/error.h"

namespace tandem::cuda {

namespace {

/// `type`: CU_MEM_HANDLE_TYPE_NONE for memory that stays within the process.
CUmemAllocationProp properties_on(int device, CUmemAllocationHandleType type) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  properties.requestedHandleTypes = type;
  return properties;
}

Size granularity_of(int device, CUmemAllocationHandleType type) {
  const CUmemAllocationProp properties = properties_on(device, type);
  std::size_t needed = 0;
  check(driver().mem_granularity(&needed, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
        "cuMemGetAllocationGranularity");
  return static_cast<Size>(needed);
}

CUmemGenericAllocationHandle allocate(int device, CUmemAllocationHandleType type, Size bytes) {
  const CUmemAllocationProp properties = properties_on(device, type);
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

Segment::Segment(const std::vector<int>& devices, const Bytes& bytes) : pes_(static_cast<int>(devices.size())) {
  check_reach(devices);
  Size granularity = 1;
  for (const int device : devices) granularity = std::max(granularity, granularity_of(device, CU_MEM_HANDLE_TYPE_NONE));
  const Size first = round_up(std::max<Size>(bytes.first, 1), granularity);
  stride_ = std::max(first, round_up(bytes.most, granularity));
  reserve();
  try {
    make_all(devices, first);
  } catch (...) {
    release();
    throw;
  }
}

Segment::Segment(bootstrap::Session& session, bootstrap::FdExchange& exchange, int device, const Bytes& bytes)
    : pes_(session.size()), handles_(agree_on_handles(session, exchange, device)) {
  // GPUs of another kind may need other multiples.
  const tandem::Bytes own = Writer().u64(static_cast<std::uint64_t>(granularity_of(device, handles_))).result();
  Size granularity = 1;
  for (const tandem::Bytes& other : session.all_gather(own, "granularity of memory"))
    granularity = std::max(granularity, static_cast<Size>(Reader(other).u64()));
  const Size first = round_up(std::max<Size>(bytes.first, 1), granularity);
  stride_ = std::max(first, round_up(bytes.most, granularity));
  try {
    share(session, exchange, device, {{allocate(device, handles_, first), first}});
  } catch (...) {
    release();
    throw;
  }
}

Segment::Segment(bootstrap::Session& session, bootstrap::FdExchange& exchange, int device,
                 const std::vector<Chunk>& chunks)
    : pes_(session.size()) {
  for (const Chunk& chunk : chunks) stride_ += chunk.bytes;
  try {
    share(session, exchange, device, chunks);
  } catch (...) {
    release();
    throw;
  }
}

void Segment::reserve() {
  check(driver().mem_address_reserve(&base_, static_cast<std::size_t>(stride_ * pes_), 0, 0, 0), "cuMemAddressReserve");
}

void Segment::make_all(const std::vector<int>& devices, Size bytes) {
  for (int pe = 0; pe < pes_; ++pe)
    map(pe, {{allocate(devices[static_cast<std::size_t>(pe)], CU_MEM_HANDLE_TYPE_NONE, bytes), bytes}}, devices);
  there_ += bytes;
}

void Segment::grow(const std::vector<int>& devices, Size bytes) {
  const std::size_t before = mapped_.size();
  try {
    make_all(devices, bytes);
  } catch (...) {
    unmap_down_to(before);
    throw;
  }
}

void Segment::grow(bootstrap::Session& session, bootstrap::FdExchange& exchange, int device, Size bytes) {
  Chunk chunk{0, bytes};
  bool is_made = false;
  try {
    session.together("growth of the heap", [&] {
      chunk.handle = allocate(device, handles_, bytes);
      is_made = true;
    });
  } catch (...) {
    if (is_made) driver().mem_release(chunk.handle);
    throw;
  }
  const std::size_t before = mapped_.size();
  try {
    share(session, exchange, device, {chunk});
  } catch (...) {
    unmap_down_to(before);
    throw;
  }
}

/// Maps everybody's chunks behind what is there, or nobody's: what one PE cannot do, none has done. Takes those of this
/// process, whatever comes of it; what is mapped by then is the caller's to take back.
void Segment::share(bootstrap::Session& session, bootstrap::FdExchange& exchange, int device,
                    const std::vector<Chunk>& own) {
  std::vector<std::vector<Chunk>> all;
  try {
    all = exchange_chunks(session, exchange, handles_, own);
  } catch (...) {
    cuda::release(own);
    throw;
  }
  all[static_cast<std::size_t>(session.pe())] = own;
  session.together("memory is mapped", [&] {
    int next = 0;
    try {
      if (base_ == 0) reserve();
      while (next < pes_) {
        const int pe = next++;
        map(pe, all[static_cast<std::size_t>(pe)], {device});
      }
    } catch (...) {
      for (; next < pes_; ++next) cuda::release(all[static_cast<std::size_t>(next)]);
      throw;
    }
  });
  for (const Chunk& chunk : own) there_ += chunk.bytes;
}

/// Takes the chunks, whatever comes of it.
void Segment::map(int pe, const std::vector<Chunk>& chunks, const std::vector<int>& devices) {
  std::vector<CUmemAccessDesc> access;
  for (const int device : std::set<int>(devices.begin(), devices.end())) {
    CUmemAccessDesc description{};
    description.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    description.location.id = device;
    description.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    access.push_back(description);
  }
  const CUdeviceptr begin = base_ + static_cast<CUdeviceptr>(stride_ * pe + there_);
  CUdeviceptr address = begin;
  CUresult result = CUDA_SUCCESS;
  for (const Chunk& chunk : chunks) {
    if (result == CUDA_SUCCESS)
      result = driver().mem_map(address, static_cast<std::size_t>(chunk.bytes), 0, chunk.handle, 0);
    if (result == CUDA_SUCCESS)
      mapped_.push_back({address, chunk});
    else
      driver().mem_release(chunk.handle);
    address += static_cast<CUdeviceptr>(chunk.bytes);
  }
  check(result, "cuMemMap");
  check(driver().mem_set_access(begin, static_cast<std::size_t>(address - begin), access.data(), access.size()),
        "cuMemSetAccess: a GPU that does not reach the other's memory, perhaps");
}

Segment::~Segment() { release(); }

void Segment::unmap_down_to(std::size_t mappings) {
  for (; mapped_.size() > mappings; mapped_.pop_back()) {
    driver().mem_unmap(mapped_.back().address, static_cast<std::size_t>(mapped_.back().chunk.bytes));
    driver().mem_release(mapped_.back().chunk.handle);
  }
}

void Segment::release() {
  unmap_down_to(0);
  if (base_ != 0) driver().mem_address_free(base_, static_cast<std::size_t>(stride_ * pes_));
  base_ = 0;
}

}  // namespace tandem::cuda
