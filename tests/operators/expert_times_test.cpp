#include "operators/experts/expert_times.h"

#include <gtest/gtest.h>

#include "tandem/machine.h"

namespace tandem::ops {
namespace {

/// Rows of one piece, with two choices of two experts on two PEs, and hardly a product.
ExpertGemmOptions rows_alone() {
  ExpertGemmOptions o;
  o.experts = {.max_tokens = 4096, .hidden = 2048, .experts = 2, .top_k = 2};
  o.intermediate = 8;
  return with_tile(o, 2);
}

Team pair() {
  Team team;
  team.size = 2;
  return team;
}

TEST(ExpertTimes, RowsTakeTheTimeOfFewSms) {
  const ExpertGemmOptions o = rows_alone();
  const ExpertTimes times(load_machine("h200x2"), pair(), o);
  // All own rows and three of four others, 0.7 us for each and 1.3 us for its piece.
  const double rows = 4096 * (1 + 0.75) * 2.0;
  EXPECT_NEAR(times.dispatch_gemm_us(8), rows / 8, 1);
  EXPECT_NEAR(times.dispatch_gemm_us(32), rows / 32, 1);
}

TEST(ExpertTimes, SumsOfAllSmsFollowThoseOfFew) {
  const ExpertGemmOptions o = rows_alone();
  const ExpertTimes times(load_machine("h200x2"), pair(), o);
  // A sum reads the rows of its own token, or of three of four others: 1.9 us for each and 1.9 us for its piece.
  const double sums = 4096 * (1 + 0.75) * 3.8;
  const double us = times.gemm_combine_us(2, 8) - sums / times.sms();
  EXPECT_GT(us, sums / 8);
  EXPECT_LT(us, sums / 8 * 1.1);  // and half of the product
}

TEST(ExpertTimes, RowsOfSharedExpertsReachAllPes) {
  ExpertGemmOptions o = rows_alone();
  o.experts.tp_size = 2;
  const ExpertTimes times(load_machine("h200x2"), pair(), o);
  // Two waves of one expert, each with three of four own rows and of four others.
  EXPECT_NEAR(times.dispatch_gemm_us(8), 2 * 4096 * 1.5 * 2.0 / 8, 1);
}

TEST(ExpertTimes, EarlyExpertsKeepTheGemmBusyWhileRowsTravel) {
  ExpertGemmOptions o;
  o.experts = {.max_tokens = 4096, .hidden = 7168, .experts = 256, .top_k = 8};
  o.intermediate = 2048;
  o = with_tile(o, 2);
  const ExpertTimes times(load_machine("h200x2"), pair(), o);
  const int of_few = times.early_experts(16).count();
  const int of_many = times.early_experts(64).count();
  EXPECT_GT(of_few, of_many);
  EXPECT_GT(of_many, 2);
  EXPECT_LE(of_few, 128);
}

}  // namespace
}  // namespace tandem::ops
