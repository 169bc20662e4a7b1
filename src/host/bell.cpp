#include "host/bell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

#include "host/words.h"
#include "tandem/impl/cuda/stall.h"

namespace tandem::host {

namespace {

constexpr long kLongestSleepNs = 1'000'000;

volatile std::uint32_t& bell_of(const cuda::Context& context, int pe) { return cuda::wait_words(context, pe)->bell; }

/// Calls the futex operation for a word that other processes may share. Returns whether it succeeded.
bool futex(volatile std::uint32_t& word, int operation, std::uint32_t value, const timespec* timeout) {
  return syscall(SYS_futex, const_cast<std::uint32_t*>(&word), operation, value, timeout, nullptr, 0) == 0;
}

}  // namespace

int owner_of(const cuda::Context& context, const void* address) {
  const auto from_first =
      reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(context.abort_on_pe0);
  if (context.world_pes == 1)
    return context.abort_stride == 0 || from_first < static_cast<std::uintptr_t>(context.abort_stride) ? 0 : -1;
  const std::uintptr_t pe = from_first / static_cast<std::uintptr_t>(context.abort_stride);
  return pe < static_cast<std::uintptr_t>(context.world_pes) ? static_cast<int>(pe) : -1;
}

void ring(const cuda::Context& context, int pe) {
  full_fence();
  volatile std::uint32_t& bell = bell_of(context, pe);
  if (cuda::peek(bell) == 0) return;
  cuda::poke(bell, 0U);
  futex(bell, FUTEX_WAKE, INT_MAX, nullptr);
}

void ring_owner(const cuda::Context& context, const void* word) {
  if (const int pe = owner_of(context, word); pe >= 0) ring(context, pe);
}

void set_bell(const cuda::Context& context) {
  cuda::poke(bell_of(context, context.world_pe), 1U);
  full_fence();
}

bool sleep_until_rung(const cuda::Context& context) {
  const timespec longest{0, kLongestSleepNs};
  return futex(bell_of(context, context.world_pe), FUTEX_WAIT, 1, &longest);
}

}  // namespace tandem::host
