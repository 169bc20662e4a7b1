// Memory is that of PEs on CPUs, which processes can hand to each other.
#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "cuda/simulated/gpus.h"
#include "host/world/memory.h"
#include "tandem/error.h"

struct CUctx_st {
  int device;
  int retained;
};

namespace {

using tandem::Size;
using tandem::world::Handles;

constexpr std::size_t kGranularity = std::size_t{2} << 20;

struct State {
  std::mutex mutex;
  tandem::host::HostMemory memory;
  std::map<CUdeviceptr, std::size_t> mappings;      // their sizes
  std::map<ino_t, CUmemAllocationProp> properties;  // by memory file
  std::map<std::string, CUresult> to_fail;
  std::set<int> used;
  CUctx_st contexts[tandem::test::kSimulatedGpus] = {};
};
State& state() {
  static State& all = *new State;  // stays for worlds that are destroyed at the program's end
  return all;
}

/// CUDA's state of a thread.
struct Thread {
  int chosen = 0;                   // by cudaSetDevice
  std::vector<CUcontext> contexts;  // the last one is current
};
thread_local Thread thread;

/// The GPU's, which is started by that; with the lock.
CUcontext primary(int device) {
  state().used.insert(device);
  state().contexts[device].device = device;
  return &state().contexts[device];
}

std::byte* pointer(CUdeviceptr address) { return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address)); }

/// Returns the result that a test wants for the call of that function. The caller holds the lock.
CUresult asked_failure(const std::string& function) {
  const auto found = state().to_fail.find(function);
  if (found == state().to_fail.end()) return CUDA_SUCCESS;
  const CUresult code = found->second;
  state().to_fail.erase(found);
  return code;
}

/// Returns the result of a function of the driver: the one that a test wants, or that of `work`.
template <class Work>
CUresult result_of(const char* function, const Work& work) {
  const std::lock_guard lock(state().mutex);
  if (const CUresult code = asked_failure(function); code != CUDA_SUCCESS) return code;
  try {
    work(state().memory);
    return CUDA_SUCCESS;
  } catch (const tandem::InvalidArgument&) {
    return CUDA_ERROR_INVALID_VALUE;
  } catch (const tandem::OutOfMemory&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (const tandem::Error&) {
    return CUDA_ERROR_UNKNOWN;
  }
}

void require(bool holds) {
  if (!holds) throw tandem::InvalidArgument("a call of the driver");
}

/// Returns what the system knows of a handle's memory file: the handle is its descriptor.
struct stat about(CUmemGenericAllocationHandle handle) {
  struct stat known {};
  require(::fstat(static_cast<int>(handle), &known) == 0);
  return known;
}

}  // namespace

namespace tandem::test {

void fail_next(const std::string& function, CUresult code) {
  const std::lock_guard lock(state().mutex);
  state().to_fail[function] = code;
}

bool has_context(int device) {
  const std::lock_guard lock(state().mutex);
  return state().used.count(device) != 0;
}

int retained(int device) {
  const std::lock_guard lock(state().mutex);
  return state().contexts[device].retained;
}

int contexts_of_thread() { return static_cast<int>(thread.contexts.size()); }

void start_current() {
  const std::lock_guard lock(state().mutex);
  if (thread.contexts.empty()) thread.contexts.push_back(primary(thread.chosen));
}

CUresult failure_of(const std::string& function) {
  const std::lock_guard lock(state().mutex);
  return asked_failure(function);
}

void* exportable_memory(int device, std::size_t bytes) {
  const CUmemAllocationProp properties{
      CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, {CU_MEM_LOCATION_TYPE_DEVICE, device}};
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr base = 0;
  cuMemCreate(&handle, bytes, &properties, 0);
  cuMemAddressReserve(&base, bytes, 0, 0, 0);
  cuMemMap(base, bytes, 0, handle, 0);
  return pointer(base);
}

}  // namespace tandem::test

CUresult cuMemAddressReserve(CUdeviceptr* base, std::size_t bytes, std::size_t, CUdeviceptr, unsigned long long) {
  return result_of(__func__, [&](auto& memory) {
    *base = reinterpret_cast<std::uintptr_t>(memory.reserve(static_cast<Size>(bytes)));
  });
}

CUresult cuMemAddressFree(CUdeviceptr base, std::size_t bytes) {
  return result_of(__func__, [&](auto& memory) { memory.give_back(pointer(base), static_cast<Size>(bytes)); });
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes, const CUmemAllocationProp* properties,
                     unsigned long long) {
  return result_of(__func__, [&](auto& memory) {
    require(bytes > 0 && bytes % kGranularity == 0);
    *handle = memory.create(0, Handles::kDescriptors, static_cast<Size>(bytes));
    state().properties[about(*handle).st_ino] = *properties;
  });
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return result_of(__func__, [&](auto& memory) {
    about(handle);
    memory.release(handle);
  });
}

CUresult cuMemMap(CUdeviceptr at, std::size_t bytes, std::size_t, CUmemGenericAllocationHandle handle,
                  unsigned long long) {
  return result_of(__func__, [&](auto& memory) {
    require(about(handle).st_size == static_cast<Size>(bytes) && state().mappings.try_emplace(at, bytes).second);
    memory.map(pointer(at), {handle, static_cast<Size>(bytes)});
  });
}

CUresult cuMemUnmap(CUdeviceptr at, std::size_t bytes) {
  return result_of(__func__, [&](auto& memory) {
    const auto found = state().mappings.find(at);
    require(found != state().mappings.end() && found->second == bytes);
    state().mappings.erase(found);
    memory.unmap(pointer(at), static_cast<Size>(bytes));
  });
}

CUresult cuMemSetAccess(CUdeviceptr, std::size_t, const CUmemAccessDesc*, std::size_t) {
  return result_of(__func__, [](auto&) {});
}

CUresult cuMemGetAllocationGranularity(std::size_t* bytes, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
  *bytes = kGranularity;
  return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void* exported, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType,
                                      unsigned long long) {
  return result_of(__func__, [&](auto& memory) { *static_cast<int*>(exported) = memory.export_descriptor(handle); });
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* exported,
                                        CUmemAllocationHandleType) {
  return result_of(__func__, [&](auto& memory) {
    const auto descriptor = reinterpret_cast<std::uintptr_t>(exported);
    *handle = memory.import_descriptor(static_cast<int>(descriptor), about(descriptor).st_size);
  });
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  return result_of(__func__, [&](auto& memory) {
    const auto holder = memory.holder_of(address);
    require(holder.is_retained);
    *handle = holder.chunk.handle;
  });
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties, CUmemGenericAllocationHandle handle) {
  return result_of(__func__, [&](auto&) { *properties = state().properties[about(handle).st_ino]; });
}

CUresult cuMemGetAddressRange(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address) {
  return result_of(__func__, [&](auto& memory) {
    const auto holder = memory.holder_of(pointer(address));
    require(holder.is_retained);
    *base = reinterpret_cast<std::uintptr_t>(holder.base);
    *bytes = static_cast<std::size_t>(holder.chunk.bytes);
    memory.release(holder.chunk.handle);
  });
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  *value = attribute == CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuStreamWriteValue64(CUstream, CUdeviceptr word, std::uint64_t value, unsigned) {
  std::atomic_ref(*reinterpret_cast<std::uint64_t*>(pointer(word))).store(value, std::memory_order_release);
  return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeTiled() { return CUDA_ERROR_INVALID_VALUE; }

CUresult cuGetErrorString(CUresult code, const char** text) {
  *text = code == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "simulated failure";
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  const std::lock_guard lock(state().mutex);
  if (const CUresult code = asked_failure("cuDevicePrimaryCtxRetain"); code != CUDA_SUCCESS) return code;
  *context = primary(device);
  ++(*context)->retained;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  const std::lock_guard lock(state().mutex);
  --state().contexts[device].retained;
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context) {
  const std::lock_guard lock(state().mutex);
  if (const CUresult code = asked_failure("cuCtxPushCurrent"); code != CUDA_SUCCESS) return code;
  thread.contexts.push_back(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext* context) {
  if (thread.contexts.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *context = thread.contexts.back();
  thread.contexts.pop_back();
  return CUDA_SUCCESS;
}

cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= tandem::test::kSimulatedGpus) return cudaErrorInvalidDevice;
  const std::lock_guard lock(state().mutex);
  thread.chosen = device;
  if (!thread.contexts.empty()) thread.contexts.pop_back();
  thread.contexts.push_back(primary(device));
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = thread.contexts.empty() ? thread.chosen : thread.contexts.back()->device;
  return cudaSuccess;
}
