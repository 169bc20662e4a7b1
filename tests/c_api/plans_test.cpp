// Overlapped operators through the C API: plans that cannot be, runs that cannot be, and what is right beside them.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "c_api/simulated/process.h"
#include "tandem/numeric.h"

namespace tandem::test {
namespace {

/// "": the problem is refused on all of two PEs with such a text.
void refused(const std::function<void(tandem_problem&)>& change, const std::string& part,
             tandem_operator op = TANDEM_ALL_GATHER_GEMM) {
  run_in_c(2, [&](CPeer& peer) {
    tandem_problem problem{.m = 64, .n = 64, .k = 64, .type = TANDEM_BF16};
    change(problem);
    auto* plan = reinterpret_cast<tandem_plan*>(&problem);
    EXPECT_EQ(unlike(tandem_plan_create(&plan, peer.world, op, &problem), kInvalid, part), "");
    EXPECT_EQ(plan, nullptr);
  });
}

TEST(Plans, ProblemsThatCannotBe) {
  const size_t ns[] = {32, 33};
  refused([](tandem_problem& p) { p.n = 0; }, "n: 0 given, allowed is 1 or more");
  refused([](tandem_problem& p) { p.m = ~size_t{0}; }, "m: 18446744073709551615 given");
  refused([](tandem_problem& p) { p.type = tandem_dtype{}; }, "type: 0 given, allowed is a tandem_dtype, 1 to 12");
  refused([](tandem_problem& p) { p.type = TANDEM_I8; }, "type: i8 given");
  refused([](tandem_problem& p) { p.out_type = TANDEM_F32; }, "out_type: f32 given, allowed for bf16 is the same");
  refused([](tandem_problem& p) { p.out_type = static_cast<tandem_dtype>(99); }, "out_type: 99 given");
  refused([](tandem_problem& p) { p.b_layout = static_cast<tandem_layout>(2); }, "b_layout: 2 given");
  refused([](tandem_problem& p) { p.activation = static_cast<tandem_activation>(-1); }, "activation: -1 given");
  refused([](tandem_problem& p) { p.a_scale_per_row = 2; }, "a_scale_per_row: 2 given");
  refused([](tandem_problem& p) { p.b_scale_per_column = 1; }, "b_scale_per_column: given");
  refused([](tandem_problem& p) { p.shares_memory = 2; }, "shares_memory: 2 given, allowed is 0 or 1");
  refused([](tandem_problem& p) { p.block_scales = 1; }, "block_scales: given, allowed for fp8_e4m3 alone");
  refused([](tandem_problem& p) { p.fast_accumulation = 2; }, "fast_accumulation: 2 given, allowed is 0 or 1");
  refused([](tandem_problem& p) { p.fast_accumulation = 1; }, "fast_accumulation: given, allowed for fp8_e4m3 alone");
  refused([](tandem_problem& p) { p.num_b = 3; }, "num_b: 3 given, allowed is at most 1 where ns is NULL");
  refused([&](tandem_problem& p) { p.ns = ns, p.num_b = ~size_t{0}; }, "num_b: 18446744073709551615 given");
  refused([&](tandem_problem& p) { p.ns = ns, p.num_b = 2; }, "ns: 65 given, allowed is n, 64, in all");
  refused([&](tandem_problem& p) { p.ns = ns, p.num_b = 2; }, "ns: a list of 2 given", TANDEM_GEMM_ALL_REDUCE);
  refused([](tandem_problem&) {}, "op: 3 given, allowed is a tandem_operator, 0 to 2", static_cast<tandem_operator>(3));
}

TEST(Plans, NormsAndGatesThatCannotBe) {
  refused([](tandem_problem& p) { p.activation = TANDEM_SWIGLU, p.n = 48; }, "n: 48 given, allowed is with a gated");
  refused([](tandem_problem& p) { p.activation = static_cast<tandem_activation>(6); }, "activation: 6 given");
  refused([](tandem_problem& p) { p.type = p.out_type = TANDEM_E4M3, p.residual = 1; }, "out_type: fp8_e4m3 given");
  refused([](tandem_problem& p) { p.quantisation = TANDEM_SCALE_PER_ROW; }, "quantisation: row given");
  refused([](tandem_problem& p) { p.norm = static_cast<tandem_norm>(3); }, "norm: 3 given", TANDEM_GEMM_ALL_REDUCE);
  refused([](tandem_problem& p) { p.sum = 1, p.epsilon = -1; }, "epsilon: -1 given", TANDEM_GEMM_ALL_REDUCE);
  const char gates[16] = {};
  char to[32];
  EXPECT_EQ(tandem_interleave_gates(gates, gates, 12, 1, to), kInvalid);
  EXPECT_EQ(tandem_interleave_gates(gates, nullptr, 8, 1, to), kInvalid);
  EXPECT_EQ(tandem_interleave_gates(nullptr, nullptr, 0, 1, nullptr), TANDEM_SUCCESS);
}

TEST(Plans, GatesAreInterleavedInGroupsOfEight) {
  const std::string gates = "abcdefghijklmnop", ups = "ABCDEFGHIJKLMNOP";
  std::string to(32, ' ');
  ASSERT_EQ(tandem_interleave_gates(gates.data(), ups.data(), 16, 1, to.data()), TANDEM_SUCCESS);
  EXPECT_EQ(to, "abcdefghABCDEFGHijklmnopIJKLMNOP");
}

/// Every sum is 2 x k and the residual 64, so a normed element is the weight.
TEST(Plans, NormsFollowSums) {
  run_in_c(2, [](CPeer& peer) {
    constexpr size_t kSize = 32;
    tandem_problem problem{.m = kSize, .n = kSize, .k = kSize, .type = TANDEM_BF16};
    problem.norm = TANDEM_RMS_NORM;
    problem.residual = problem.sum = 1;
    tandem_plan* plan = nullptr;
    ASSERT_EQ(unlike(tandem_plan_create(&plan, peer.world, TANDEM_GEMM_ALL_REDUCE, &problem), TANDEM_SUCCESS), "");
    std::vector<bf16> ones(kSize * kSize, convert<bf16>(1.0F)), residual(ones.size(), convert<bf16>(64.0F)), c = ones;
    const std::vector<bf16> weight(kSize, convert<bf16>(3.0F));
    const void* const b = ones.data();
    void* const to = c.data();
    tandem_run run{};
    run.m = kSize;
    run.a = ones.data();
    run.b = &b;
    run.c = &to;
    run.residual = run.sum = residual.data();
    run.norm_weight = weight.data();
    ASSERT_EQ(unlike(tandem_plan_run_with(plan, &run, peer.stream), TANDEM_SUCCESS), "");
    ASSERT_EQ(unlike(tandem_synchronize(peer.world, peer.stream), TANDEM_SUCCESS), "");
    EXPECT_EQ(convert<float>(residual[5]), 96);
    EXPECT_EQ(convert<float>(c[kSize * kSize - 1]), 3);
    tandem_plan_destroy(plan);
  });
}

/// A row of A plus residual is 2, so a normed element is the weight, and C's are k times as much.
TEST(Plans, NormsComeBeforeAGather) {
  run_in_c(2, [](CPeer& peer) {
    constexpr size_t kSize = 32, kPart = kSize / 2;
    tandem_problem problem{.m = kSize, .n = kSize, .k = kSize, .type = TANDEM_BF16};
    problem.norm = TANDEM_RMS_NORM;
    problem.residual = problem.sum = 1;
    tandem_plan* plan = nullptr;
    ASSERT_EQ(unlike(tandem_plan_create(&plan, peer.world, TANDEM_ALL_GATHER_GEMM, &problem), TANDEM_SUCCESS), "");
    const std::vector<bf16> ones(kPart * kSize, convert<bf16>(1.0F)), weight(kSize, convert<bf16>(3.0F));
    std::vector<bf16> residual = ones, c(kSize * kPart), gathered(kSize * kSize);
    const void* const b = ones.data();
    void* const to = c.data();
    tandem_run run{};
    run.m = kSize;
    run.a = ones.data();
    run.b = &b;
    run.c = &to;
    run.gathered = gathered.data();
    run.residual = run.sum = residual.data();
    run.norm_weight = weight.data();
    ASSERT_EQ(unlike(tandem_plan_run_with(plan, &run, peer.stream), TANDEM_SUCCESS), "");
    ASSERT_EQ(unlike(tandem_synchronize(peer.world, peer.stream), TANDEM_SUCCESS), "");
    EXPECT_EQ(convert<float>(residual.back()), 2);
    EXPECT_EQ(convert<float>(gathered.front()), 3);
    EXPECT_EQ(convert<float>(gathered.back()), 3);
    EXPECT_EQ(convert<float>(c.front()), 3 * kSize);
    EXPECT_EQ(convert<float>(c.back()), 3 * kSize);
    tandem_plan_destroy(plan);
  });
}

TEST(Plans, NullsAreNamed) {
  run_in_c(2, [](CPeer& peer) {
    tandem_plan* plan = nullptr;
    const tandem_problem problem{.m = 64, .n = 64, .k = 64, .type = TANDEM_BF16};
    const auto made = [&](tandem_plan** where, const tandem_problem* what) {
      return tandem_plan_create(where, peer.world, TANDEM_ALL_GATHER_GEMM, what);
    };
    EXPECT_EQ(unlike(made(nullptr, &problem), kInvalid, "plan: NULL given"), "");
    EXPECT_EQ(unlike(made(&plan, nullptr), kInvalid, "problem: NULL given"), "");
  });
}

/// A layer of ones: each element of the result is k.
class Layer {
 public:
  Layer(CPeer& peer, tandem_operator op, bool shares_memory = false) : peer_(peer) {
    tandem_problem problem{.m = kSize, .n = kSize, .k = kSize, .type = TANDEM_BF16};
    problem.shares_memory = shares_memory ? 1 : 0;
    EXPECT_EQ(unlike(tandem_plan_create(&plan, peer.world, op, &problem), TANDEM_SUCCESS), "");
    for (std::vector<bf16>& matrix : matrices) matrix.assign(kSize * kSize, convert<bf16>(1.0F));
  }
  tandem_status run(size_t m, const void* a, const void* b, void* c) {
    return tandem_plan_run(plan, m, a, &b, &c, peer_.stream);
  }
  bf16 result() {
    EXPECT_EQ(unlike(tandem_synchronize(peer_.world, peer_.stream), TANDEM_SUCCESS), "");
    return matrices[2][0];
  }

  static constexpr size_t kSize = 64;
  tandem_plan* plan = nullptr;
  std::vector<bf16> matrices[3];

 private:
  CPeer& peer_;
};

TEST(Plans, RunsThatCannotBeLeaveTheNextOneRight) {
  for (const auto op : {TANDEM_ALL_GATHER_GEMM, TANDEM_GEMM_REDUCE_SCATTER, TANDEM_GEMM_ALL_REDUCE})
    run_in_c(2, [&](CPeer& peer) {
      Layer layer(peer, op);
      bf16* const a = layer.matrices[0].data();
      bf16* const b = layer.matrices[1].data();
      bf16* const c = layer.matrices[2].data();
      const void* const some_b = b;
      void* const some_c = c;
      tandem_plan* const plan = layer.plan;
      const float scale = 1;
      EXPECT_EQ(unlike(layer.run(65, a, b, c), kInvalid, "m: 65 given, allowed is 0 to the plan's 64"), "");
      EXPECT_EQ(unlike(layer.run(~size_t{0}, a, b, c), kInvalid, "m: 18446744073709551615 given"), "");
      EXPECT_EQ(unlike(layer.run(64, nullptr, b, c), kInvalid, "a: a null address given"), "");
      EXPECT_EQ(unlike(layer.run(64, a, nullptr, c), kInvalid, "b: a null address given"), "");
      EXPECT_EQ(unlike(layer.run(64, a, b, nullptr), kInvalid, "c: a null address given"), "");
      EXPECT_EQ(unlike(tandem_plan_run_with(plan, nullptr, peer.stream), kInvalid, "run: NULL given"), "");
      EXPECT_EQ(unlike(tandem_plan_run(plan, 64, a, nullptr, &some_c, peer.stream), kInvalid, "b: NULL given"), "");
      EXPECT_EQ(unlike(tandem_plan_run(plan, 64, a, &some_b, nullptr, peer.stream), kInvalid, "c: NULL given"), "");
      const tandem_run scaled{.m = 64, .a = a, .b = &some_b, .c = &some_c, .a_scale = &scale};
      EXPECT_EQ(unlike(tandem_plan_run_with(plan, &scaled, peer.stream), kInvalid, "scales: given"), "");
      EXPECT_EQ(unlike(tandem_world_destroy(peer.world), kInvalid, "1 plans of it are left"), "");
      EXPECT_EQ(unlike(layer.run(0, nullptr, nullptr, nullptr), TANDEM_SUCCESS), "");
      EXPECT_EQ(unlike(layer.run(64, a, b, c), TANDEM_SUCCESS), "");
      EXPECT_EQ(convert<float>(layer.result()), 64);
      EXPECT_EQ(unlike(tandem_plan_destroy(plan), TANDEM_SUCCESS), "");
      EXPECT_EQ(unlike(tandem_plan_destroy(plan), kInvalid, "allowed is a tandem_plan that was made"), "");
      EXPECT_EQ(unlike(layer.run(64, a, b, c), kInvalid, "plan: "), "");
    });
}

/// Runs of plans that share memory follow each other, with values that change.
TEST(Plans, SharedMemoryServesPlansThatAlternate) {
  run_in_c(2, [](CPeer& peer) {
    std::vector<std::unique_ptr<Layer>> layers;
    for (const auto op : {TANDEM_ALL_GATHER_GEMM, TANDEM_GEMM_REDUCE_SCATTER, TANDEM_GEMM_ALL_REDUCE})
      layers.push_back(std::make_unique<Layer>(peer, op, true));
    for (int run = 1; run <= 6; ++run)
      for (const auto& layer : layers) {
        layer->matrices[0].assign(layer->matrices[0].size(), convert<bf16>(static_cast<float>(run)));
        EXPECT_EQ(
            unlike(layer->run(64, layer->matrices[0].data(), layer->matrices[1].data(), layer->matrices[2].data()),
                   TANDEM_SUCCESS),
            "");
        EXPECT_EQ(convert<float>(layer->result()), 64.0F * static_cast<float>(run));
      }
    for (const auto& layer : layers) EXPECT_EQ(tandem_plan_destroy(layer->plan), TANDEM_SUCCESS);
  });
}

}  // namespace
}  // namespace tandem::test
