#pragma once
/// How a proxy reaches the memory of a PE's GPU: by copies in two streams of its own, one for each direction. Words in
/// memory of the host have the number of the last copy that is complete, so no copy is waited for alone. It launches no
/// kernel, and allocates all that it needs with the world, so it gets on beside kernels that wait. Long data is copied
/// to the GPU from where the message has arrived.

#include <array>
#include <vector>

#include "base/cuda_names.h"
#include "wire/access.h"
#include "wire/endpoint.h"

namespace tandem::cuda {

class GpuAccess final : public wire::Access {
 public:
  /// `room` is that of the endpoint whose messages are read and written.
  GpuAccess(int device, const wire::Place& place, wire::Room room);
  ~GpuAccess() override;
  GpuAccess(const GpuAccess&) = delete;
  GpuAccess& operator=(const GpuAccess&) = delete;

  void start() override;
  std::size_t most_readings() const override { return kReadings; }
  wire::Reading read(const std::byte* from, Size bytes) override;
  bool is_read(const wire::Reading& reading) override;
  void release(const wire::Reading& reading) override;
  bool write(std::byte* to, View data) override;
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
    MailRing ring;
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
  /// Copies data on its way to the GPU to pinned memory, and returns the copy.
  const std::byte* stage(View data);
  /// Returns whether data is part of a message that may stay in use.
  bool has_arrived_here(View data) const;
  void store_behind(cudaStream_t stream, const std::uint64_t* word, std::uint64_t value);

  const int device_;
  const wire::Room room_;
  const Size most_;             // bytes of a message
  bool is_registered_ = false;  // the memory where messages arrive is pinned
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
