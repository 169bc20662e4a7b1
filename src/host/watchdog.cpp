#include "host/watchdog.h"

#include <ctime>

#include "host/bell.h"
#include "host/grid.h"
#include "tandem/impl/cuda/stall.h"

namespace tandem::host {

namespace {

/// Ends a wait after an abort. The first such wait of a PE reports the word that it waited for.
void end_early(const cuda::Context& context, std::uint32_t by, const Awaited& awaited) {
  cuda::WaitReport& report = *context.report;
  cuda::poke(report.ended_by, by & ~cuda::kEndIsReported);
  if ((__atomic_fetch_or(context.abort, cuda::kEndIsReported, __ATOMIC_ACQ_REL) & cuda::kEndIsReported) != 0) return;
  report.ended.block = awaited.block;
  report.ended.word = awaited.word;
  report.ended.expected = awaited.expected;
  report.ended.found = awaited.found;
  __atomic_store_n(&report.ended.is_set, 1U, __ATOMIC_RELEASE);
}

}  // namespace

std::uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint32_t who_aborted(const cuda::Context& context) { return cuda::peek(*context.abort); }

bool is_skipped(const cuda::Context& context) {
  const std::uint32_t by = who_aborted(context);
  if (by != 0) cuda::poke(context.report->ended_by, by & ~cuda::kEndIsReported);
  return by != 0;
}

std::uint32_t abort_waits(const cuda::Context& context, std::uint32_t why, const Awaited& awaited) {
  const std::uint32_t by = static_cast<std::uint32_t>(context.world_pe) + 1;
  std::uint32_t first = 0;
  if (!__atomic_compare_exchange_n(context.abort, &first, by, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return first;
  cuda::WaitReport& report = *context.report;
  report.block = awaited.block;
  report.word = awaited.word;
  report.expected = awaited.expected;
  report.found = awaited.found;
  report.without_wait = cuda::pe_without_wait(context, now_ns());
  __atomic_store_n(&report.set, why, __ATOMIC_RELEASE);
  for (int pe = 0; pe < context.world_pes; ++pe)
    if (pe != context.world_pe) end_waits(context, pe, by);
  return 0;
}

bool is_wait_over(const cuda::Context& context, std::uint64_t begin, std::uint64_t now, const Awaited& awaited) {
  std::uint32_t by = who_aborted(context);
  if (by == 0) {
    if (now - begin < cuda::kLastsNs) return false;
    if (!cuda::is_stalled(context, begin, now) && now - begin < context.arrival_timeout_ns) return false;
    by = abort_waits(context, cuda::kTimedOut, awaited);
  }
  if (by != 0) end_early(context, by, awaited);
  return true;
}

void end_waits(const cuda::Context& context, int pe, std::uint32_t by) {
  std::uint32_t none = 0;
  auto* const abort = const_cast<std::uint32_t*>(&cuda::wait_words(context, pe)->abort);
  __atomic_compare_exchange_n(abort, &none, by, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
  ring(context, pe);
}

}  // namespace tandem::host
