// all_reduce_norm through the C API: right results, refused problems and refused runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "c_api/simulated/process.h"

namespace tandem::test {
namespace {

constexpr Size kNormHidden = 6;
constexpr Size kRows = 4;

const tandem_norm_problem kNormProblem{
    .hidden = kNormHidden, .max_rows = kRows, .type = TANDEM_F32, .norm = TANDEM_RMS_NORM, .residual = 1, .sum = 1};

/// Buffers of a PE, all in the heap. A row of each PE's input is all ones, the residual 1, the weight 3.
struct Buffers {
  explicit Buffers(CPeer& peer) {
    for (float** buffer : {&in, &residual, &weight, &out, &sum})
      EXPECT_EQ(
          unlike(tandem_alloc(peer.world, kRows * kNormHidden * 4, reinterpret_cast<void**>(buffer)), TANDEM_SUCCESS),
          "");
    set(in, 1);
    set(residual, 1);
    set(weight, 3);
  }
  static void set(float* buffer, float value) { std::fill_n(buffer, kRows * kNormHidden, value); }
  static float last_of(const float* buffer, Size rows) { return buffer[rows * kNormHidden - 1]; }
  tandem_norm_run run(size_t rows) const {
    return {.rows = rows, .in = in, .residual = residual, .weight = weight, .out = out, .sum = sum};
  }

  float *in = nullptr, *residual = nullptr, *weight = nullptr, *out = nullptr, *sum = nullptr;
};

TEST(Norms, SumAndNormAreRight) {
  for (const int sharded : {0, 1})
    run_in_c(3, [&](CPeer& peer) {
      const Buffers buffers(peer);
      tandem_norm_problem problem = kNormProblem;
      problem.sharded_residual = sharded;
      tandem_norm_plan* plan = nullptr;
      ASSERT_EQ(unlike(tandem_norm_plan_create(&plan, peer.world, &problem), TANDEM_SUCCESS), "");
      const tandem_norm_run run = buffers.run(3);
      EXPECT_EQ(unlike(tandem_norm_plan_run(plan, &run, peer.stream), TANDEM_SUCCESS), "");
      EXPECT_EQ(unlike(tandem_synchronize(peer.world, peer.stream), TANDEM_SUCCESS), "");
      EXPECT_EQ(buffers.last_of(buffers.sum, sharded == 1 ? 1 : 3), 4);
      EXPECT_NEAR(buffers.last_of(buffers.out, 3), 3, 1e-6);
      EXPECT_EQ(unlike(tandem_norm_plan_destroy(plan), TANDEM_SUCCESS), "");
    });
}

// A PE that sends more than 2 MiB in one shot takes two shots, whose buffers peers access.
TEST(Norms, ManyRowsInAnyMemory) {
  constexpr Size kMany = 400;
  constexpr Size kWide = 1024;
  for (const bool quantised : {false, true})
    run_in_c(3, [&](CPeer& peer) {
      tandem_norm_problem problem = kNormProblem;
      problem.hidden = kWide;
      problem.max_rows = kMany;
      problem.quantisation = quantised ? TANDEM_SCALE_PER_ROW : TANDEM_NOT_QUANTISED;
      std::vector<float> in(kMany * kWide, 1), residual(kMany * kWide, 1), weight(kWide, 3);
      std::vector<float> out(kMany * kWide), sum(kMany * kWide), scales(kMany);
      tandem_norm_run run{.rows = kMany,
                          .in = in.data(),
                          .residual = residual.data(),
                          .weight = weight.data(),
                          .out = out.data(),
                          .sum = sum.data(),
                          .scales = quantised ? scales.data() : nullptr};
      tandem_norm_plan* plan = nullptr;
      ASSERT_EQ(unlike(tandem_norm_plan_create(&plan, peer.world, &problem), TANDEM_SUCCESS), "");
      EXPECT_EQ(unlike(tandem_norm_plan_run(plan, &run, peer.stream), kInvalid, "in: memory that peers do not reach"),
                "");
      EXPECT_EQ(unlike(tandem_norm_plan_destroy(plan), TANDEM_SUCCESS), "");
      problem.any_memory = 1;
      ASSERT_EQ(unlike(tandem_norm_plan_create(&plan, peer.world, &problem), TANDEM_SUCCESS), "");
      EXPECT_EQ(unlike(tandem_norm_plan_run(plan, &run, peer.stream), TANDEM_SUCCESS), "");
      EXPECT_EQ(unlike(tandem_synchronize(peer.world, peer.stream), TANDEM_SUCCESS), "");
      EXPECT_EQ(sum.front(), 4);
      EXPECT_EQ(sum.back(), 4);
      if (quantised) {
        EXPECT_NEAR(scales.back(), 3.0 / 448, 1e-8);
      } else {
        EXPECT_NEAR(out.back(), 3, 1e-6);
      }
      run.sum = out.data();
      EXPECT_EQ(unlike(tandem_norm_plan_run(plan, &run, peer.stream), kInvalid, "buffers that overlap"), "");
      EXPECT_EQ(unlike(tandem_norm_plan_destroy(plan), TANDEM_SUCCESS), "");
    });
}

TEST(Norms, ProblemsThatCannotBe) {
  const auto refused = [](const std::function<void(tandem_norm_problem&)>& change, const char* part) {
    run_in_c(2, [&](CPeer& peer) {
      tandem_norm_problem problem = kNormProblem;
      change(problem);
      auto* plan = reinterpret_cast<tandem_norm_plan*>(&problem);
      EXPECT_EQ(unlike(tandem_norm_plan_create(&plan, peer.world, &problem), kInvalid, part), "");
      EXPECT_EQ(plan, nullptr);
    });
  };
  refused([](auto& p) { p.hidden = 0; }, "hidden: 0 given to all_reduce_norm, allowed are 1 to 1048576");
  refused([](auto& p) { p.max_rows = ~size_t{0}; }, "max_rows: 18446744073709551615 given");
  refused([](auto& p) { p.type = TANDEM_I32; }, "type: i32 given to all_reduce_norm, allowed are f32, f16 and bf16");
  refused([](auto& p) { p.norm = static_cast<tandem_norm>(3); }, "norm: 3 given, allowed is a tandem_norm, 0 to 2");
  refused([](auto& p) { p.quantisation = static_cast<tandem_quantisation>(-1); }, "quantisation: -1 given");
  refused([](auto& p) { p.quantisation = TANDEM_STATIC_SCALE; }, "scale: 0 given to all_reduce_norm, allowed are");
  refused([](auto& p) { p.epsilon = -1; }, "epsilon: -1 given");
  refused([](auto& p) { p.sum = 2; }, "sum: 2 given, allowed is 0 or 1");
  refused([](auto& p) { p.any_memory = 2; }, "any_memory: 2 given, allowed is 0 or 1");
}

TEST(Norms, RunsThatCannotBeLeaveTheNextOneRight) {
  run_in_c(2, [](CPeer& peer) {
    const Buffers buffers(peer);
    tandem_norm_plan* plan = nullptr;
    EXPECT_EQ(unlike(tandem_norm_plan_create(nullptr, peer.world, &kNormProblem), kInvalid, "plan: NULL given"), "");
    EXPECT_EQ(unlike(tandem_norm_plan_create(&plan, peer.world, nullptr), kInvalid, "problem: NULL given"), "");
    ASSERT_EQ(unlike(tandem_norm_plan_create(&plan, peer.world, &kNormProblem), TANDEM_SUCCESS), "");
    const auto refused = [&](const std::function<void(tandem_norm_run&)>& change, const char* part) {
      tandem_norm_run run = buffers.run(kRows);
      change(run);
      EXPECT_EQ(unlike(tandem_norm_plan_run(plan, &run, peer.stream), kInvalid, part), "");
    };
    refused([](auto& r) { r.rows = 5; }, "rows: 5 given to all_reduce_norm, allowed are 0 to 4");
    refused([](auto& r) { r.in = nullptr; }, "in: none given");
    refused([](auto& r) { r.weight = nullptr; }, "weight: none given");
    refused([&](auto& r) { r.bias = buffers.weight; }, "bias: given to all_reduce_norm, but the plan's options");
    refused([&](auto& r) { r.sum = buffers.out; }, "sum, out: buffers that overlap given to all_reduce_norm");
    EXPECT_EQ(unlike(tandem_norm_plan_run(plan, nullptr, peer.stream), kInvalid, "run: NULL given"), "");
    EXPECT_EQ(unlike(tandem_world_destroy(peer.world), kInvalid, "1 plans of it are left"), "");
    const tandem_norm_run run = buffers.run(kRows);
    EXPECT_EQ(unlike(tandem_norm_plan_run(plan, &run, peer.stream), TANDEM_SUCCESS), "");
    EXPECT_EQ(unlike(tandem_synchronize(peer.world, peer.stream), TANDEM_SUCCESS), "");
    EXPECT_EQ(buffers.last_of(buffers.sum, kRows), 3);
    EXPECT_EQ(unlike(tandem_norm_plan_destroy(plan), TANDEM_SUCCESS), "");
    EXPECT_EQ(unlike(tandem_norm_plan_destroy(plan), kInvalid, "allowed is a tandem_norm_plan that was made"), "");
  });
}

}  // namespace
}  // namespace tandem::test
