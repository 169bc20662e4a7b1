// Experts through the C API: right results, refused problems, calls and ids.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "c_api/simulated/process.h"
#include "tandem/numeric.h"

namespace tandem::test {
namespace {

constexpr size_t kHidden = 16;

/// Two experts, one on each of two PEs, and one choice.
const tandem_experts_problem kExpertsProblem{
    .max_tokens = 2, .hidden = kHidden, .experts = 2, .top_k = 1, .type = TANDEM_BF16};

/// A plan with its buffers. Token t of PE p is all p + t.
struct Experts {
  explicit Experts(CPeer& of, const tandem_experts_problem& problem = kExpertsProblem) : peer(of) {
    EXPECT_EQ(unlike(tandem_experts_create(&plan, peer.world, &problem), TANDEM_SUCCESS), "");
    EXPECT_EQ(unlike(tandem_experts_get_sizes(plan, &sizes), TANDEM_SUCCESS), "");
    x = allocate<bf16>(2 * kHidden);
    rows = allocate<bf16>(sizes.dispatched_rows * kHidden);
    out = allocate<bf16>(2 * kHidden);
    ids = allocate<std::int64_t>(2);
    routing = allocate<std::byte>(sizes.routing_bytes);
    for (size_t i = 0; i < 2 * kHidden; ++i) x[i] = convert<bf16>(static_cast<float>(peer.pe + (i < kHidden ? 0 : 1)));
  }
  template <class T>
  T* allocate(size_t count) {
    void* memory = nullptr;
    EXPECT_EQ(unlike(tandem_alloc(peer.world, count * sizeof(T), &memory), TANDEM_SUCCESS), "");
    return static_cast<T*>(memory);
  }
  tandem_experts_choices choices() const {
    return {.tokens = 2, .ids = ids, .id_type = TANDEM_I64, .routing = routing};
  }

  CPeer& peer;
  tandem_experts* plan = nullptr;
  tandem_experts_sizes sizes{};
  bf16 *x = nullptr, *rows = nullptr, *out = nullptr;
  std::int64_t* ids = nullptr;
  std::byte* routing = nullptr;
};

/// Both PEs have a part of both experts, and results that differ.
TEST(Experts, MayBeDividedByColumns) {
  run_in_c(2, [](CPeer& peer) {
    tandem_experts_problem problem = kExpertsProblem;
    problem.tp_size = 2;
    Experts e(peer, problem);
    e.ids[0] = 1;
    e.ids[1] = peer.pe == 0 ? 0 : -1;
    const tandem_experts_choices choices = e.choices();
    const tandem_experts_rows rows{.tokens = 2, .x = e.x, .routing = e.routing, .out = e.rows};
    EXPECT_EQ(unlike(tandem_experts_route_and_dispatch(e.plan, &choices, &rows, peer.stream), TANDEM_SUCCESS), "");
    EXPECT_EQ(unlike(tandem_synchronize(peer.world, peer.stream), TANDEM_SUCCESS), "");
    const auto* const counts = reinterpret_cast<const std::int32_t*>(e.routing + e.sizes.counts_at);
    EXPECT_EQ(counts[0], 1);
    EXPECT_EQ(counts[1], 2);
    for (size_t i = 0; i < 3 * kHidden; ++i) e.rows[i] = convert<bf16>(static_cast<float>(i / kHidden + 1 + peer.pe));
    const tandem_experts_sums sums{.tokens = 2, .y = e.rows, .routing = e.routing, .out = e.out};
    EXPECT_EQ(unlike(tandem_experts_combine(e.plan, &sums, peer.stream), TANDEM_SUCCESS), "");
    EXPECT_EQ(unlike(tandem_synchronize(peer.world, peer.stream), TANDEM_SUCCESS), "");
    // The rows of expert 1 begin with the own token on each PE. Expert 0 has token 1 of PE 0.
    EXPECT_EQ(convert<float>(e.out[0]), peer.pe == 0 ? 2 + 4 : 3 + 3);
    EXPECT_EQ(convert<float>(e.out[kHidden]), peer.pe == 0 ? 1 + 2 : 0);
    EXPECT_EQ(unlike(tandem_experts_destroy(e.plan), TANDEM_SUCCESS), "");
  });
}

TEST(Experts, GoToTheirPesAndBack) {
  run_in_c(2, [](CPeer& peer) {
    Experts e(peer);
    e.ids[0] = 1 - peer.pe;  // token 0 goes to the other PE, token 1 nowhere
    e.ids[1] = -1;
    const tandem_experts_choices choices = e.choices();
    const tandem_experts_rows rows{.tokens = 2, .x = e.x, .routing = e.routing, .out = e.rows};
    EXPECT_EQ(unlike(tandem_experts_route_and_dispatch(e.plan, &choices, &rows, peer.stream), TANDEM_SUCCESS), "");
    EXPECT_EQ(unlike(tandem_experts_route_and_dispatch(e.plan, &choices, nullptr, peer.stream), kInvalid, "rows: NULL"),
              "");
    const tandem_experts_sums sums{.tokens = 2, .y = e.rows, .routing = e.routing, .add = e.x, .out = e.out};
    EXPECT_EQ(unlike(tandem_experts_combine(e.plan, &sums, peer.stream), TANDEM_SUCCESS), "");
    EXPECT_EQ(unlike(tandem_synchronize(peer.world, peer.stream), TANDEM_SUCCESS), "");
    const auto* const counts = reinterpret_cast<const std::int32_t*>(e.routing + e.sizes.counts_at);
    const auto* const slots = reinterpret_cast<const std::int32_t*>(e.routing + e.sizes.slots_at);
    EXPECT_EQ(counts[0], 1);
    EXPECT_EQ(slots[0], (1 - peer.pe) * 2);
    const auto* const places = reinterpret_cast<const std::int32_t*>(e.routing + e.sizes.places_at);
    const auto other = static_cast<size_t>(1 - peer.pe);
    EXPECT_EQ(places[other * e.sizes.choice_stride], 0);
    for (size_t pe = 0; pe < 2; ++pe) {  // this PE knows the choices of all
      const auto* const ids = reinterpret_cast<const std::int32_t*>(e.routing + e.sizes.ids_at);
      const auto* const weights = reinterpret_cast<const float*>(e.routing + e.sizes.weights_at);
      EXPECT_EQ(ids[pe * e.sizes.id_stride], 1 - static_cast<int>(pe));
      EXPECT_EQ(weights[pe * e.sizes.choice_stride], 1.0F);
    }
    EXPECT_EQ(convert<float>(e.rows[kHidden - 1]), static_cast<float>(1 - peer.pe));
    EXPECT_EQ(convert<float>(e.out[0]), static_cast<float>(2 * peer.pe));
    EXPECT_EQ(convert<float>(e.out[kHidden]), static_cast<float>(peer.pe + 1));
    EXPECT_EQ(unlike(tandem_experts_destroy(e.plan), TANDEM_SUCCESS), "");
  });
}

TEST(Experts, RefuseARoutingOfAnotherPlan) {
  run_in_c(2, [](CPeer& peer) {
    tandem_experts_problem problem = kExpertsProblem;
    problem.max_tokens = 3;
    Experts e(peer), other(peer, problem);
    tandem_experts_choices choices = e.choices();
    choices.tokens = 0;
    choices.routing = other.routing;  // has room for either
    EXPECT_EQ(unlike(tandem_experts_route(other.plan, &choices, peer.stream), TANDEM_SUCCESS), "");
    const tandem_experts_rows rows{.tokens = 0, .x = e.x, .routing = other.routing, .out = e.rows};
    const char* const text = "routing: one of 3 tokens, top 1 of 2 experts";
    EXPECT_EQ(unlike(tandem_experts_dispatch(e.plan, &rows, peer.stream), kInvalid, text), "");
    const tandem_experts_sums sums{.tokens = 0, .y = e.rows, .routing = other.routing, .out = e.out};
    EXPECT_EQ(unlike(tandem_experts_combine(e.plan, &sums, peer.stream), kInvalid, text), "");
    EXPECT_EQ(unlike(tandem_experts_route(e.plan, &choices, peer.stream), TANDEM_SUCCESS), "");
    EXPECT_EQ(unlike(tandem_experts_dispatch(e.plan, &rows, peer.stream), TANDEM_SUCCESS), "");
    EXPECT_EQ(unlike(tandem_synchronize(peer.world, peer.stream), TANDEM_SUCCESS), "");
    EXPECT_EQ(unlike(tandem_experts_destroy(e.plan), TANDEM_SUCCESS), "");
    EXPECT_EQ(unlike(tandem_experts_destroy(other.plan), TANDEM_SUCCESS), "");
  });
}

TEST(Experts, SizesAreKnownBeforeThePlanIsMade) {
  tandem_experts_sizes before{};
  EXPECT_EQ(unlike(tandem_experts_sizes_of(&kExpertsProblem, 2, &before), TANDEM_SUCCESS), "");
  EXPECT_EQ(before.rows, 4U);
  run_in_c(2, [&](CPeer& peer) {
    Experts e(peer);
    EXPECT_EQ(before.routing_bytes, e.sizes.routing_bytes);
    EXPECT_EQ(before.weights_at, e.sizes.weights_at);
    EXPECT_EQ(before.dispatched_rows, e.sizes.dispatched_rows);
    EXPECT_EQ(unlike(tandem_experts_destroy(e.plan), TANDEM_SUCCESS), "");
  });
  EXPECT_EQ(unlike(tandem_experts_sizes_of(&kExpertsProblem, 0, &before), kInvalid, "pes: 0 given"), "");
  EXPECT_EQ(unlike(tandem_experts_sizes_of(&kExpertsProblem, 3, &before), kInvalid, "experts: 2 given"), "");
  EXPECT_EQ(unlike(tandem_experts_sizes_of(&kExpertsProblem, 2, nullptr), kInvalid, "sizes: NULL given"), "");
}

/// By chunks, and each call as its two halves.
TEST(Experts, GoInHalves) {
  run_in_c(2, [](CPeer& peer) {
    tandem_experts_problem problem = kExpertsProblem;
    problem.transport = TANDEM_EXPERTS_BY_CHUNKS;
    problem.batches = 1;
    Experts e(peer, problem);
    e.ids[0] = e.ids[1] = 1 - peer.pe;
    const tandem_experts_choices choices = e.choices();
    EXPECT_EQ(unlike(tandem_experts_route(e.plan, &choices, peer.stream), TANDEM_SUCCESS), "");
    const tandem_experts_rows rows{.tokens = 2, .x = e.x, .routing = e.routing, .out = e.rows};
    EXPECT_EQ(unlike(tandem_experts_dispatch_send(e.plan, &rows, peer.stream), TANDEM_SUCCESS), "");
    EXPECT_EQ(unlike(tandem_experts_dispatch_send(e.plan, &rows, peer.stream), kInvalid, "with 1 batches in flight"),
              "");
    EXPECT_EQ(unlike(tandem_experts_dispatch_receive(e.plan, &rows, peer.stream), TANDEM_SUCCESS), "");
    const tandem_experts_sums sums{.tokens = 2, .y = e.rows, .routing = e.routing, .out = e.out};
    EXPECT_EQ(unlike(tandem_experts_combine_send(e.plan, &sums, peer.stream), TANDEM_SUCCESS), "");
    EXPECT_EQ(unlike(tandem_experts_combine_receive(e.plan, &sums, peer.stream), TANDEM_SUCCESS), "");
    EXPECT_EQ(unlike(tandem_synchronize(peer.world, peer.stream), TANDEM_SUCCESS), "");
    EXPECT_EQ(convert<float>(e.rows[kHidden]), static_cast<float>(2 - peer.pe));
    EXPECT_EQ(convert<float>(e.out[kHidden]), static_cast<float>(peer.pe + 1));
    EXPECT_EQ(unlike(tandem_experts_destroy(e.plan), TANDEM_SUCCESS), "");
  });
}

TEST(Experts, ARefusedIdFailsTheNextSynchronise) {
  run_in_c(2, [](CPeer& peer) {
    Experts e(peer);
    e.ids[0] = 0;
    e.ids[1] = peer.pe == 0 ? 2 : 1;
    const tandem_experts_choices choices = e.choices();
    EXPECT_EQ(unlike(tandem_experts_route(e.plan, &choices, peer.stream), TANDEM_SUCCESS), "");
    const tandem_status status = tandem_synchronize(peer.world, peer.stream);
    if (peer.pe == 0) {
      EXPECT_EQ(unlike(status, kInvalid, "ids: PE 0, token 1, k 0: 2 given to experts"), "");
    }
    EXPECT_EQ(unlike(tandem_synchronize(peer.world, peer.stream), TANDEM_SUCCESS), "");
    EXPECT_EQ(unlike(tandem_experts_destroy(e.plan), TANDEM_SUCCESS), "");
  });
}

TEST(Experts, BadInputIsRefusedByName) {
  run_in_c(2, [](CPeer& peer) {
    tandem_experts* plan = nullptr;
    tandem_experts_problem problem = kExpertsProblem;
    problem.experts = 3;
    EXPECT_EQ(unlike(tandem_experts_create(&plan, peer.world, &problem), kInvalid, "experts: 3 given"), "");
    problem = kExpertsProblem;
    problem.layout = static_cast<tandem_expert_layout>(3);
    EXPECT_EQ(unlike(tandem_experts_create(&plan, peer.world, &problem), kInvalid, "layout: 3 given"), "");
    EXPECT_EQ(unlike(tandem_experts_create(nullptr, peer.world, &kExpertsProblem), kInvalid, "experts: NULL given"),
              "");
    Experts e(peer);
    tandem_experts_choices choices = e.choices();
    choices.ids = nullptr;
    EXPECT_EQ(unlike(tandem_experts_route(e.plan, &choices, peer.stream), kInvalid, "ids: none given"), "");
    EXPECT_EQ(unlike(tandem_experts_route(e.plan, nullptr, peer.stream), kInvalid, "choices: NULL given"), "");
    EXPECT_EQ(unlike(tandem_experts_destroy(e.plan), TANDEM_SUCCESS), "");
    EXPECT_EQ(unlike(tandem_experts_destroy(nullptr), TANDEM_SUCCESS), "");
  });
}

/// Both products by one expert on each PE, whose first matrix is the identity and whose second one is twice that.
/// W: the type of matrices and of rows before them. Scales of fp8 matrices are 1, so that results are those of bf16.
template <class W>
void multiply_on_the_way(CPeer& peer) {
  constexpr bool kIsFp8 = sizeof(W) == 1;
  Experts e(peer);
  const tandem_expert_gemms_problem problem{.max_tokens = 2,
                                            .hidden = kHidden,
                                            .intermediate = kHidden,
                                            .experts = 2,
                                            .top_k = 1,
                                            .type = TANDEM_BF16,
                                            .wire = kIsFp8 ? TANDEM_WIRE_QUANTISED : TANDEM_WIRE_TYPE};
  tandem_expert_gemms* gemms = nullptr;
  EXPECT_EQ(unlike(tandem_expert_gemms_create(&gemms, peer.world, &problem), TANDEM_SUCCESS), "");
  tandem_experts_sizes sizes{};
  EXPECT_EQ(unlike(tandem_expert_gemms_sizes_of(&problem, 2, &sizes), TANDEM_SUCCESS), "");
  auto* const first = e.allocate<W>(kHidden * kHidden);
  auto* const second = e.allocate<W>(kHidden * kHidden);
  for (size_t i = 0; i < kHidden * kHidden; ++i) {
    first[i] = convert<W>(i % (kHidden + 1) == 0 ? 1.0F : 0.0F);
    second[i] = convert<W>(2 * convert<float>(first[i]));
  }
  constexpr size_t kBlocks = (kHidden + 127) / 128;
  float* const scales = kIsFp8 ? e.allocate<float>(kBlocks * kBlocks) : nullptr;
  for (size_t i = 0; kIsFp8 && i < kBlocks * kBlocks; ++i) scales[i] = 1;
  float* const row_scales = kIsFp8 ? e.allocate<float>(sizes.rows * kBlocks) : nullptr;
  float* const h_scales = kIsFp8 ? e.allocate<float>(sizes.rows * kBlocks) : nullptr;
  auto* const rows = e.allocate<W>(sizes.rows * kHidden);
  auto* const h = e.allocate<W>(sizes.rows * kHidden);
  auto* const y = e.allocate<bf16>(sizes.rows * kHidden);
  e.routing = e.allocate<std::byte>(sizes.routing_bytes);
  e.ids[0] = 1 - peer.pe;
  e.ids[1] = -1;
  const tandem_experts_choices choices = e.choices();
  EXPECT_EQ(unlike(tandem_expert_gemms_route(gemms, &choices, peer.stream), TANDEM_SUCCESS), "");
  const tandem_dispatch_gemm there{.tokens = 2,
                                   .x = e.x,
                                   .routing = e.routing,
                                   .b = first,
                                   .rows = rows,
                                   .out = h,
                                   .b_scales = scales,
                                   .row_scales = row_scales,
                                   .out_scales = h_scales};
  EXPECT_EQ(unlike(tandem_expert_gemms_dispatch(gemms, &there, peer.stream), TANDEM_SUCCESS), "");
  const tandem_gemm_combine back{.tokens = 2,
                                 .a = h,
                                 .routing = e.routing,
                                 .b = second,
                                 .y = y,
                                 .add = e.x,
                                 .out = e.out,
                                 .a_scales = h_scales,
                                 .b_scales = scales};
  EXPECT_EQ(unlike(tandem_expert_gemms_combine(gemms, &back, peer.stream), TANDEM_SUCCESS), "");
  EXPECT_EQ(unlike(tandem_synchronize(peer.world, peer.stream), TANDEM_SUCCESS), "");
  EXPECT_EQ(convert<float>(e.out[kHidden - 1]), static_cast<float>(3 * peer.pe));
  EXPECT_EQ(convert<float>(e.out[kHidden]), static_cast<float>(peer.pe + 1));
  tandem_dispatch_gemm wrong = there;
  wrong.b = nullptr;
  EXPECT_EQ(unlike(tandem_expert_gemms_dispatch(gemms, &wrong, peer.stream), kInvalid, "b: none given"), "");
  wrong = there;
  wrong.b_scales = kIsFp8 ? nullptr : reinterpret_cast<const float*>(e.out);
  EXPECT_EQ(unlike(tandem_expert_gemms_dispatch(gemms, &wrong, peer.stream), kInvalid,
                   kIsFp8 ? "b_scales: none given" : "b_scales: an address given to experts, allowed is none"),
            "");
  EXPECT_EQ(unlike(tandem_expert_gemms_destroy(gemms), TANDEM_SUCCESS), "");
  EXPECT_EQ(unlike(tandem_experts_destroy(e.plan), TANDEM_SUCCESS), "");
}

TEST(ExpertGemms, MultiplyOnTheWay) { run_in_c(2, multiply_on_the_way<bf16>); }

TEST(ExpertGemms, MultiplyInFp8) { run_in_c(2, multiply_on_the_way<fp8_e4m3>); }

}  // namespace
}  // namespace tandem::test
