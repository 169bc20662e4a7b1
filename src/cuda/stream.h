#pragma once
/// A PE's CUDA stream.

#include <cuda_runtime.h>

#include <string>

#include "cuda/gemm.h"
#include "cuda/world.h"
#include "tandem/stream.h"

namespace tandem::detail {

struct EventState {
  cudaEvent_t event = nullptr;
  ~EventState() {
    if (event != nullptr) cudaEventDestroy(event);
  }
};

}  // namespace tandem::detail

namespace tandem::cuda {

class CudaStream : public detail::StreamBackend {
 public:
  CudaStream(Threads& threads, int pe, std::string name);
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  void launch(detail::KernelLaunch kernel) override;
  void gemm(const Gemm& gemm, const Team& team) override;
  void copy(void* to, const void* from, Size bytes) override;
  void write_signal(Signal* word, const Epoch* from, Epoch value) override;
  void wait_signal(const Signal* word, Epoch value) override;
  std::shared_ptr<detail::EventState> record() override;
  void wait(const std::shared_ptr<detail::EventState>& event) override;
  void synchronize() override;
  Team world_team() const override;
  void* native() override { return stream_; }

 private:
  void check_resident(const detail::KernelLaunch& kernel) const;

  Threads& threads_;
  int pe_;
  std::string name_;
  cudaStream_t stream_ = nullptr;
  PlainGemms plain_gemms_;
};

}  // namespace tandem::cuda
