// Timelines of worlds on simulated GPUs of several hosts, which messages of libfabric join.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "bootstrap/processes.h"
#include "cuda/simulated/gpus.h"
#include "tandem/advanced/profile.h"
#include "tandem/advanced/unique_id.h"
#include "tandem/cuda.h"
#include "tandem/timeline.h"

namespace tandem::test {
namespace {

constexpr int kPes = 2;
/// By how much the timer of each PE's GPU is ahead of that of the PE before it.
constexpr std::int64_t kAheadNs = 1'000'000'000'000;
/// More than the clocks of a busy machine are apart after their comparison.
constexpr double kNearNs = 1e9;

/// Returns the copies of a PE, of which there is one.
trace::Span copy_of(const trace::Timeline& timeline, int pe) {
  std::vector<trace::Span> copies;
  std::copy_if(timeline.spans.begin(), timeline.spans.end(), std::back_inserter(copies), [&](const trace::Span& span) {
    return timeline.lanes[span.lane].pe == pe && timeline.label(span.label) == "copy";
  });
  if (copies.size() != 1) throw std::runtime_error("PE " + std::to_string(pe) + " has copied once");
  return copies[0];
}

/// The program of a PE in a process of its own. PE 1 copies after PE 0, by a clock that is far ahead.
TEST(RecordedGpus, DISABLED_OfOnePe) {
  const int pe = std::atoi(std::getenv("TANDEM_TEST_PE"));
  set_ahead(pe, (pe + 1) * kAheadNs);
  CudaOptions options;
  options.heap_bytes = Size{32} << 20;
  options.device = pe;
  options.record.on = true;
  CudaProcess process(UniqueId::from_text(std::getenv("TANDEM_TEST_ID")), pe, kPes, options);
  World& world = process.world();
  const auto data = world.heap().allocate<int>(1000, "data");
  Stream stream = world.make_stream("main");
  for (int turn = 0; turn < kPes; ++turn) {
    if (turn == pe) {
      stream.copy_async(data.local(), data.local() + 500, 2000);
      stream.synchronize();
    }
    world.barrier();
  }
  const trace::Timeline& timeline = process.timeline();
  if (pe != 0) return;
  const auto ns = [](trace::Time time) {
    return static_cast<double>(time) / static_cast<double>(trace::kMicrosecond) * 1e3;
  };
  const double begin = ns(copy_of(timeline, 0).begin);
  for (int other = 1; other < kPes; ++other) {
    EXPECT_NEAR(ns(copy_of(timeline, other).begin), begin, kNearNs) << other;
    const ProfileInfo::Clock& clock = process.profile_info().clocks[static_cast<std::size_t>(other)];
    EXPECT_NEAR(static_cast<double>(clock.offset_ns), static_cast<double>(other * kAheadNs), kNearNs) << other;
    EXPECT_GT(clock.bound_ns, 0) << other;
  }
  EXPECT_EQ(process.profile_info().lost_work, 0);
}

TEST(RecordedGpus, OfSeveralHostsHaveOneTimeline) {
  if (::dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL) == nullptr) GTEST_SKIP() << "libfabric1 is not installed";
  using bootstrap::testing::Process;
  const std::string id = UniqueId::create().text();
  std::vector<Process> all;
  for (int pe = 0; pe < kPes; ++pe)
    all.emplace_back(
        "/proc/self/exe",
        std::vector<std::string>{"--gtest_filter=RecordedGpus.DISABLED_OfOnePe", "--gtest_also_run_disabled_tests"},
        std::vector<std::string>{std::string("TANDEM_HOST=") + static_cast<char>('a' + pe), "TANDEM_HEARTBEAT_S=600",
                                 "TANDEM_TEST_ID=" + id, "TANDEM_TEST_PE=" + std::to_string(pe)});
  for (Process& process : all) {
    const auto ended = process.wait();
    EXPECT_EQ(ended.code, 0) << ended.output;
  }
}

}  // namespace
}  // namespace tandem::test
