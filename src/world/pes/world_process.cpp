// One process as a PE: the class that users hold.
#include <fmt/format.h>

#include <map>
#include <optional>

#include "base/log.h"
#include "bootstrap/rendezvous/split.h"
#include "tandem/error.h"
#include "world/memory/window.h"
#include "world/pes/processes.h"
#include "world/pes/profiler.h"
#include "world/pes/stream.h"

namespace tandem {

namespace {

using world::CurrentDevice;
using world::Devices;

int device_of(Devices& devices, const WorldOptions& options, int local_pe) {
  devices.require_any();
  const int count = devices.count();
  if (options.device < -1 || options.device >= count)
    throw InvalidArgument(
        fmt::format("device: {} given, allowed are 0 to {} (-1: by local number)", options.device, count - 1));
  if (local_pe < 0) throw InvalidArgument(fmt::format("local_pe: {} given, must not be negative", local_pe));
  return options.device >= 0 ? options.device : local_pe % count;
}

Devices& chosen_devices(const WorldOptions& options) {
  Devices& devices = world::devices_of(options.kind);
  devices.register_kernels(options.record.on);
  return devices;
}

void log_world(const WorldProcess& process, const Devices& devices) {
  log_line(LogLevel::kInfo, [&] {
    return fmt::format("world of {} PEs, processes; this one is PE {} on {}", process.pes(), process.pe(),
                       devices.name_of(process.device()));
  });
}

}  // namespace

struct WorldProcess::State {
  State(Devices& devices, const UniqueId& id, int pe, int pes, int device, const WorldOptions& options)
      : processes(devices, id, pe, pes, device, options), view(processes, pe), world(view) {}

  std::map<void*, world::Window> windows;  // goes last: peers use it until the processes have parted
  world::Processes processes;
  world::WorldView view;
  World world;
};

WorldProcess::WorldProcess(const UniqueId& id, int pe, int pes, const WorldOptions& options) {
  Devices& devices = chosen_devices(options);
  bootstrap::check_place(pe, pes);  // by which its device is chosen
  state_ = std::make_unique<State>(devices, id, pe, pes, device_of(devices, options, pe), options);
  log_world(*this, devices);
}

WorldProcess::WorldProcess(const Placement& place, const WorldOptions& options) {
  Devices& devices = chosen_devices(options);
  const int device = device_of(devices, options, place.local_pe);
  state_ = std::make_unique<State>(devices, place.id, place.pe, place.pes, device, options);
  log_world(*this, devices);
}

WorldProcess::WorldProcess(WorldProcess&& other) noexcept = default;

WorldProcess::~WorldProcess() {
  if (state_ == nullptr) return;
  std::optional<CurrentDevice> current;
  try {
    if (state_->processes.member().is_own_process()) current.emplace(state_->processes.devices(), device());
  } catch (const RuntimeFailure&) {
    // A GPU that is lost has nothing left to be destroyed.
  }
  state_.reset();
}

void WorldProcess::leave() { state_->processes.leave(); }

World& WorldProcess::world() { return state_->world; }
int WorldProcess::pe() const { return state_->processes.me(); }
int WorldProcess::pes() const { return state_->processes.num_pes(); }
DeviceKind WorldProcess::kind() const { return state_->processes.devices().kind(); }
int WorldProcess::device() const { return state_->processes.pe(pe()).device; }

Stream WorldProcess::borrow_stream(void* native) {
  world::Processes& all = state_->processes;
  auto stream = all.devices().borrow_stream(all.use(all.me(), ""), native, all.profiler());
  return Stream(std::make_shared<world::PeStream>(all, all.me(), std::move(stream)));
}

Symm<std::byte> WorldProcess::register_buffer(void* pointer, Size bytes) {
  const bool is_far = state_->processes.devices().kind() == DeviceKind::kGpu &&
                      state_->processes.proxy(state_->processes.me()) != nullptr;
  if (state_->processes.has_hosts() || is_far)
    throw Unsupported(
        "registration: a world of several hosts has no registered memory, nor has one of several nodes of GPUs; use "
        "World::heap");
  const CurrentDevice current(state_->processes.devices(), device());
  world::Window window(state_->processes, pointer, bytes, state_->windows.count(pointer) != 0);
  return state_->windows.emplace(pointer, std::move(window)).first->second.memory();
}

std::unique_ptr<WorldProcess> WorldProcess::split(int color, int key, const WorldOptions& options) {
  const auto place = bootstrap::split(state_->processes.member(), color, key);
  if (!place) return nullptr;
  WorldOptions on_this_device = options;
  on_this_device.kind = kind();
  on_this_device.device = device();
  return std::make_unique<WorldProcess>(*place, on_this_device);
}

void WorldProcess::abort(const std::string& why) {
  // Here at once: the next call of this process finds the world ended.
  state_->processes.member().fail_here({bootstrap::FailureKind::kRuntimeFailure, "aborted: " + why});
}

void WorldProcess::record(bool on) { world::profiler_of(state_->processes).turn(pe(), on); }

const trace::Timeline& WorldProcess::timeline() {
  world::Profiler& profiler = world::profiler_of(state_->processes);
  state_->processes.gather_profiles();
  return profiler.timeline();
}

const ProfileInfo& WorldProcess::profile_info() { return world::profiler_of(state_->processes).info(); }

void WorldProcess::unregister_buffer(void* pointer) {
  const CurrentDevice current(state_->processes.devices(), device());
  const auto found = state_->windows.find(pointer);
  state_->processes.member().all_or_none("unregistration", [&] {
    if (found == state_->windows.end())
      throw InvalidArgument(fmt::format("registration: {} is not registered", pointer));
  });
  state_->windows.erase(found);
}

void WorldProcess::check() const { state_->processes.check_alive(); }

WorldProcess::MemoryUse WorldProcess::memory_use() const { return state_->processes.memory_use(); }

void WorldProcess::suspend() {
  const CurrentDevice current(state_->processes.devices(), device());
  state_->processes.suspend();
}

void WorldProcess::resume() {
  const CurrentDevice current(state_->processes.devices(), device());
  state_->processes.resume();
}

std::string WorldProcess::waits() const { return state_->processes.waits(); }

std::string WorldProcess::failure() const {
  const auto failure = state_->processes.member().failure();
  return failure ? failure->text : "";
}

}  // namespace tandem
