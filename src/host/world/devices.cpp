#include "host/world/devices.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "host/bell.h"
#include "host/grid.h"
#include "host/world/stream.h"
#include "tandem/error.h"

namespace tandem::host {

namespace {

constexpr int kMostThreads = 1024;  // of a block
constexpr int kWarp = 32;

class Kernels final : public world::LoadedKernels {
 public:
  void check(const detail::KernelLaunch& kernel, int) const override {
    const Grid& grid = kernel.grid;
    if (grid.threads < kWarp || grid.threads > kMostThreads || grid.threads % kWarp != 0)
      throw InvalidArgument(fmt::format("launch of {}: {} threads a block given, allowed are multiples of {} up to {}",
                                        kernel.name(), grid.threads, kWarp, kMostThreads));
    if (const int most = host_model().gpu.sm_count * host_model().gpu.max_blocks_per_sm; grid.blocks > most)
      throw Unsupported(fmt::format("launch of {}: {} blocks given, the host holds {} of a PE at once", kernel.name(),
                                    grid.blocks, most));
  }
};

/// The profiler of a world of CPU PEs is always this backend's.
HostProfiler* of_host(world::Profiler* profiler) { return static_cast<HostProfiler*>(profiler); }

}  // namespace

/// Blocks are fibers: more of them than CPUs cost little.
const Machine& host_model() {
  static const Machine machine = load_machine("host");
  return machine;
}

std::string HostDevices::name_of(int) const { return "the host's CPUs"; }

Machine HostDevices::describe(int) { return host_model(); }

void HostDevices::wake_waits(const world::Context& context) noexcept { ring(context, context.world_pe); }

void HostDevices::wait_until_idle(int device, const void* world) noexcept {
  std::vector<std::shared_ptr<TaskQueue>> its;
  {
    const std::lock_guard lock(mutex_);
    for (const Queue& queue : queues_[device])
      if (world == nullptr || queue.worlds.contains(world)) its.push_back(queue.tasks);
  }
  for (const auto& queue : its) queue->wait_until_empty();
  forget_ended(device);
}

/// Their threads end meanwhile.
void HostDevices::forget_ended(int device) {
  std::vector<Queue> ended;
  const std::lock_guard lock(mutex_);
  auto& all = queues_[device];
  const auto is_over = [](const Queue& queue) { return queue.tasks->is_closed() && queue.tasks->is_empty(); };
  std::copy_if(all.begin(), all.end(), std::back_inserter(ended), is_over);
  std::erase_if(all, is_over);
}

std::unique_ptr<world::LoadedKernels> HostDevices::load_kernels(const std::vector<int>&, bool) {
  return std::make_unique<Kernels>();
}

void HostDevices::check_fused_gemm(int, const Gemm& gemm) { check_gemm(gemm, host_model().gpu.sm_count); }

std::shared_ptr<TaskQueue> HostDevices::make_queue(const world::StreamUse& use) {
  forget_ended(use.device);
  auto queue = std::make_shared<TaskQueue>();
  const std::lock_guard lock(mutex_);
  queues_[use.device].push_back({queue, {use.world}});
  return queue;
}

std::unique_ptr<world::DeviceStream> HostDevices::make_own_stream(int device) {
  world::StreamUse use;
  use.device = device;
  return std::make_unique<HostStream>(std::move(use), std::make_shared<TaskQueue>(), true);
}

std::unique_ptr<world::DeviceStream> HostDevices::make_stream(const world::StreamUse& use, world::Profiler* profiler) {
  return std::make_unique<HostStream>(use, make_queue(use), true, of_host(profiler));
}

std::unique_ptr<world::DeviceStream> HostDevices::borrow_stream(const world::StreamUse& use, void* native,
                                                                world::Profiler* profiler) {
  const std::lock_guard lock(mutex_);
  auto& all = queues_[use.device];
  TaskQueue*& own = defaults_[use.device];
  if (native == nullptr && own == nullptr) own = all.emplace_back(Queue{std::make_shared<TaskQueue>(), {}}).tasks.get();
  const void* const asked = native == nullptr ? own : native;
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Queue& queue) { return queue.tasks.get() == asked; });
  if (found == all.end())
    throw InvalidArgument(fmt::format("stream: {} given, allowed are streams of this PE and NULL", native));
  found->worlds.insert(use.world);
  return std::make_unique<HostStream>(use, found->tasks, false, of_host(profiler));
}

std::unique_ptr<world::Profiler> HostDevices::make_profiler(const world::ProfilerSetup& setup) {
  return std::make_unique<HostProfiler>(setup);
}

}  // namespace tandem::host

namespace tandem::world {

/// The devices stay for worlds that are destroyed at the program's end. A child of fork has none of the threads that
/// belong to its parent's streams, so it has devices of its own.
Devices& host_devices() {
  struct OfProcess {
    const ::pid_t process = ::getpid();
    host::HostDevices devices;
  };
  static std::atomic<OfProcess*> all{new OfProcess};
  OfProcess* found = all;
  if (found->process == ::getpid()) return found->devices;
  auto made = std::make_unique<OfProcess>();
  return (all.compare_exchange_strong(found, made.get()) ? made.release() : found)->devices;
}

}  // namespace tandem::world
