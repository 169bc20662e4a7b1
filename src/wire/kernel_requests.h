#pragma once
/// The proxy's end of the ring through which kernels post requests (tandem/impl/cuda/mail/mail.h).

#include <atomic>
#include <optional>

#include "tandem/impl/cuda/mail/mail.h"
#include "wire/mailbox.h"

namespace tandem::wire {

class KernelRequests {
 public:
  /// Takes the ring and the progress, in memory that kernels reach, all zeros.
  KernelRequests(cuda::MailRing* ring, cuda::MailProgress* progress) : ring_(*ring), progress_(*progress) {}

  /// Returns the next request, if it is there.
  std::optional<Request> take();
  /// Tells kernels how far the proxy has come, in requests of kernels.
  void note(std::uint64_t sent, std::uint64_t answered);
  /// Returns how far requests have come, for reports. Any thread may call it.
  Requests requests() const;

 private:
  cuda::MailRing& ring_;
  cuda::MailProgress& progress_;
  std::uint64_t taken_ = 0;
};

}  // namespace tandem::wire
