#pragma once
/// How a proxy reaches the memory of a PE's GPU: by copies in a stream of its own. It launches no kernel, and allocates
/// all that it needs with the world, so it gets on beside kernels that wait.

#include "base/cuda_names.h"
#include "wire/access.h"

namespace tandem::cuda {

class GpuAccess final : public wire::Access {
 public:
  /// `most` is the largest number of bytes that are read or written at once.
  GpuAccess(int device, const wire::Place& place, Size most);
  ~GpuAccess() override;
  GpuAccess(const GpuAccess&) = delete;
  GpuAccess& operator=(const GpuAccess&) = delete;

  void start() override;
  View read(const std::byte* from, Size bytes) override;
  void write(std::byte* to, View data) override;
  Epoch value_of(const Signal& word) override;
  void change(Signal& word, SignalOp op, Epoch value) override;
  void finish() override;
  wire::KernelLetters* kernel_letters() override { return &letters_; }

  /// Returns the way of this PE's kernels to the proxy.
  const MailLink& mail() const { return mail_; }

 private:
  /// Memory of the host that the GPU reaches.
  struct Pinned {
    MailSlot slots[kMailSlots];
    MailProgress progress;
  };

  void allocate(Size most);
  void release() noexcept;

  const int device_;
  const Size room_;  // bytes of `outgoing_`
  Pinned* pinned_ = nullptr;
  std::byte* read_to_ = nullptr;
  std::byte* outgoing_ = nullptr;  // data on its way to the GPU
  Size used_ = 0;                  // bytes of it that copies may still read
  cudaStream_t stream_ = nullptr;
  MailLink mail_;
  wire::KernelLetters letters_;
};

}  // namespace tandem::cuda
