#include "cuda/world/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <span>

#include "base/log.h"
#include "bootstrap/local/environment.h"
#include "cuda/device/gemm.h"
#include "cuda/device/mail_kernels.h"
#include "cuda/device/nodes_kernels.h"
#include "cuda/device/register.h"
#include "cuda/device/signal_kernels.h"
#include "cuda/driver/device_guard.h"
#include "cuda/driver/error.h"
#include "cuda/profile/profiler.h"
#include "cuda/world/access.h"
#include "cuda/world/stream.h"
#include "tandem/error.h"

namespace tandem::cuda {

namespace {

/// Returns whether a launcher started this process as one of several, each of which has a GPU to itself.
bool is_one_of_several() {
  const auto is_set = [](const char* place, const char* processes) {
    const auto count = bootstrap::variable_of_process(processes);
    return bootstrap::variable_of_process(place) && count && *count != "1";
  };
  return is_set("RANK", "WORLD_SIZE") || is_set("SLURM_PROCID", "SLURM_NTASKS");
}

/// Returns whether the environment says that this process's world may have several nodes.
bool may_have_nodes() {
  const auto value = [](const char* name) { return bootstrap::variable_of_process(name); };
  const auto nodes = value("SLURM_NNODES");
  return value("TANDEM_HOST") || value("TANDEM_NODE_SIZE") || (nodes && *nodes != "1") ||
         (value("LOCAL_WORLD_SIZE") && value("LOCAL_WORLD_SIZE") != value("WORLD_SIZE"));
}

/// No kernel of the library has a larger stack on GPUs.
constexpr std::size_t kStackBytes = 2048;

/// The driver enlarges the stack at the first launch that needs more, and waits there for all that runs on the GPU.
/// Kernels that run may wait for a proxy, whose copies need the driver meanwhile. So it is enlarged with the world.
void enlarge_stack() {
  std::size_t bytes = 0;
  check(cudaDeviceGetLimit(&bytes, cudaLimitStackSize), "cudaDeviceGetLimit");
  if (bytes < kStackBytes) check(cudaDeviceSetLimit(cudaLimitStackSize, kStackBytes), "cudaDeviceSetLimit");
}

class Kernels final : public world::LoadedKernels {
 public:
  explicit Kernels(bool several_nodes) : several_nodes_(several_nodes) {}

  /// Loads them on the current GPU.
  void load() {
    load_signal_kernels();
    if (several_nodes_) {
      enlarge_stack();
      load_mail_kernels();
    }
    for (const detail::DeviceKernel* kernel : registered_kernels()) {
      const detail::DeviceKernel* const form = form_of(kernel);
      const detail::DeviceKernel* const loaded = form != nullptr ? form : kernel;
      blocks_per_sm_[loaded] = loaded->load();
    }
  }
  void set_sms(int sms) { sms_ = sms; }

  void check(const detail::KernelLaunch& kernel, int sharing) const override {
    if (kernel.device == nullptr)
      throw Unsupported(fmt::format(
          "launch of {}: this kernel was not compiled for GPUs (tandem/advanced/cuda_kernel.cuh: register_kernel)",
          kernel.name()));
    if (kernel.grid.threads != kernel.device->threads)
      throw InvalidArgument(fmt::format("launch of {}: {} threads a block given, it is compiled for {}", kernel.name(),
                                        kernel.grid.threads, kernel.device->threads));
    const detail::DeviceKernel* const form = form_of(kernel.device);
    if (form == nullptr)
      throw Unsupported(fmt::format(
          "launch of {}: this kernel was not compiled for worlds of several nodes. Reductions are, for f32, f16, bf16 "
          "and i32; your own kernels need register_nodes_kernel (tandem/advanced/cuda_nodes_kernel.cuh)",
          kernel.name()));
    const auto found = blocks_per_sm_.find(form);
    const int per_sm = found != blocks_per_sm_.end() ? found->second : form->load();
    const int most = per_sm * sms_ / sharing;
    if (kernel.grid.blocks > most)
      throw Unsupported(fmt::format("launch of {}: {} blocks given, the GPU (of {} PEs) holds {} of a PE at once",
                                    kernel.name(), kernel.grid.blocks, sharing, most));
  }

 private:
  /// Returns null if the kernel does not run in a world of several nodes, and this is one.
  const detail::DeviceKernel* form_of(const detail::DeviceKernel* usual) const {
    return several_nodes_ ? find_nodes_form(usual) : usual;
  }

  bool several_nodes_;
  std::map<const detail::DeviceKernel*, int> blocks_per_sm_;
  int sms_ = 0;  // of the first GPU
};

Profiler* of_cuda(world::Profiler* profiler) { return static_cast<Profiler*>(profiler); }

}  // namespace

std::string CudaDevices::name_of(int device) const { return fmt::format("GPU {}", device); }

/// The driver reads these variables when it starts, which the first call of almost any function does. So they are set
/// before this backend calls one.
CudaDevices::CudaDevices() {
  // Streams beyond the number of hardware queues wait for each other. Kernels then deadlock if their PEs share a GPU
  // and they wait for each other. So does a world of several nodes: with 8 queues, copies behind kernels that wait held
  // up a proxy's copies (bench/NOTES.md). Each queue makes copy engines slower, so a process that shares nothing keeps
  // the driver's 8. A user's own choice stays.
  queues_ = {bootstrap::variable_of_process("CUDA_DEVICE_MAX_CONNECTIONS"), is_driver_started()};
  if (!queues_.value && (!is_one_of_several() || may_have_nodes())) {
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
    if (!queues_.is_started) queues_.value = "32";
  }
  // The library's own kernels are loaded when a world is made. Others, above all cuBLASLt's, are loaded at their first
  // call. In eager mode such a load waits for every kernel of this process on any GPU, which may wait for that call. In
  // lazy mode it waits only for kernels on this GPU (bench/NOTES.md).
  setenv("CUDA_MODULE_LOADING", "LAZY", 0);
}

int CudaDevices::count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

void CudaDevices::require_any() {
  if (count() == 0) throw Unsupported("cuda backend: no GPU, or no NVIDIA driver");
}

Machine CudaDevices::describe(int device) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  Machine machine;
  machine.name = properties.name;
  machine.gpu.sm_count = properties.multiProcessorCount;
  machine.gpu.max_blocks_per_sm = properties.maxBlocksPerMultiProcessor;
  machine.gpu.max_threads_per_sm = properties.maxThreadsPerMultiProcessor;
  machine.gpu.copy_engines = properties.asyncEngineCount;
  return machine;
}

/// Programmatic dependent launch exists since compute capability 9.
bool CudaDevices::has_early_launch(int device) {
  int major = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "cudaDeviceGetAttribute");
  return major >= 9;
}

/// Any kernel of any PE may wait for any other, so all have to find room at the same time, wherever the others lie. A
/// block may take an SM whose neighbour is free, while the GEMM's clusters need pairs. A PE has at most a GEMM and
/// blocks beside it. Or it has as many blocks behind the GEMM as it counts on SMs, and half as many beside. So there is
/// room if a PE counts on two SMs for every three pairs of its share.
int CudaDevices::share_of(int sms, int sharing) const { return sharing == 1 ? sms : std::max(2, sms / (3 * sharing)); }

Bytes CudaDevices::exclusive_id(int device) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  const View id = std::as_bytes(std::span(properties.uuid.bytes));
  return {id.begin(), id.end()};
}

/// Under MPS, blocks of several processes run side by side. Waiting ones could then take the places of blocks that they
/// wait for. A driver that does not know the attribute has no such setting.
std::string CudaDevices::lacks_sharing(int device) {
  int is_mps = 0, mode = 0;
  if (cudaDeviceGetAttribute(&is_mps, cudaDevAttrMpsEnabled, device) != cudaSuccess) cudaGetLastError();
  check(cudaDeviceGetAttribute(&mode, cudaDevAttrComputeMode, device), "cudaDeviceGetAttribute");
  if (is_mps != 0)
    return "CUDA's MPS runs blocks of several processes at once there, and nothing promises room for all";
  if (mode == cudaComputeModeExclusiveProcess) return "its compute mode is exclusive (nvidia-smi -c DEFAULT)";
  return "";
}

void CudaDevices::start(int device) {
  set_current(device);
  check(cudaFree(nullptr), "starting the GPU");
}

void CudaDevices::set_current(int device) { check(cudaSetDevice(device), "cudaSetDevice"); }

int CudaDevices::current() {
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  return device;
}

int CudaDevices::enter(int device) { return DeviceGuard::enter(device); }
void CudaDevices::leave(int device, int before) noexcept { DeviceGuard::leave(device, before); }

void CudaDevices::wait_until_idle(int device, const void*) noexcept {
  try {
    const DeviceGuard current(device);
    cudaDeviceSynchronize();
  } catch (const RuntimeFailure&) {
    // A GPU that is lost has nothing to be waited for.
  }
}

void* CudaDevices::allocate_pinned(Size bytes) {
  void* memory = nullptr;
  check(cudaMallocHost(&memory, static_cast<std::size_t>(bytes)), "cudaMallocHost");
  return memory;
}

void CudaDevices::free_pinned(void* memory) noexcept { cudaFreeHost(memory); }

void CudaDevices::register_kernels(bool recorded) {
  register_library_kernels();
  if (recorded) register_profiled_library_kernels();
}

std::shared_ptr<wire::Access> CudaDevices::make_access(int device, const wire::Place& place, const wire::Room& room) {
  return std::make_shared<GpuAccess>(device, place, room);
}

std::unique_ptr<world::LoadedKernels> CudaDevices::load_kernels(const std::vector<int>& devices, bool several_nodes) {
  if (several_nodes) {
    register_nodes_library_kernels();
    if (!lacks_queues(queues_).empty()) log_line(LogLevel::kWarn, [&] { return lacks_queues(queues_); });
  }
  auto kernels = std::make_unique<Kernels>(several_nodes);
  for (const int device : devices) {
    set_current(device);
    kernels->load();
  }
  kernels->set_sms(describe(devices.front()).gpu.sm_count);
  return kernels;
}

void CudaDevices::check_fused_gemm(int device, const Gemm& gemm) {
  const DeviceGuard current(device);
  cuda::check_fused_gemm(gemm);
}

std::unique_ptr<world::DeviceStream> CudaDevices::make_own_stream(int device) {
  return std::make_unique<CudaStream>(device);
}

std::unique_ptr<world::DeviceStream> CudaDevices::make_stream(const world::StreamUse& use, world::Profiler* profiler) {
  return std::make_unique<CudaStream>(use, of_cuda(profiler));
}

std::unique_ptr<world::DeviceStream> CudaDevices::borrow_stream(const world::StreamUse& use, void* native,
                                                                world::Profiler* profiler) {
  return std::make_unique<CudaStream>(use, of_cuda(profiler), static_cast<cudaStream_t>(native));
}

Size CudaDevices::clock_mail_bytes() const { return sizeof(Mail); }

std::unique_ptr<world::Profiler> CudaDevices::make_profiler(const world::ProfilerSetup& setup) {
  return std::make_unique<Profiler>(setup);
}

}  // namespace tandem::cuda
