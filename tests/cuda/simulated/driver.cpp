// Memory is that of memory files, so that processes can hand it to each other.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "cuda/simulated/gpus.h"
#include "cuda_runtime.h"

struct CUctx_st {
  int device;
  int retained;
};

namespace {

constexpr std::size_t kGranularity = std::size_t{2} << 20;

struct Physical {
  int fd;
  std::size_t bytes;
  int owners;
  CUmemAllocationProp properties;
};
struct Mapping {
  CUmemGenericAllocationHandle handle;
  std::size_t bytes;
};

struct State {
  std::mutex mutex;
  std::map<CUmemGenericAllocationHandle, Physical> memory;
  std::map<CUdeviceptr, Mapping> mappings;
  CUmemGenericAllocationHandle last_handle = 0;
  std::map<std::string, CUresult> to_fail;
  std::set<int> used;
  CUctx_st contexts[tandem::test::kSimulatedGpus];
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

void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)); }

/// Returns the result that a test wants for the call of that function. The caller holds the lock.
CUresult asked_failure(const std::string& function) {
  const auto found = state().to_fail.find(function);
  if (found == state().to_fail.end()) return CUDA_SUCCESS;
  const CUresult code = found->second;
  state().to_fail.erase(found);
  return code;
}

CUmemGenericAllocationHandle add(int fd, std::size_t bytes, const CUmemAllocationProp& properties) {
  state().memory[++state().last_handle] = {fd, bytes, 1, properties};
  return state().last_handle;
}

std::map<CUdeviceptr, Mapping>::iterator mapping_at(CUdeviceptr address) {
  auto found = state().mappings.upper_bound(address);
  if (found == state().mappings.begin()) return state().mappings.end();
  --found;
  return address < found->first + found->second.bytes ? found : state().mappings.end();
}

bool release(CUmemGenericAllocationHandle handle) {
  const auto found = state().memory.find(handle);
  if (found == state().memory.end()) return false;
  if (--found->second.owners > 0) return true;
  ::close(found->second.fd);
  state().memory.erase(found);
  return true;
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
  const std::lock_guard lock(state().mutex);
  if (const CUresult code = asked_failure("cuMemAddressReserve"); code != CUDA_SUCCESS) return code;
  void* const range = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  *base = reinterpret_cast<std::uintptr_t>(range);
  return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr base, std::size_t bytes) {
  return ::munmap(pointer(base), bytes) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes, const CUmemAllocationProp* properties,
                     unsigned long long) {
  const std::lock_guard lock(state().mutex);
  if (const CUresult code = asked_failure("cuMemCreate"); code != CUDA_SUCCESS) return code;
  if (bytes == 0 || bytes % kGranularity != 0) return CUDA_ERROR_INVALID_VALUE;
  const int fd = ::memfd_create("simulated GPU", MFD_CLOEXEC);
  if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(bytes)) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = add(fd, bytes, *properties);
  return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  const std::lock_guard lock(state().mutex);
  return release(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemMap(CUdeviceptr at, std::size_t bytes, std::size_t, CUmemGenericAllocationHandle handle,
                  unsigned long long) {
  const std::lock_guard lock(state().mutex);
  if (const CUresult code = asked_failure("cuMemMap"); code != CUDA_SUCCESS) return code;
  const auto found = state().memory.find(handle);
  if (found == state().memory.end() || found->second.bytes != bytes || mapping_at(at) != state().mappings.end())
    return CUDA_ERROR_INVALID_VALUE;
  if (::mmap(pointer(at), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, found->second.fd, 0) == MAP_FAILED)
    return CUDA_ERROR_UNKNOWN;
  ++found->second.owners;
  state().mappings[at] = {handle, bytes};
  return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr at, std::size_t bytes) {
  const std::lock_guard lock(state().mutex);
  const auto found = state().mappings.find(at);
  if (found == state().mappings.end() || found->second.bytes != bytes) return CUDA_ERROR_INVALID_VALUE;
  release(found->second.handle);
  state().mappings.erase(found);
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  return ::mmap(pointer(at), bytes, PROT_NONE, flags, -1, 0) != MAP_FAILED ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

CUresult cuMemSetAccess(CUdeviceptr, std::size_t, const CUmemAccessDesc*, std::size_t) {
  const std::lock_guard lock(state().mutex);
  return asked_failure("cuMemSetAccess");
}

CUresult cuMemGetAllocationGranularity(std::size_t* bytes, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
  *bytes = kGranularity;
  return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void* exported, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType,
                                      unsigned long long) {
  const std::lock_guard lock(state().mutex);
  if (const CUresult code = asked_failure("cuMemExportToShareableHandle"); code != CUDA_SUCCESS) return code;
  const auto found = state().memory.find(handle);
  if (found == state().memory.end()) return CUDA_ERROR_INVALID_VALUE;
  *static_cast<int*>(exported) = ::dup(found->second.fd);
  return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* exported,
                                        CUmemAllocationHandleType) {
  const std::lock_guard lock(state().mutex);
  if (const CUresult code = asked_failure("cuMemImportFromShareableHandle"); code != CUDA_SUCCESS) return code;
  const int fd = ::dup(static_cast<int>(reinterpret_cast<std::uintptr_t>(exported)));
  struct stat status {};
  if (fd < 0 || ::fstat(fd, &status) != 0) return CUDA_ERROR_INVALID_VALUE;
  *handle = add(fd, static_cast<std::size_t>(status.st_size), {});
  return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  const std::lock_guard lock(state().mutex);
  const auto found = mapping_at(reinterpret_cast<std::uintptr_t>(address));
  if (found == state().mappings.end()) return CUDA_ERROR_INVALID_VALUE;
  *handle = found->second.handle;
  ++state().memory.at(*handle).owners;
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties, CUmemGenericAllocationHandle handle) {
  const std::lock_guard lock(state().mutex);
  *properties = state().memory.at(handle).properties;
  return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address) {
  const std::lock_guard lock(state().mutex);
  const auto found = mapping_at(address);
  if (found == state().mappings.end()) return CUDA_ERROR_INVALID_VALUE;
  *base = found->first;
  *bytes = found->second.bytes;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  *value = attribute == CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED ? 1 : 0;
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
