#pragma once
/// The proxy's end of the ring through which kernels post letters (tandem/impl/cuda/mail/mail.h).

#include <atomic>
#include <optional>

#include "tandem/impl/cuda/mail/mail.h"
#include "wire/mailbox.h"

namespace tandem::wire {

class KernelLetters {
 public:
  /// Takes kMailSlots slots and the progress, in memory that kernels reach, all zeros.
  KernelLetters(cuda::MailSlot* slots, cuda::MailProgress* progress) : slots_(slots), progress_(*progress) {}

  /// Returns the next letter, if it is there.
  std::optional<Letter> take();
  /// Tells kernels how far the proxy has come, in letters of kernels.
  void note(std::uint64_t sent, std::uint64_t answered);
  /// Returns how far letters have come, for reports. Any thread may call it.
  Letters letters() const;

 private:
  cuda::MailSlot* const slots_;
  cuda::MailProgress& progress_;
  std::uint64_t taken_ = 0;
};

}  // namespace tandem::wire
