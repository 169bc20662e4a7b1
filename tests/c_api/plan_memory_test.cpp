// Heap memory of the plans of C calls, and its return.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "../../bindings/c/plans.h"
#include "c_api/simulated/memory.h"
#include "tandem/error.h"
#include "tandem/simulation.h"
#include "trace/temporary_folder.h"

namespace tandem::test {
namespace {

using c::Operation;
using c::Plans;

/// While it lives, reductions are rings, which have partial results as large as the call.
class Rings {
 public:
  Rings() {
    const std::string table = folder_ / "table.json";
    std::ofstream(table) << R"({"name": "t", "description": "made up", "machines": [], "groups": [
      {"op": "all_reduce", "nodes": "one", "source": "made up", "sizes": [{"algorithm": "ring"}]},
      {"op": "reduce_scatter", "nodes": "one", "source": "made up", "sizes": [{"algorithm": "ring"}]}]})";
    setenv("TANDEM_SELECTION", table.c_str(), 1);
  }
  ~Rings() { unsetenv("TANDEM_SELECTION"); }
  Rings(const Rings&) = delete;
  Rings& operator=(const Rings&) = delete;

 private:
  trace::testing::TemporaryFolder folder_;
};

constexpr Size kMiB = Size{1} << 20;

TEST(SizeClasses, AreNearLargeCalls) {
  for (const auto& [bytes, expected] : {std::pair{Size{0}, Size{64} << 10},
                                        {Size{64} << 10, Size{64} << 10},
                                        {(Size{64} << 10) + 1, Size{256} << 10},
                                        {65 * kMiB, 256 * kMiB},
                                        {256 * kMiB, 256 * kMiB},
                                        {256 * kMiB + 1, 288 * kMiB},
                                        {4608 * kMiB, 4608 * kMiB},
                                        {4608 * kMiB + 1, 5120 * kMiB}})
    EXPECT_EQ(Plans::size_class(bytes), expected) << bytes;
}

/// Plans of two PEs of which each has room for 1 GiB.
void with_plans(const std::function<void(Plans&, Stream&, World&)>& program) {
  const Rings rings;
  SimOptions options;
  options.heap_bytes = 1024 * kMiB;
  options.phantom = true;
  Simulation(load_machine("h200x4"), 2, options).run([&](World& world) {
    Plans plans(world, {});
    Stream stream = world.make_stream("caller's");
    program(plans, stream, world);
  });
}

constexpr Operation kAllReduce{Collective::kAllReduce, DType::kF32, ReduceOp::kSum, 0};
constexpr Operation kReduceScatter{Collective::kReduceScatter, DType::kF32, ReduceOp::kSum, 0};

CollectivePlan& plan_of(Plans& plans, const Operation& what, Size bytes, const Plans::Caller& caller) {
  const Size per_count = what.collective == Collective::kReduceScatter ? 8 : 4;
  return plans.plan(what, bytes / per_count, false, false, caller);
}

TEST(PlanMemory, OfLargeCallsIsThatOfTheLargest) {
  with_plans([](Plans& plans, Stream& stream, World&) {
    for (const Size mib : {520, 600, 700, 900, 300, 1000}) {
      const CollectivePlan& plan = plan_of(plans, kAllReduce, mib * kMiB, {stream, false});
      EXPECT_EQ(&plan_of(plans, kAllReduce, 257 * kMiB, {stream, false}), &plan) << mib;
    }
    EXPECT_THROW(plan_of(plans, kAllReduce, 1025 * kMiB, {stream, false}), OutOfMemory);
    EXPECT_NO_THROW(plan_of(plans, kAllReduce, 520 * kMiB, {stream, false}));
  });
}

TEST(PlanMemory, OfOtherCallsIsGivenBackWhereItIsWanted) {
  with_plans([](Plans& plans, Stream& stream, World&) {
    for (int i = 0; i < 2; ++i)
      for (const Operation& what : {kAllReduce, kReduceScatter})
        EXPECT_NO_THROW(plan_of(plans, what, 600 * kMiB, {stream, false}));
  });
}

TEST(PlanMemory, ThatGraphsHoldStays) {
  with_plans([](Plans& plans, Stream& stream, World&) {
    CollectivePlan& held = plan_of(plans, kAllReduce, 300 * kMiB, {stream, false});
    EXPECT_EQ(&plan_of(plans, kAllReduce, 300 * kMiB, {stream, true}), &held);
    plan_of(plans, kAllReduce, 400 * kMiB, {stream, false});
    // 300 are held, and 400 are given back: 700 are there.
    EXPECT_NO_THROW(plan_of(plans, kReduceScatter, 680 * kMiB, {stream, false}));
    EXPECT_THROW(plan_of(plans, kReduceScatter, 750 * kMiB, {stream, false}), OutOfMemory);
    plan_of(plans, kReduceScatter, 680 * kMiB, {stream, true});
    EXPECT_THROW(plan_of(plans, kAllReduce, 400 * kMiB, {stream, false}), OutOfMemory);
  });
}

/// Nothing is waited for within a capture.
TEST(PlanMemory, IsNotGivenBackByCapturedCalls) {
  with_plans([](Plans& plans, Stream& stream, World&) {
    CollectivePlan& plan = plan_of(plans, kAllReduce, 600 * kMiB, {stream, false});
    EXPECT_THROW(plan_of(plans, kReduceScatter, 600 * kMiB, {stream, true}), OutOfMemory);
    EXPECT_EQ(&plan_of(plans, kAllReduce, 600 * kMiB, {stream, false}), &plan);
  });
}

/// Calls before may still use what is given back.
TEST(PlanMemory, IsGivenBackWhenTheCallsBeforeHaveEnded) {
  with_plans([](Plans& plans, Stream& stream, World& world) {
    const auto copied = world.heap().allocate<std::byte>(200 * kMiB, "copied");
    const auto waits = [&](const Operation& what, Size mib) {
      stream.copy_async(copied.local(), copied.local() + 100 * kMiB, 100 * kMiB);
      plan_of(plans, what, mib * kMiB, {stream, false});
      const double after = world.time_us();
      stream.synchronize();
      return after == world.time_us();
    };
    EXPECT_FALSE(waits(kAllReduce, 300)) << "nothing is given back";
    EXPECT_TRUE(waits(kAllReduce, 400)) << "a larger call";
    EXPECT_TRUE(waits(kReduceScatter, 600)) << "no room";
  });
}

TEST(PlanMemory, SufficesForCallsOfManyKinds) {
  const Rings rings;
  const auto program = [](CPeer& peer) {
    constexpr size_t count = size_t{4} << 20;  // four plans of 16 MiB and two buffers are more than 81 MiB
    const Memory in(peer, true, words(peer.pe, 0, count)), out(peer, true, Words(count));
    Words sum = words(0, 0, count);
    const Words other = words(1, 0, count);
    for (size_t i = 0; i < count; ++i) sum[i] += other[i];
    for (const auto op : {TANDEM_SUM, TANDEM_MAX, TANDEM_MIN, TANDEM_PROD, TANDEM_SUM}) {
      EXPECT_EQ(
          unlike(tandem_all_reduce(peer.world, in.at(), out.at(), count, TANDEM_U32, op, peer.stream), TANDEM_SUCCESS),
          "");
    }
    EXPECT_EQ(out.contents(), sum);
  };
  run_in_c(2, program, {.heap_bytes = kMiB});
}

}  // namespace
}  // namespace tandem::test
