#include "world/pes/host_clocks.h"

#include <chrono>

namespace tandem::world {

namespace {

constexpr int kQuestions = 100;
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
  share(offsets);
  return offsets;
}

/// The other PE reads its clock between two meetings: behind the first, which PE 0 begins, and before the second, which
/// PE 0 ends.
trace::ClockOffset HostClocks::ask(int pe) {
  std::vector<trace::Exchange> exchanges;
  for (int i = 0; i < kQuestions; ++i) {
    trace::Exchange exchange;
    exchange.sent = now();
    meet(pe, 0);
    exchange.answered = meet(pe, 0);
    exchange.received = now();
    exchanges.push_back(exchange);
  }
  return trace::estimate_offset(exchanges, kStepNs);
}

void HostClocks::answer() {
  for (int i = 0; i < kQuestions; ++i) {
    meet(all_.me(), 0);
    meet(all_.me(), now());
  }
}

/// Returns the number that the PE gives when it meets PE 0.
std::int64_t HostClocks::meet(int pe, std::int64_t own) {
  const Team pair{0, pe, 2, all_.me() == 0 ? 0 : 1, 1};
  const auto bytes = Writer().u64(static_cast<std::uint64_t>(own)).result();
  return static_cast<std::int64_t>(Reader(all_.member().all_gather(bytes, "clocks of hosts", pair).back()).u64());
}

void HostClocks::share(std::vector<trace::ClockOffset>& offsets) {
  Writer own;
  for (const trace::ClockOffset& offset : offsets) own.u64(static_cast<std::uint64_t>(offset.offset));
  const Bytes first = all_.member().all_gather(own.result(), "clocks of hosts").front();
  Reader reader(first);
  for (trace::ClockOffset& offset : offsets) offset.offset = static_cast<std::int64_t>(reader.u64());
}

}  // namespace tandem::world
