#include "world/pes/host_clocks.h"

#include <chrono>
#include <thread>

namespace tandem::world {

namespace {

constexpr std::uint64_t kQuestions = 100;
/// The clocks count nanoseconds.
constexpr double kStepNs = 1;

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

std::vector<trace::ClockOffset> HostClocks::compare() {
  const int size = all_.pes_of_host();
  std::vector<trace::ClockOffset> offsets;
  for (int first = 0; first < all_.num_pes(); first += size) {
    trace::ClockOffset offset;
    if (first > 0 && all_.me() == 0) offset = ask(first);
    if (first > 0 && all_.me() == first) answer();
    offsets.insert(offsets.end(), static_cast<std::size_t>(size), offset);
  }
  asked_ += kQuestions;
  share(offsets);
  return offsets;
}

/// The clock of the other PE is never 0, so an answer changes the word.
trace::ClockOffset HostClocks::ask(int pe) {
  std::vector<trace::Exchange> exchanges;
  for (std::uint64_t i = 1; i <= kQuestions; ++i) {
    word().store(0, std::memory_order_relaxed);
    trace::Exchange exchange;
    exchange.sent = now();
    set(pe, asked_ + i);
    exchange.answered = static_cast<std::int64_t>(await_other_than(0));
    exchange.received = now();
    exchanges.push_back(exchange);
  }
  return trace::estimate_offset(exchanges, kStepNs);
}

void HostClocks::answer() {
  for (std::uint64_t i = 1; i <= kQuestions; ++i) {
    await_other_than(asked_ + i - 1);
    set(0, static_cast<std::uint64_t>(now()));
  }
}

void HostClocks::share(std::vector<trace::ClockOffset>& offsets) {
  Writer own;
  for (const trace::ClockOffset& offset : offsets) own.u64(static_cast<std::uint64_t>(offset.offset));
  const Bytes first = all_.member().all_gather(own.result(), "clocks of hosts").front();
  Reader reader(first);
  for (trace::ClockOffset& offset : offsets) offset.offset = static_cast<std::int64_t>(reader.u64());
}

void HostClocks::set(int pe, std::uint64_t value) {
  wire::Request request;
  request.pe = pe;
  request.has_word = true;
  request.word = offset_;
  request.value = value;
  while (all_.proxy(all_.me())->mailbox().try_post(request) == 0) std::this_thread::yield();
}

std::uint64_t HostClocks::await_other_than(std::uint64_t before) {
  for (;;) {
    if (const std::uint64_t value = word().load(std::memory_order_acquire); value != before) return value;
    all_.check_alive();
    std::this_thread::yield();
  }
}

std::atomic_ref<std::uint64_t> HostClocks::word() const {
  const Segment& segment = all_.segment();
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(segment.base() + all_.me() * segment.stride() + offset_));
}

}  // namespace tandem::world
