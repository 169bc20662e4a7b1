/// The fused GEMM on CPUs, as the operators use it: every form, mover, direction, reduction and finish, exact.

#include <gtest/gtest.h>

#include "operators/operator_epilogue.h"
#include "support/host_pes.h"

namespace tandem {
namespace {

using test::EpilogueCase;
using test::OperatorWithEpilogue;

void check_case(const EpilogueCase& c, int pes, int threads) {
  SCOPED_TRACE(::testing::Message() << c << " on " << pes << " PEs");
  test::HostPes(pes, {.timeout_s = 60, .arrival_timeout_s = 120, .threads = threads}).run([&](World& world) {
    constexpr Size kRoom = Size{12} << 20;
    OperatorWithEpilogue one(world, c, world.heap().allocate_local<std::byte>(kRoom, "matrices"), kRoom);
    Stream stream = world.make_stream("main");
    for (int run = 0; run < 3; ++run) {
      const Size m = run == 1 ? 2 * c.options.m / 3 : c.options.m;
      one.fill(run, m);
      one.enqueue(stream, m);
      stream.synchronize();
      EXPECT_EQ(one.wrong(run, m), 0) << "PE " << world.pe() << " in run " << run;
    }
    world.barrier();
  });
}

void check_all(int pes, Size n, Size k, int tile_n, int threads = 1) {
  for (EpilogueCase& c : test::epilogue_cases(97, n, k, true)) {
    c.options.tile_m = 16;
    c.options.tile_n = tile_n;
    check_case(c, pes, threads);
  }
}

TEST(HostOperators, BlockScalesAreExact) {
  for (EpilogueCase& c : test::block_scale_cases(21, 320, 288)) {
    c.options.tile_m = 16;
    c.options.tile_n = 64;
    check_case(c, 2, 1);
  }
}

TEST(HostOperators, ExactOnOnePe) { check_all(1, 41, 37, 16); }
TEST(HostOperators, ExactOnTwoPes) { check_all(2, 48, 48, 32); }
TEST(HostOperators, ExactOnTwoPesOfThreeThreads) { check_all(2, 48, 48, 32, 3); }
TEST(HostOperators, ExactOnThreePes) { check_all(3, 48, 48, 32); }
TEST(HostOperators, ExactOnFivePes) { check_all(5, 80, 80, 16); }

}  // namespace
}  // namespace tandem
