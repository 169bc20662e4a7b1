#pragma once
/// How a proxy reaches the memory of a PE's GPU: by copies in two streams of its own, one for each direction. Words in
/// memory of the host have the number of the last copy that is complete, so no copy is waited for alone. It launches no
/// kernel, and allocates all that it needs with the world, so it gets on beside kernels that wait.

#include <array>
#include <vector>

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
  std::size_t most_readings() const override { return kReadings; }
  wire::Reading read(const std::byte* from, Size bytes) override;
  bool is_read(const wire::Reading& reading) override;
  void release(const wire::Reading& reading) override;
  void write(std::byte* to, View data) override;
  Epoch value_of(const Signal& word) override;
  void change(Signal& word, SignalOp op, Epoch value) override;
  std::uint64_t mark_writes() override;
  bool are_written(std::uint64_t mark) override;
  void finish() override;
  wire::KernelRequests* kernel_requests() override { return &requests_; }

  /// Returns the way of this PE's kernels to the proxy.
  const MailLink& mail() const { return mail_; }

 private:
  /// Memory of the host that the GPU reaches.
  struct Pinned {
    MailSlot slots[kMailSlots];
    MailProgress progress;
    alignas(64) std::uint64_t read;     ///< the last reading that is complete
    alignas(64) std::uint64_t written;  ///< the last mark before which all writes are complete
    alignas(64) Epoch value;            ///< of a word that was read
  };
  static constexpr int kReadings = 16;
  static constexpr int kSections = 4;
  static constexpr Size kMessagesOfSection = 4;

  void allocate();
  void free_all() noexcept;
  /// Returns pinned memory for data on its way to the GPU.
  std::byte* stage(Size bytes);
  void store_behind(cudaStream_t stream, const std::uint64_t* word, std::uint64_t value);

  const int device_;
  const Size most_;  // bytes of a message
  Pinned* pinned_ = nullptr;
  std::byte* read_to_ = nullptr;                              // kReadings messages
  std::vector<std::byte*> free_;                              // parts of it
  std::byte* write_from_ = nullptr;                           // kSections sections
  std::array<std::uint64_t, kSections> marks_of_sections_{};  // behind the writes from each
  std::size_t section_ = 0;                                   // that is in use
  Size used_ = 0;                                             // bytes of it
  std::uint64_t reads_ = 0;                                   // that have begun
  std::uint64_t marks_ = 0;
  bool is_marked_ = true;  // no write follows the last mark
  cudaStream_t reading_ = nullptr;
  cudaStream_t writing_ = nullptr;
  MailLink mail_;
  wire::KernelRequests requests_;
};

}  // namespace tandem::cuda
