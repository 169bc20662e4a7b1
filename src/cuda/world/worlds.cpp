// Worlds on GPUs, and how programs that are linked with this backend find it.
#include "cuda/world/devices.h"
#include "tandem/cuda.h"

namespace tandem {

namespace world {

extern "C" Devices* tandem_gpu_devices() {
  static cuda::CudaDevices& all = *new cuda::CudaDevices;  // stays for worlds that are destroyed at the program's end
  return &all;
}

}  // namespace world

namespace {

CudaOptions on_gpus(CudaOptions options) {
  options.kind = DeviceKind::kGpu;
  return options;
}

}  // namespace

int cuda_devices() { return world::tandem_gpu_devices()->count(); }

CudaThreads::CudaThreads(int pes, const CudaOptions& options) : WorldThreads(pes, on_gpus(options)) {}

CudaProcess::CudaProcess(const UniqueId& id, int pe, int pes, const CudaOptions& options)
    : WorldProcess(id, pe, pes, on_gpus(options)) {}
CudaProcess::CudaProcess(const Placement& place, const CudaOptions& options) : WorldProcess(place, on_gpus(options)) {}

std::unique_ptr<CudaProcess> CudaProcess::split(int color, int key, const CudaOptions& options) {
  auto part = WorldProcess::split(color, key, options);
  return part ? std::make_unique<CudaProcess>(std::move(*part)) : nullptr;
}

}  // namespace tandem
