// exchange_heads through the C API.
#include <gtest/gtest.h>

#include <array>

#include "c_api/simulated/process.h"

namespace tandem::test {
namespace {

constexpr std::array<size_t, 2> kSegments{1, 2};
const tandem_exchange_problem kExchangeProblem{
    .max_rows = 3, .segments = kSegments.data(), .num_tensors = 2, .type = TANDEM_I32};

/// Two tensors there and back.
TEST(Exchange, GoesThereAndBack) {
  run_in_c(2, [](CPeer& peer) {
    std::array<void*, 2> there{}, back{};
    std::array<std::array<int, 12>, 2> in{};
    for (size_t t = 0; t < 2; ++t) {
      EXPECT_EQ(unlike(tandem_alloc(peer.world, 48, &there[t]), TANDEM_SUCCESS), "");
      EXPECT_EQ(unlike(tandem_alloc(peer.world, 48, &back[t]), TANDEM_SUCCESS), "");
      for (int i = 0; i < 12; ++i) in[t][static_cast<size_t>(i)] = 1000 * peer.pe + 100 * static_cast<int>(t) + i;
    }
    tandem_exchange_plan *to_heads = nullptr, *to_rows = nullptr;
    tandem_exchange_problem problem = kExchangeProblem;
    ASSERT_EQ(unlike(tandem_exchange_plan_create(&to_heads, peer.world, &problem), TANDEM_SUCCESS), "");
    problem.to_rows = 1;
    ASSERT_EQ(unlike(tandem_exchange_plan_create(&to_rows, peer.world, &problem), TANDEM_SUCCESS), "");
    const std::array<const void*, 2> ins{in[0].data(), in[1].data()}, theres{there[0], there[1]};
    const tandem_exchange_run first{.rows = 3, .in = ins.data(), .out = there.data()};
    const tandem_exchange_run second{.rows = 3, .in = theres.data(), .out = back.data()};
    EXPECT_EQ(unlike(tandem_exchange_plan_run(to_heads, &first, peer.stream), TANDEM_SUCCESS), "");
    EXPECT_EQ(unlike(tandem_exchange_plan_run(to_rows, &second, peer.stream), TANDEM_SUCCESS), "");
    EXPECT_EQ(unlike(tandem_synchronize(peer.world, peer.stream), TANDEM_SUCCESS), "");
    // Row 2 of PE 1, segment of this PE: elements 2 * 2 + pe of the first tensor.
    EXPECT_EQ(static_cast<int*>(there[0])[3 + 2], 1000 + 2 * 2 + peer.pe);
    for (size_t t = 0; t < 2; ++t)
      for (size_t i = 0; i < 6 * kSegments[t]; ++i) EXPECT_EQ(static_cast<int*>(back[t])[i], in[t][i]);
    EXPECT_EQ(unlike(tandem_exchange_plan_destroy(to_heads), TANDEM_SUCCESS), "");
    EXPECT_EQ(unlike(tandem_exchange_plan_destroy(to_rows), TANDEM_SUCCESS), "");
  });
}

TEST(Exchange, WrongArgumentsAreNamed) {
  run_in_c(2, [](CPeer& peer) {
    tandem_exchange_plan* plan = nullptr;
    tandem_exchange_problem problem = kExchangeProblem;
    problem.num_tensors = 9;
    EXPECT_EQ(unlike(tandem_exchange_plan_create(&plan, peer.world, &problem), kInvalid, "num_tensors: 9 given"), "");
    problem.segments = nullptr;
    EXPECT_EQ(unlike(tandem_exchange_plan_create(&plan, peer.world, &problem), kInvalid, "segments: NULL given"), "");
    ASSERT_EQ(unlike(tandem_exchange_plan_create(&plan, peer.world, &kExchangeProblem), TANDEM_SUCCESS), "");
    tandem_exchange_run run{.rows = 3, .in = nullptr, .out = nullptr};
    EXPECT_EQ(unlike(tandem_exchange_plan_run(plan, &run, peer.stream), kInvalid, "in: NULL given"), "");
    std::array<int, 12> own{};
    const std::array<void*, 2> places{own.data(), own.data()};
    run.in = places.data();
    run.out = places.data();
    EXPECT_EQ(unlike(tandem_exchange_plan_run(plan, &run, peer.stream), kInvalid, "that peers do not reach"), "");
    EXPECT_EQ(unlike(tandem_exchange_plan_destroy(plan), TANDEM_SUCCESS), "");
  });
}

}  // namespace
}  // namespace tandem::test
