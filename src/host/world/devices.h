#pragma once
/// The CPUs of this computer as devices of worlds: as many devices as a process may have PEs.

#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "host/processors.h"
#include "host/world/memory.h"
#include "host/world/profiler.h"
#include "host/world/task_queue.h"
#include "world/device/devices.h"

namespace tandem::host {

/// The model of every computer: all PEs choose alike.
const Machine& host_model();

class HostDevices : public world::Devices {
 public:
  /// The most PEs of one process.
  static constexpr int kMostPes = 256;

  DeviceKind kind() const override { return DeviceKind::kHost; }
  std::string name() const override { return "host"; }
  std::string name_of(int device) const override;
  int count() override { return kMostPes; }
  int most_sharing() const override { return 1; }
  void require_any() override {}
  Machine describe(int device) override;
  bool has_early_launch(int) override { return false; }
  bool has_mailbox() const override { return true; }
  std::chrono::microseconds search_of_proxy(int pes) const override { return search_of_proxy(pes, processors()); }
  /// Returns the same for so many processors. A proxy and its thread that receives take none that a PE needs.
  static std::chrono::microseconds search_of_proxy(int pes, int of) {
    return std::chrono::microseconds(of > 3 * pes ? 100 : 0);
  }
  void wake_waits(const world::Context& context) noexcept override;
  int share_of(int sms, int) const override { return sms; }
  Bytes exclusive_id(int) override { return {}; }

  void start(int) override {}
  void set_current(int) override {}
  int current() override { return -1; }
  int enter(int) override { return 0; }
  void leave(int, int) noexcept override {}
  void wait_until_idle(int device, const void* world) noexcept override;

  void* allocate_pinned(Size bytes) override { return ::operator new(static_cast<std::size_t>(bytes)); }
  void free_pinned(void* memory) noexcept override { ::operator delete(memory); }
  world::DeviceMemory& memory() override { return memory_; }

  void register_kernels(bool) override {}
  std::unique_ptr<world::LoadedKernels> load_kernels(const std::vector<int>& devices, bool several_nodes) override;
  void check_fused_gemm(int device, const Gemm& gemm) override;

  std::unique_ptr<world::DeviceStream> make_own_stream(int device) override;
  std::unique_ptr<world::DeviceStream> make_stream(const world::StreamUse& use, world::Profiler* profiler) override;
  /// `native` is a TaskQueue, or null for the device's default queue.
  std::unique_ptr<world::DeviceStream> borrow_stream(const world::StreamUse& use, void* native,
                                                     world::Profiler* profiler) override;

  Size clock_mail_bytes() const override { return sizeof(Signal); }
  std::unique_ptr<world::Profiler> make_profiler(const world::ProfilerSetup& setup) override;

 private:
  /// A queue and the worlds that have used it.
  struct Queue {
    std::shared_ptr<TaskQueue> tasks;
    std::set<const void*> worlds;
  };

  std::shared_ptr<TaskQueue> make_queue(const world::StreamUse& use);
  void forget_ended(int device);

  HostMemory memory_;
  std::mutex mutex_;
  std::map<int, std::vector<Queue>> queues_;  // by device; a closed queue stays until it is empty
  std::map<int, TaskQueue*> defaults_;
};

}  // namespace tandem::host
