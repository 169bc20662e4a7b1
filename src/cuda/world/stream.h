#pragma once
/// A PE's CUDA stream.

#include <cuda_runtime.h>

#include <optional>
#include <string>

#include "cuda/device/plain_gemms.h"
#include "cuda/profile/recording.h"
#include "cuda/world/pes.h"
#include "cuda/world/shared_queue.h"
#include "tandem/stream.h"

namespace tandem::cuda {

struct CudaEvent final : detail::EventState {
  cudaEvent_t event = nullptr;
  ~CudaEvent() override {
    if (event != nullptr) cudaEventDestroy(event);
  }
};

/// Its PE's GPU is made current for each call: the caller's thread may have another one.
class CudaStream : public detail::StreamBackend {
 public:
  CudaStream(Pes& pes, int pe, std::string name);
  /// Work for a stream that somebody else made and keeps until this object is gone.
  CudaStream(Pes& pes, int pe, cudaStream_t stream);
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  void launch(detail::KernelLaunch kernel) override;
  void gemm(const Gemm& gemm, const Team& team) override;
  bool adds_up(const Gemm& gemm) const override;
  void copy(void* to, const void* from, Size bytes) override;
  void write_signal(Signal* word, const Epoch* from, Epoch value) override;
  void wait_signal(const Signal* word, Epoch value) override;
  std::shared_ptr<detail::EventState> record() override;
  void wait(const std::shared_ptr<detail::EventState>& event) override;
  void synchronize() override;
  void agree(const detail::Agreement& agreement, const Team& team) override;
  Team world_team() const override;
  void* native() override { return stream_; }

 private:
  /// Null where this PE's work is not recorded at present.
  Recording* recording() const;
  RecordedStream named() const { return {pe_, stream_, name_}; }

  int device() const { return pes_.pe(pe_).device; }

  Pes& pes_;
  int pe_;
  std::string name_;
  cudaStream_t stream_ = nullptr;
  bool is_own_ = true;
  std::optional<SharedQueue> queue_;  // where PEs share GPUs
  PlainGemms plain_gemms_;
};

}  // namespace tandem::cuda
