#include "cuda/segment.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cuda/driver.h"
#include "cuda/error.h"
#include "tandem/error.h"

namespace tandem::cuda {

namespace {

CUmemAllocationProp properties_on(int device, bool exportable) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  if (exportable) properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return properties;
}

Size granularity_of(int device, bool exportable) {
  const CUmemAllocationProp properties = properties_on(device, exportable);
  std::size_t needed = 0;
  check(driver().mem_granularity(&needed, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
        "cuMemGetAllocationGranularity");
  return static_cast<Size>(needed);
}

CUmemGenericAllocationHandle allocate(int device, bool exportable, Size bytes) {
  const CUmemAllocationProp properties = properties_on(device, exportable);
  CUmemGenericAllocationHandle handle{};
  const CUresult made = driver().mem_create(&handle, static_cast<std::size_t>(bytes), &properties, 0);
  if (made == CUDA_ERROR_OUT_OF_MEMORY) {
    std::size_t free = 0;
    std::size_t total = 0;
    cudaSetDevice(device);
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

void check_exportable(int device) {
  int supported = 0;
  check(driver().device_attribute(&supported, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, device),
        "cuDeviceGetAttribute");
  if (supported == 0)
    throw Unsupported(
        fmt::format("cuda backend: memory of GPU {} cannot be handed to other processes as a file descriptor; run the "
                    "PEs as threads of one process",
                    device));
}

/// Another PE's chunks, of the same sizes as this one's.
std::vector<Chunk> import_all(const std::vector<bootstrap::Fd>& fds, const std::vector<Chunk>& like) {
  std::vector<Chunk> chunks;
  for (std::size_t i = 0; i < like.size(); ++i) {
    const auto number = static_cast<std::uintptr_t>(fds.at(i).get());
    Chunk chunk{0, like[i].bytes};
    const CUresult code =
        driver().mem_import(&chunk.handle, reinterpret_cast<void*>(number), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (code == CUDA_SUCCESS) {
      chunks.push_back(chunk);
      continue;
    }
    for (const Chunk& before : chunks) driver().mem_release(before.handle);
    check(code, "cuMemImportFromShareableHandle");
  }
  return chunks;
}

}  // namespace

Segment::Segment(const std::vector<int>& devices, const Bytes& bytes) : pes_(static_cast<int>(devices.size())) {
  check_reach(devices);
  Size granularity = 1;
  for (const int device : devices) granularity = std::max(granularity, granularity_of(device, false));
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
    : pes_(session.size()) {
  check_exportable(device);
  // GPUs of another kind may need other multiples.
  const bootstrap::Bytes own =
      bootstrap::Writer().u64(static_cast<std::uint64_t>(granularity_of(device, true))).result();
  Size granularity = 1;
  for (const bootstrap::Bytes& other : session.all_gather(own, "granularity of memory"))
    granularity = std::max(granularity, static_cast<Size>(bootstrap::Reader(other).u64()));
  const Size first = round_up(std::max<Size>(bytes.first, 1), granularity);
  stride_ = std::max(first, round_up(bytes.most, granularity));
  reserve();
  try {
    share(session, exchange, device, {{allocate(device, true, first), first}});
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
    reserve();
  } catch (...) {
    for (const Chunk& chunk : chunks) driver().mem_release(chunk.handle);
    throw;
  }
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
    map(pe, {{allocate(devices[static_cast<std::size_t>(pe)], false, bytes), bytes}}, devices);
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
  std::string problem;
  try {
    chunk.handle = allocate(device, true, bytes);
  } catch (const OutOfMemory& error) {
    problem = error.what();
  }
  const std::vector<bootstrap::Bytes> all =
      session.all_gather(bootstrap::Writer().text(problem).result(), "growth of the heap");
  for (std::size_t pe = 0; pe < all.size(); ++pe) {
    const std::string other = bootstrap::Reader(all[pe]).text();
    if (other.empty()) continue;
    if (problem.empty()) driver().mem_release(chunk.handle);
    throw OutOfMemory(fmt::format("PE {}: {}", pe, other));
  }
  const std::size_t before = mapped_.size();
  try {
    share(session, exchange, device, {chunk});
  } catch (...) {
    unmap_down_to(before);
    throw;
  }
}

/// Maps everybody's chunks behind what is there. Takes those of this process, whatever comes of it.
void Segment::share(bootstrap::Session& session, bootstrap::FdExchange& exchange, int device,
                    const std::vector<Chunk>& own) {
  map(session.pe(), own, {device});
  std::vector<bootstrap::Fd> exported;
  std::vector<int> numbers;
  for (const Chunk& chunk : own) {
    int fd = -1;
    check(driver().mem_export(&fd, chunk.handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
          "cuMemExportToShareableHandle");
    exported.emplace_back(fd);
    numbers.push_back(fd);
  }
  const auto received = exchange.exchange(numbers, session.world());
  for (int pe = 0; pe < pes_; ++pe)
    if (pe != session.pe()) map(pe, import_all(received[static_cast<std::size_t>(pe)], own), {device});
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
