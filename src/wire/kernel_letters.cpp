#include "wire/kernel_letters.h"

#include <algorithm>

namespace tandem::wire {

namespace {

Letter letter_of(const cuda::MailSlot& slot) {
  Letter letter;
  letter.kind = static_cast<Letter::Kind>(slot.head & 0xFF);
  letter.op = static_cast<SignalOp>(slot.head >> 8 & 0xFF);
  letter.has_word = (slot.head >> 16 & 1) != 0;
  letter.pe = static_cast<int>(slot.head >> 32);
  letter.local = reinterpret_cast<void*>(slot.local);
  letter.offset = static_cast<Size>(slot.offset);
  letter.bytes = static_cast<Size>(slot.bytes);
  letter.word = static_cast<Size>(slot.word);
  letter.value = slot.value;
  return letter;
}

}  // namespace

std::optional<Letter> KernelLetters::take() {
  cuda::MailSlot& slot = slots_[(taken_ + 1) % cuda::kMailSlots];
  if (std::atomic_ref(slot.number).load(std::memory_order_acquire) != taken_ + 1) return std::nullopt;
  ++taken_;
  return letter_of(slot);
}

void KernelLetters::note(std::uint64_t sent, std::uint64_t answered) {
  std::atomic_ref(progress_.sent).store(sent, std::memory_order_release);
  std::atomic_ref(progress_.answered).store(answered, std::memory_order_release);
}

Letters KernelLetters::letters() const {
  Letters all;
  for (std::uint64_t i = 0; i < cuda::kMailSlots; ++i)
    all.posted = std::max(all.posted, std::atomic_ref(slots_[i].number).load(std::memory_order_relaxed));
  all.sent = std::atomic_ref(progress_.sent).load(std::memory_order_relaxed);
  all.answered = std::atomic_ref(progress_.answered).load(std::memory_order_relaxed);
  return all;
}

}  // namespace tandem::wire
