#pragma once
/// The GPUs of this process, as worlds see them.

#include "cuda/driver/hardware_queues.h"
#include "cuda/memory/memory.h"
#include "world/device/devices.h"

namespace tandem::cuda {

class CudaDevices final : public world::Devices {
 public:
  CudaDevices();

  DeviceKind kind() const override { return DeviceKind::kGpu; }
  std::string name() const override { return "cuda"; }
  std::string name_of(int device) const override;
  int count() override;
  /// Only the number of SMs limits the PEs that share a GPU. A grid that does not fit is refused at its launch.
  int most_sharing() const override { return 4096; }
  void require_any() override;
  bool has_mailbox() const override { return true; }
  std::shared_ptr<wire::Access> make_access(int device, const wire::Place& place, const wire::Room& room) override;
  Machine describe(int device) override;
  bool has_early_launch(int device) override;
  int share_of(int sms, int sharing) const override;
  Bytes exclusive_id(int device) override;
  std::string lacks_sharing(int device) override;

  void start(int device) override;
  void set_current(int device) override;
  int current() override;
  int enter(int device) override;
  void leave(int device, int before) noexcept override;
  void wait_until_idle(int device, const void* world) noexcept override;

  void* allocate_pinned(Size bytes) override;
  void free_pinned(void* memory) noexcept override;
  world::DeviceMemory& memory() override { return memory_; }

  void register_kernels(bool recorded) override;
  std::unique_ptr<world::LoadedKernels> load_kernels(const std::vector<int>& devices, bool several_nodes) override;
  void check_fused_gemm(int device, const Gemm& gemm) override;

  std::unique_ptr<world::DeviceStream> make_own_stream(int device) override;
  std::unique_ptr<world::DeviceStream> make_stream(const world::StreamUse& use, world::Profiler* profiler) override;
  std::unique_ptr<world::DeviceStream> borrow_stream(const world::StreamUse& use, void* native,
                                                     world::Profiler* profiler) override;

  Size clock_mail_bytes() const override;
  std::unique_ptr<world::Profiler> make_profiler(const world::ProfilerSetup& setup) override;

 private:
  CudaMemory memory_;
  QueueSetting queues_;
};

}  // namespace tandem::cuda
