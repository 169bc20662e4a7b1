// Streams do at once what they are asked for.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "cuda/simulated/gpus.h"

struct CUstream_st {};
struct CUevent_st {};

namespace {

std::atomic<int> allocations{0};
thread_local cudaError_t last_error = cudaSuccess;
thread_local cudaLaunchConfig_t last_launch{};
std::map<cudaDeviceAttr, int> attributes{{cudaDevAttrComputeCapabilityMajor, 9}};  // 0 where there is none

/// Returns the result that a test wants for the call of that function.
cudaError_t outcome_of(const char* function) {
  const auto code = static_cast<cudaError_t>(tandem::test::failure_of(function));
  if (code != cudaSuccess) last_error = code;
  return code;
}

cudaError_t allocate(void** memory, std::size_t bytes) {
  *memory = std::malloc(bytes);
  if (*memory == nullptr) return cudaErrorMemoryAllocation;
  ++allocations;
  return cudaSuccess;
}

}  // namespace

namespace tandem::test {

void set_attribute(cudaDeviceAttr attribute, int value) { attributes[attribute] = value; }

int allocations_left() { return allocations; }
void leave_error(cudaError_t code) { last_error = code; }
const cudaLaunchConfig_t& launched() { return last_launch; }

cudaError_t begin_launch(const cudaLaunchConfig_t& config) {
  start_current();
  last_launch = config;
  return outcome_of("cudaLaunchKernelEx");
}

}  // namespace tandem::test

const char* cudaGetErrorString(cudaError_t code) {
  switch (code) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    default:
      return "simulated failure";
  }
}
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = tandem::test::kSimulatedGpus;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device < 0 || device >= tandem::test::kSimulatedGpus) return cudaErrorInvalidDevice;
  *properties = {};
  std::strcpy(properties->name, "simulated");
  properties->uuid.bytes[0] = static_cast<char>(device + 1);
  properties->multiProcessorCount = 132;
  properties->maxBlocksPerMultiProcessor = 32;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->asyncEngineCount = 3;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  const auto found = attributes.find(attribute);
  *value = found == attributes.end() ? 0 : found->second;
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  tandem::test::start_current();
  return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  const auto address = [](auto* of) { return reinterpret_cast<void*>(of); };
  static const std::map<std::string, void*> all{
      {"cuMemAddressReserve", address(cuMemAddressReserve)},
      {"cuMemAddressFree", address(cuMemAddressFree)},
      {"cuMemCreate", address(cuMemCreate)},
      {"cuMemRelease", address(cuMemRelease)},
      {"cuMemMap", address(cuMemMap)},
      {"cuMemUnmap", address(cuMemUnmap)},
      {"cuMemSetAccess", address(cuMemSetAccess)},
      {"cuMemGetAllocationGranularity", address(cuMemGetAllocationGranularity)},
      {"cuMemExportToShareableHandle", address(cuMemExportToShareableHandle)},
      {"cuMemImportFromShareableHandle", address(cuMemImportFromShareableHandle)},
      {"cuMemRetainAllocationHandle", address(cuMemRetainAllocationHandle)},
      {"cuMemGetAllocationPropertiesFromHandle", address(cuMemGetAllocationPropertiesFromHandle)},
      {"cuMemGetAddressRange", address(cuMemGetAddressRange)},
      {"cuDeviceGetAttribute", address(cuDeviceGetAttribute)},
      {"cuStreamWriteValue64", address(cuStreamWriteValue64)},
      {"cuTensorMapEncodeTiled", address(cuTensorMapEncodeTiled)},
      {"cuGetErrorString", address(cuGetErrorString)},
      {"cuDevicePrimaryCtxRetain", address(cuDevicePrimaryCtxRetain)},
      {"cuDevicePrimaryCtxRelease", address(cuDevicePrimaryCtxRelease)},
      {"cuCtxPushCurrent", address(cuCtxPushCurrent)},
      {"cuCtxPopCurrent", address(cuCtxPopCurrent)},
  };
  const auto found = all.find(name);
  *result = found == all.end() ? cudaDriverEntryPointSymbolNotFound : cudaDriverEntryPointSuccess;
  *function = found == all.end() ? nullptr : found->second;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  tandem::test::start_current();
  return allocate(memory, bytes);
}
cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t) {
  tandem::test::start_current();
  const cudaError_t code = outcome_of("cudaMallocAsync");
  return code == cudaSuccess ? allocate(memory, bytes) : code;
}
cudaError_t cudaFree(void* memory) {
  tandem::test::start_current();
  if (memory != nullptr) --allocations;
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) { return cudaMalloc(memory, bytes); }
cudaError_t cudaMallocHost(void** memory, std::size_t bytes) { return cudaMalloc(memory, bytes); }
cudaError_t cudaFreeHost(void* memory) { return cudaFree(memory); }
/// A registration is left over as an allocation is.
cudaError_t cudaHostRegister(void*, std::size_t, unsigned) {
  ++allocations;
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void*) {
  --allocations;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = *total = std::size_t{1} << 37;
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  tandem::test::start_current();
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpy(to, from, bytes, kind);
}
cudaError_t cudaMemset(void* memory, int value, std::size_t bytes) {
  tandem::test::start_current();
  std::memset(memory, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t) {
  return cudaMemset(memory, value, bytes);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  tandem::test::start_current();
  *stream = new CUstream_st;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }
cudaError_t cudaDeviceGetLimit(std::size_t* value, cudaLimit) {
  *value = 1024;
  return cudaSuccess;
}
cudaError_t cudaDeviceSetLimit(cudaLimit, std::size_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  tandem::test::start_current();
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
