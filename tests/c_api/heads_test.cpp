// merge_heads through the C API.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "c_api/simulated/process.h"

namespace tandem::test {
namespace {

const tandem_heads_problem kHeadsProblem{.max_batch = 1, .heads = 4, .head_size = 2, .type = TANDEM_F32, .base_two = 1};

TEST(Heads, MergesByTheirWeights) {
  run_in_c(2, [](CPeer& peer) {
    // PE 1 has twice the weight of PE 0, but its last head has no keys.
    const auto own = static_cast<float>(peer.pe);
    std::array<float, 8> partial{}, out{};
    partial.fill(4 * own);
    const std::array<float, 4> lse{own * 1.0F, own * 1.0F, own * 1.0F, peer.pe == 0 ? 0.0F : -INFINITY};
    tandem_heads_plan* plan = nullptr;
    tandem_heads_problem problem = kHeadsProblem;
    problem.all_heads = 1;
    ASSERT_EQ(unlike(tandem_heads_plan_create(&plan, peer.world, &problem), TANDEM_SUCCESS), "");
    const tandem_heads_run run{.batch = 1, .partial = partial.data(), .lse = lse.data(), .out = out.data()};
    EXPECT_EQ(unlike(tandem_heads_plan_run(plan, &run, peer.stream), TANDEM_SUCCESS), "");
    EXPECT_EQ(unlike(tandem_synchronize(peer.world, peer.stream), TANDEM_SUCCESS), "");
    EXPECT_NEAR(out[0], 8.0 / 3, 1e-5);  // 4 with the weight 1, and 0 with 1/2
    EXPECT_NEAR(out[5], 8.0 / 3, 1e-5);
    EXPECT_EQ(out[7], 0);
    EXPECT_EQ(unlike(tandem_heads_plan_destroy(plan), TANDEM_SUCCESS), "");
  });
}

TEST(Heads, WrongArgumentsAreNamed) {
  run_in_c(2, [](CPeer& peer) {
    tandem_heads_plan* plan = nullptr;
    tandem_heads_problem problem = kHeadsProblem;
    problem.base_two = 2;
    EXPECT_EQ(unlike(tandem_heads_plan_create(&plan, peer.world, &problem), kInvalid, "base_two: 2 given"), "");
    EXPECT_EQ(unlike(tandem_heads_plan_create(&plan, peer.world, nullptr), kInvalid, "problem: NULL given"), "");
    ASSERT_EQ(unlike(tandem_heads_plan_create(&plan, peer.world, &kHeadsProblem), TANDEM_SUCCESS), "");
    const tandem_heads_run run{.batch = 1, .partial = nullptr, .lse = nullptr, .out = nullptr};
    EXPECT_EQ(unlike(tandem_heads_plan_run(plan, &run, peer.stream), kInvalid, "partial: none given"), "");
    EXPECT_EQ(unlike(tandem_heads_plan_run(plan, nullptr, peer.stream), kInvalid, "run: NULL given"), "");
    EXPECT_EQ(unlike(tandem_world_destroy(peer.world), kInvalid, "1 plans of it are left"), "");
    EXPECT_EQ(unlike(tandem_heads_plan_destroy(plan), TANDEM_SUCCESS), "");
  });
}

}  // namespace
}  // namespace tandem::test
