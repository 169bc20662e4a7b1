// Programs of PEs on several hosts whose work is recorded.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "tandem/advanced/profile.h"
#include "tandem/timeline.h"
#include "world/cases.h"
#include "world/peer.h"

namespace tandem::test {

namespace {

/// More than the clocks of a busy machine are apart after their comparison, and much less than the tests' clocks
/// before.
constexpr double kNearUs = 1e5;

/// A signal that goes round: each PE waits for that of the PE before it. PE 0 begins.
struct GoRound {
  struct Args {
    Signals word;
  };
  template <class Block>
  static void run(Block& block, const Args& a) {
    const int next = (block.pe() + 1) % block.num_pes();
    if (block.pe() > 0) block.wait(a.word, 1, 1);
    block.signal(a.word, 1, next);
    if (block.pe() == 0) block.wait(a.word, 1, 1);
  }
};

/// Returns the last operation of this kind on a PE.
trace::Span last_of(const trace::Timeline& timeline, int pe, trace::SpanKind kind) {
  const trace::Span* last = nullptr;
  for (const trace::Span& span : timeline.spans)
    if (timeline.lanes[span.lane].pe == pe && span.kind == kind && (last == nullptr || span.begin > last->begin))
      last = &span;
  expect(last != nullptr, fmt::format("an operation of kind {} on PE {}", static_cast<int>(kind), pe));
  return *last;
}

/// All that happens on other PEs lies between the first signal and the last wait of PE 0. TANDEM_TEST_AHEAD_S says by
/// how much the clock of the last host is ahead of PE 0's.
void record_between_hosts(const PeerPlace& place) {
  WorldOptions recorded = options();
  recorded.record.on = true;
  WorldProcess process(place.id, place.pe, place.pes, recorded);
  World& world = process.world();
  const Signals word = world.heap().signals(1, "word");
  Stream stream = world.make_stream("main");
  world.barrier();
  stream.launch<GoRound>({1, 32}, {word});
  stream.synchronize();
  check_all_reduce(world, 40'000);  // much is recorded
  const trace::Timeline& timeline = process.timeline();
  if (place.pe != 0) return;
  trace::Timeline round = timeline;
  std::erase_if(round.spans, [&](const trace::Span& span) { return !timeline.label(span.label).ends_with(" word"); });
  const auto us = [](trace::Time time) { return static_cast<double>(time) / static_cast<double>(trace::kMicrosecond); };
  const double begin = us(last_of(round, 0, trace::SpanKind::kSignal).begin);
  const double end = us(last_of(round, 0, trace::SpanKind::kWait).end);
  for (int pe = 1; pe < place.pes; ++pe) {
    const double wait = us(last_of(round, pe, trace::SpanKind::kWait).end);
    expect(begin - kNearUs < wait && wait < end + kNearUs,
           fmt::format("the wait of PE {} ends between {} and {} us, not at {}", pe, begin, end, wait));
    expect(us(last_of(round, pe, trace::SpanKind::kSignal).begin) > wait - 1, "PE's signal after its wait");
  }
  const char* const ahead = std::getenv("TANDEM_TEST_AHEAD_S");
  const double expected_us = ahead == nullptr ? 0 : std::stod(ahead) * 1e6;
  const ProfileInfo::Clock& last = process.profile_info().clocks.back();
  expect(std::abs(static_cast<double>(last.offset_ns) / 1e3 - expected_us) < kNearUs,
         fmt::format("a clock {} us ahead, not {} ns", expected_us, last.offset_ns));
  expect(last.bound_ns > 0 && process.profile_info().clocks.front().bound_ns == 0, "clocks of hosts that are compared");
  expect(process.profile_info().lost_work == 0, "all work");
}

}  // namespace

const Programs& programs_of_recording() {
  static const Programs all{{"record_between_hosts", record_between_hosts}};
  return all;
}

}  // namespace tandem::test
