#pragma once
/// A CUDA stream.

#include <optional>

#include "base/cuda_names.h"
#include "cuda/device/plain_gemms.h"
#include "cuda/profile/profiler.h"
#include "cuda/world/access.h"
#include "cuda/world/shared_queue.h"
#include "world/device/stream.h"

namespace tandem::cuda {

struct CudaEvent final : detail::EventState {
  cudaEvent_t event = nullptr;
  ~CudaEvent() override {
    if (event != nullptr) cudaEventDestroy(event);
  }
};

class CudaStream final : public world::DeviceStream {
 public:
  /// A stream for a PE's host alone. The GPU is current.
  explicit CudaStream(int device);
  /// `profiler`: null, or that of the world.
  CudaStream(world::StreamUse use, Profiler* profiler);
  /// A stream that somebody else made and keeps until this object is gone.
  CudaStream(world::StreamUse use, Profiler* profiler, cudaStream_t stream);
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  void launch(const detail::KernelLaunch& kernel, const Context& context) override;
  void gemm(const Gemm& gemm, const Context& context) override;
  bool adds_up(const Gemm& gemm) const override;
  void copy(const world::Context& context, void* to, const void* from, Size bytes) override;
  void write_signal(const Context& context, Signal* word, const Epoch* from, Epoch value) override;
  void wait_signal(const Context& context, const Signal* word, Epoch value) override;
  void compare_calls(const Context& context, const detail::CallComparison& comparison) override;
  std::shared_ptr<detail::EventState> record() override;
  void wait(const std::shared_ptr<detail::EventState>& event) override;
  void synchronize() override;
  void* native() override { return stream_; }

  void copy_host(void* to, const void* from, Size bytes) override;
  void fill(void* memory, int byte, Size bytes) override;
  void end_waits(const Context& context) noexcept override;
  void write_patterns(const world::SelfTest& test) override;
  void read_patterns(const world::SelfTest& test, std::uint32_t* wrong) override;

 private:
  /// Returns null if this PE's work is not recorded at present.
  Profiler* profiler() const { return profiler_ != nullptr && profiler_->is_on(use_.pe) ? profiler_ : nullptr; }
  ProfiledStream named() const { return {use_.pe, stream_, use_.name}; }
  /// Returns the way to the proxy; null in a world of one node.
  const MailLink* mail() const {
    return use_.access == nullptr ? nullptr : &static_cast<GpuAccess*>(use_.access)->mail();
  }
  bool is_far(const void* address) const { return use_.mailbox != nullptr && use_.mailbox->far_spot(address); }

  world::StreamUse use_;
  Profiler* profiler_ = nullptr;
  cudaStream_t stream_ = nullptr;
  bool is_own_ = true;
  std::optional<SharedQueue> queue_;  // where PEs share GPUs
  PlainGemms plain_gemms_;
};

}  // namespace tandem::cuda
