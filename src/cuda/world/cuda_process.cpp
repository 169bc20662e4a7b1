// One process as a PE: what users hold of it.
#include <fmt/format.h>

#include <map>
#include <optional>

#include "base/log.h"
#include "bootstrap/rendezvous/split.h"
#include "cuda/device/register.h"
#include "cuda/driver/device_guard.h"
#include "cuda/memory/window.h"
#include "cuda/profile/recorded_kernels.h"
#include "cuda/world/processes.h"
#include "cuda/world/stream.h"
#include "cuda/world/world.h"
#include "cuda/world/world_recording.h"
#include "tandem/error.h"

namespace tandem {

namespace {

int device_of(const CudaOptions& options, int local_pe) {
  const int devices = cuda_devices();
  if (devices == 0) throw Unsupported("cuda backend: no GPU, or no NVIDIA driver");
  if (options.device < -1 || options.device >= devices)
    throw InvalidArgument(
        fmt::format("device: {} given, allowed are 0 to {} (-1: by local number)", options.device, devices - 1));
  if (local_pe < 0) throw InvalidArgument(fmt::format("local_pe: {} given, must not be negative", local_pe));
  return options.device >= 0 ? options.device : local_pe % devices;
}

void log_world(const CudaProcess& process) {
  log_line(LogLevel::kInfo, [&] {
    return fmt::format("world of {} PEs, processes; this one is PE {} on GPU {}", process.pes(), process.pe(),
                       process.device());
  });
}

void register_kernels(const CudaOptions& options) {
  cuda::register_library_kernels();
  if (options.record.on) cuda::register_profiled_library_kernels();
}

}  // namespace

struct CudaProcess::State {
  State(const UniqueId& id, int pe, int pes, int device, const CudaOptions& options)
      : processes(id, pe, pes, device, options), view(processes, pe), world(view) {}

  std::map<void*, cuda::Window> windows;  // goes last: peers use it until the processes have parted
  cuda::Processes processes;
  cuda::WorldView view;
  World world;
};

CudaProcess::CudaProcess(const UniqueId& id, int pe, int pes, const CudaOptions& options) {
  register_kernels(options);
  bootstrap::check_place(pe, pes);  // by which its GPU is chosen
  state_ = std::make_unique<State>(id, pe, pes, device_of(options, pe), options);
  log_world(*this);
}

CudaProcess::CudaProcess(const Placement& place, const CudaOptions& options) {
  register_kernels(options);
  state_ = std::make_unique<State>(place.id, place.pe, place.pes, device_of(options, place.local_pe), options);
  log_world(*this);
}

CudaProcess::~CudaProcess() {
  std::optional<cuda::DeviceGuard> current;
  try {
    if (state_->processes.session().is_here()) current.emplace(device());
  } catch (const RuntimeFailure&) {
    // Of a GPU that is lost nothing is left to be destroyed.
  }
  state_.reset();
}

void CudaProcess::leave() { state_->processes.leave(); }

World& CudaProcess::world() { return state_->world; }
int CudaProcess::pe() const { return state_->processes.me(); }
int CudaProcess::pes() const { return state_->processes.num_pes(); }
int CudaProcess::device() const { return state_->processes.pe(pe()).device; }

Stream CudaProcess::borrow_stream(void* cuda_stream) {
  return Stream(std::make_shared<cuda::CudaStream>(state_->processes, state_->processes.me(),
                                                   static_cast<cudaStream_t>(cuda_stream)));
}

Symm<std::byte> CudaProcess::register_buffer(void* pointer, Size bytes) {
  const cuda::DeviceGuard current(device());
  cuda::Window window(state_->processes, pointer, bytes, state_->windows.count(pointer) != 0);
  return state_->windows.emplace(pointer, std::move(window)).first->second.memory();
}

std::unique_ptr<CudaProcess> CudaProcess::split(int color, int key, const CudaOptions& options) {
  const auto place = bootstrap::split(state_->processes.session(), color, key);
  if (!place) return nullptr;
  CudaOptions on_this_gpu = options;
  on_this_gpu.device = device();
  return std::make_unique<CudaProcess>(*place, on_this_gpu);
}

void CudaProcess::abort(const std::string& why) {
  state_->processes.session().fail({bootstrap::FailureKind::kRuntimeFailure, "aborted: " + why});
}

void CudaProcess::record(bool on) { cuda::recording_of(state_->processes).turn(pe(), on); }

const trace::Timeline& CudaProcess::timeline() {
  cuda::Recording& recording = cuda::recording_of(state_->processes);
  state_->processes.gather_recordings();
  return recording.timeline();
}

const RecordingInfo& CudaProcess::recording_info() { return cuda::recording_of(state_->processes).info(); }

void CudaProcess::unregister_buffer(void* pointer) {
  const cuda::DeviceGuard current(device());
  const auto found = state_->windows.find(pointer);
  state_->processes.session().together("unregistration", [&] {
    if (found == state_->windows.end())
      throw InvalidArgument(fmt::format("registration: {} is not registered", pointer));
  });
  state_->windows.erase(found);
}

void CudaProcess::check() const { state_->processes.check_alive(); }

std::string CudaProcess::failure() const {
  const auto failure = state_->processes.session().failure();
  return failure ? failure->text : "";
}

}  // namespace tandem
