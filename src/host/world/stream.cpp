#include "host/world/stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>

#include "base/cpu/long_copy.h"
#include "host/grid.h"
#include "host/processors.h"
#include "host/watchdog.h"
#include "host/world/devices.h"

namespace tandem::host {

namespace {

/// Set once.
class HostEvent final : public detail::EventState {
 public:
  void set() {
    const std::lock_guard lock(mutex_);
    is_set_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_set_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_set_ = false;
};

void copy_by(const GridThreads& threads, std::byte* to, const std::byte* from, Size bytes) {
  constexpr Size kLeast = Size{256} << 10;  // of a thread: waking one for less takes longer than the copy
  const auto most = static_cast<int>(min(threads.most, bytes / kLeast));
  const auto copy_part = [&](int part, int parts) {
    const Range range = split(bytes, parts, 64)[part];
    if (bytes >= cpu::kLongCopy)
      cpu::copy_past_caches(to + range.begin, from + range.begin, range.size());
    else
      std::memcpy(to + range.begin, from + range.begin, static_cast<std::size_t>(range.size()));
  };
  most > 1 ? threads.crew->run(most, copy_part) : copy_part(0, 1);
}

/// The life of work that is no grid, recorded as one block. It does nothing without `noted`.
class RecordedLife {
 public:
  explicit RecordedLife(RecordedWork* noted) {
    if (noted != nullptr) records_.emplace(noted->records, 0);
  }
  BlockRecords* records() const { return records_ ? &*records_ : nullptr; }
  void add(const cuda::Record& record) const {
    if (records_) records_->add(record);
  }

 private:
  mutable std::optional<BlockRecords> records_;
};

std::uint64_t pattern(int from, int to, Size word, int round) {
  std::uint64_t bits = static_cast<std::uint64_t>(word) * 0x9E3779B97F4A7C15U;
  bits ^= static_cast<std::uint64_t>(from) << 48 ^ static_cast<std::uint64_t>(to) << 32;
  return round == 0 ? bits : ~bits;
}

/// Where PE `on` keeps what PE `from` has written to it.
std::uint64_t* region(const world::SelfTest& test, int on, int from) {
  return reinterpret_cast<std::uint64_t*>(test.base + on * test.stride) + from * world::kSelfTestWords;
}

std::uint32_t wrong_words(const world::SelfTest& test, int on, int from) {
  std::uint32_t wrong = 0;
  for (Size i = 0; i < world::kSelfTestWords; ++i)
    wrong += region(test, on, from)[i] != pattern(from, on, i, test.round) ? 1 : 0;
  return wrong;
}

}  // namespace

/// PEs share the processors of their computer.
GridThreads HostStream::threads() { return {&queue_->crew(), use_.pes > 0 ? std::max(1, processors() / use_.pes) : 1}; }

RecordedWork* HostStream::note(std::string name, trace::SpanKind kind, const Team& team, int blocks, Size bytes) {
  if (profiler_ == nullptr) return nullptr;
  trace::GpuWork work;
  work.name = std::move(name);
  work.stream = use_.name;
  work.kind = kind;
  work.team = team;
  work.bytes = bytes;
  return profiler_->note(use_.pe, queue_.get(), std::move(work), blocks);
}

HostStream::~HostStream() {
  if (is_own_) queue_->close();
}

void HostStream::launch(const detail::KernelLaunch& kernel, const world::Context& context) {
  GridRequest request;
  request.name = kernel.name();
  request.blocks = kernel.grid.blocks;
  request.threads = kernel.grid.threads;
  request.context = context;
  request.machine = host_model().name;
  request.has_multicast = host_model().link.multicast;
  request.mailbox = use_.mailbox;
  request.body = kernel.on_cpu();
  request.by = threads();
  if (auto* const noted = note(kernel.name(), trace::SpanKind::kKernel, kernel.team, kernel.grid.blocks))
    request.records = &noted->records;
  add([request = std::move(request)] { run_grid(request); });
}

void HostStream::gemm(const Gemm& gemm, const world::Context& context) {
  check_gemm(gemm, use_.sms);
  if (gemm.m == 0 || gemm.n == 0) return;
  const int sms = gemm.sms > 0 ? gemm.sms : use_.sms;
  auto* const noted = note(fmt::format("gemm {}x{}x{}", gemm.m, gemm.n, gemm.k), trace::SpanKind::kKernel, context.team,
                           profiler_ != nullptr ? gemm_blocks(gemm, sms) : 0);
  add([gemm, context, sms, by = threads(), mailbox = use_.mailbox, noted] {
    run_gemm(context, gemm, sms, by, mailbox, noted != nullptr ? &noted->records : nullptr);
  });
}

void HostStream::copy(const world::Context& context, void* to, const void* from, Size bytes) {
  auto* const noted = note("copy", trace::SpanKind::kCopy, {}, 1, bytes);
  add([context, to, from, bytes, by = threads(), mailbox = use_.mailbox, noted] {
    const RecordedLife life(noted);
    if (is_far(mailbox, to, from)) return copy_far(context, to, from, bytes, *mailbox);
    copy_by(by, static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
  });
}

void HostStream::write_signal(const world::Context& context, Signal* word, const Epoch* from, Epoch value) {
  add([context, word, from, value, mailbox = use_.mailbox, noted = note_one("write_signal")] {
    const RecordedLife life(noted);
    const Epoch written =
        from == nullptr ? value : std::atomic_ref(*const_cast<Epoch*>(from)).load(std::memory_order_relaxed);
    life.add({now_ns(), 0, cuda::RecordKind::kSignal, 0, 0, 1, reinterpret_cast<std::uintptr_t>(word), written});
    host::write_signal(context, word, written, mailbox);
  });
}

void HostStream::wait_signal(const world::Context& context, const Signal* word, Epoch value) {
  add([context, word, value, noted = note_one("wait_signal")] {
    const RecordedLife life(noted);
    constexpr auto kGe = static_cast<std::uint8_t>(Cmp::kGe);
    const RecordedSpan span(life.records(),
                            {0, 0, cuda::RecordKind::kWait, 0, kGe, 1, reinterpret_cast<std::uintptr_t>(word), value});
    host::wait_signal(context, word, value);
  });
}

void HostStream::compare_calls(const world::Context& context, const detail::CallComparison& call) {
  const cuda::Comparison comparison{call.words, call.calls.words, call.signature, static_cast<Epoch>(call.count)};
  add([context, comparison, mailbox = use_.mailbox, noted = note_one("agree")] {
    const RecordedLife life(noted);
    host::compare_calls(context, comparison, mailbox);
  });
}

std::shared_ptr<detail::EventState> HostStream::record() {
  auto event = std::make_shared<HostEvent>();
  if (profiler_ != nullptr) profiler_->note_record(use_.pe, queue_.get(), event.get());
  queue_->add_always([event] { event->set(); });
  return event;
}

void HostStream::wait(const std::shared_ptr<detail::EventState>& event) {
  if (profiler_ != nullptr) profiler_->note_wait(use_.pe, queue_.get(), event.get());
  add([event] { static_cast<HostEvent&>(*event).wait(); });
}

void HostStream::synchronize() {
  queue_->wait_until_empty();
  if (const std::exception_ptr error = queue_->error()) std::rethrow_exception(error);
}

void HostStream::copy_host(void* to, const void* from, Size bytes) {
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

void HostStream::fill(void* memory, int byte, Size bytes) {
  std::memset(memory, byte, static_cast<std::size_t>(bytes));
}

void HostStream::end_waits(const world::Context& context) noexcept {
  host::end_waits(context, context.world_pe, cuda::kAbortedByHost);
}

void HostStream::write_patterns(const world::SelfTest& test) {
  for (int to = 0; to < test.pes; ++to)
    for (Size i = 0; i < world::kSelfTestWords; ++i) region(test, to, test.me)[i] = pattern(test.me, to, i, test.round);
}

void HostStream::read_patterns(const world::SelfTest& test, std::uint32_t* wrong) {
  for (int pe = 0; pe < test.pes; ++pe) {
    wrong[pe] += wrong_words(test, test.me, pe);
    wrong[test.pes + pe] += wrong_words(test, pe, test.me);
  }
}

}  // namespace tandem::host
