// Published bugs of other people's kernels, rewritten here. Each is found, and the report names the missing order. The
// repaired program is clean.

#include <gtest/gtest.h>

#include "check/conformance.h"
#include "tandem/advanced/check_matcher.h"

namespace tandem::check_test {

namespace {

using ::testing::HasSubstr;

CheckOptions options(int pes) {
  CheckOptions result;
  result.pes = pes;
  result.schedules = 30;
  return result;
}

template <class Body>
CheckResult check_body(int pes, const Body& body) {
  return check(
      [&](World& world) {
        const Env env = make_env(world);
        Stream stream = world.make_stream("main");
        stream.launch<Kernel<Body>>({1, 512}, {body, env});
        stream.synchronize();
      },
      options(pes));
}

const Finding* find(const CheckResult& result, const std::string& kind) {
  for (const Finding& finding : result.findings)
    if (finding.kind == kind) return &finding;
  return nullptr;
}

/// A progress flag that is polled with relaxed loads before the tensor-memory engine reads what it announces.
struct PollThenReturn {
  struct Args {
    Signals progress;
    bool acquires;
  };
  template <class Block>
  static void run(Block& block, const Args& a) {
    if (block.pe() != 1) return;
    if (a.acquires)
      block.wait(a.progress, 1, 1);
    else
      while (block.load_scalar(&a.progress.local()->value) < 1) continue;
  }
};

struct SendRows {
  struct Args {
    Symm<float> rows;
    const float* own;
    Size count;
    Signals progress;
  };
  template <class Block>
  static void run(Block& block, const Args& a) {
    if (block.pe() == 0) block.put_signal(a.rows, a.own, a.count, a.progress, 1, 1);
  }
};

CheckResult gemm_behind_a_flag(bool acquires) {
  return check(
      [acquires](World& world) {
        SymmetricHeap& heap = world.heap();
        constexpr Size m = 16, n = 16, k = 16;
        const auto rows = heap.allocate<float>(m * k, "rows");
        auto* const own = heap.allocate_local<float>(m * k, "own");
        auto* const b = heap.allocate_local<float>(n * k, "b");
        auto* const c = heap.allocate_local<float>(m * n, "c");
        world.copy_in(b, std::vector<float>(n * k).data(), n * k * Size{sizeof(float)});
        const auto progress = heap.signals(1, "progress");
        Stream stream = world.make_stream("main");
        stream.launch<SendRows>({1, 512}, {rows, own, m * k, progress});
        stream.launch<PollThenReturn>({1, 32}, {progress, acquires});
        Gemm gemm;
        gemm.m = m;
        gemm.n = n;
        gemm.k = k;
        gemm.type = gemm.out_type = DType::kF32;
        gemm.tile_m = gemm.tile_n = 16;
        gemm.rows = {m, 1, 1};
        gemm.a = rows.local();
        gemm.b = b;
        gemm.destination = GemmLocal{c};
        if (world.pe() == 1) stream.gemm(gemm, world.team());
        stream.synchronize();
      },
      options(2));
}

TEST(PublishedBugs, RelaxedPollBeforeTheTensorMemoryEngineReads) {
  const CheckResult result = gemm_behind_a_flag(false);
  const Finding* const data = find(result, "read_before_write_is_visible");
  ASSERT_NE(data, nullptr) << result.text();
  bool says_acquire = false;
  bool names_engine = false;
  for (const Finding& finding : result.findings) {
    says_acquire = says_acquire || finding.missing.find("acquires nothing") != std::string::npos;
    for (const CheckSite& site : finding.sites)
      names_engine = names_engine || site.operation == "load by the tensor-memory engine";
  }
  EXPECT_TRUE(says_acquire) << result.text();
  EXPECT_TRUE(names_engine) << result.text();
  EXPECT_THAT(gemm_behind_a_flag(true), is_clean());
}

/// Chunks announced by signal ADD: with two under way, a count may pass a value before anybody looks.
template <bool kCountsAll>
CheckResult chunks_counted() {
  return check_body(2, [](auto& block, const Env& e) {
    constexpr Size half = kN / 2;
    if (block.pe() == 0)
      for (Size chunk = 0; chunk < 2; ++chunk)
        block.put_signal_nbi(e.data + chunk * half, e.local + chunk * half, half, e.words, 1, 1, SignalOp::kAdd);
    if (block.pe() == 1)
      for (Size chunk = 0; chunk < 2; ++chunk) {
        block.signal_wait_until(e.words, Cmp::kEq, kCountsAll ? 2 : static_cast<Epoch>(chunk) + 1);
        block.store(e.result, {0, half},
                    block.template load<float>(e.data.local(), {chunk * half, (chunk + 1) * half}));
      }
    block.quiet();
  });
}

TEST(PublishedBugs, AddWithTwoChunksInFlightAndAnEqualityWait) {
  const CheckResult result = chunks_counted<false>();
  const Finding* const hang = find(result, "hang");
  ASSERT_NE(hang, nullptr) << result.text();
  EXPECT_EQ(hang->signal, "words[0] on PE 1");
  EXPECT_THAT(hang->missing, HasSubstr("is 2, the wait needs == 1: it grew past that value"));
  EXPECT_THAT(chunks_counted<true>(), is_clean());
}

/// A buffer that all peers read, filled again in each round: a barrier after the writes, and one after the reads.
template <bool kBefore>
CheckResult barrier_sides() {
  return check_body(2, [](auto& block, const Env& e) {
    for (int round = 0; round < 3; ++round) {
      if (kBefore) barrier_all(block, e.barrier);
      write(block, e.data.local());
      barrier_all(block, e.barrier);
      read(block, e, e.data.on(1 - block.pe()));
    }
  });
}

TEST(PublishedBugs, BarrierOnOneSideOfAReusedBuffer) {
  const CheckResult result = barrier_sides<false>();
  const Finding* const race = find(result, "write_before_read_is_over");
  ASSERT_NE(race, nullptr) << result.text();
  EXPECT_THAT(race->missing, HasSubstr("the writer must know that the read is over"));
  EXPECT_EQ(race->sites[0].operation, "load");
  EXPECT_EQ(race->sites[1].operation, "store");
  EXPECT_THAT(barrier_sides<true>(), is_clean());
}

}  // namespace

}  // namespace tandem::check_test
