#include "bench/best_choice.h"

#include <gtest/gtest.h>

namespace tandem::bench {
namespace {

constexpr std::uint64_t kDear = 3'000'000;  ///< events of a call with 64 blocks

/// Two algorithms whose times at the second size are the other way round: "pieces" gains with 64 blocks alone, and 128
/// blocks of it are too dear.
SimulatedCall pieces_or_whole(Size bytes, const std::string& algorithm, int blocks, const Budget& budget) {
  SimulatedCall call{.outcome = Outcome::kRan, .algorithm = algorithm, .blocks = blocks};
  const bool has_many = blocks >= 64;
  call.events = has_many ? kDear * static_cast<std::uint64_t>(blocks) / 64 : 300'000;
  call.us = algorithm == "whole" ? 10 : bytes == 1024 ? (blocks == 32 ? 12 : 14) : has_many ? 5 : 30;
  if (call.events > budget.events)
    call.outcome = Outcome::kTooDear;
  else if (call.us > budget.us)
    call.outcome = Outcome::kTooSlow;
  return call;
}

TEST(BestChoice, TriesTheBlocksBetweenWhereTwiceAsManyAreTooDear) {
  std::vector<tune::Candidate> candidates;
  for (const char* const algorithm : {"whole", "pieces"})
    for (const int blocks : {16, 32, 64, 128}) candidates.push_back({algorithm, blocks, tune::kAnySize});
  BestChoice search(candidates, kDear, pieces_or_whole);
  search.at(1024);
  const std::vector<tune::Measured> tried = search.at(4096);
  const auto best = std::min_element(tried.begin(), tried.end(), [](auto& a, auto& b) { return a.us < b.us; });
  EXPECT_EQ(best->algorithm, "pieces");
  EXPECT_EQ(best->blocks, 64);
}

}  // namespace
}  // namespace tandem::bench
