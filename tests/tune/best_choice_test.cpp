#include "bench/best_choice.h"

#include <gtest/gtest.h>

#include "bench/default_rows.h"
#include "tandem/advanced/collective_traits.h"

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

/// Algorithm "late" takes 30 us with one block and few bytes; "dear" gains with blocks that are too dear.
struct LateOrDear {
  std::vector<SimulatedCall>* tried;

  SimulatedCall operator()(Size bytes, const std::string& algorithm, int blocks, const Budget& budget) const {
    SimulatedCall call{.outcome = Outcome::kRan, .algorithm = algorithm, .blocks = blocks, .us = 30, .events = kDear};
    if (algorithm == "dear") call.us = bytes < 1024 ? 2 : 2 + 28.0 / blocks;
    if (blocks > 2) call.outcome = Outcome::kTooDear;
    if (call.us > budget.us) {
      call.outcome = Outcome::kTooSlow;
      call.us = budget.us;
    }
    tried->push_back(call);
    return call;
  }
};

std::vector<SimulatedCall> tried_beside(const std::string& algorithm, const SimulatedCall& known, bool& is_complete) {
  std::vector<tune::Candidate> candidates;
  for (const int blocks : {1, 2, 4, 8}) candidates.push_back({algorithm, blocks, tune::kAnySize});
  std::vector<SimulatedCall> tried;
  BestChoice search(candidates, kDear, LateOrDear{&tried}, 64);
  search.at(1024, known, known.us / 1.05);
  is_complete = search.is_complete();
  return tried;
}

TEST(BestChoice, BesideADearCallTriesAnAlgorithmOnceThatIsLateWithOneBlockAndFewBytes) {
  bool is_complete = false;
  SimulatedCall known{.outcome = Outcome::kRan, .algorithm = "known", .blocks = 1, .us = 20, .events = kDear};
  EXPECT_EQ(tried_beside("late", known, is_complete).size(), 1U);
  EXPECT_TRUE(is_complete);
  known.events = 100;
  EXPECT_GT(tried_beside("late", known, is_complete).size(), 1U);
}

TEST(BestChoice, IsNotCompleteIfBlocksThatAreTooDearCouldMeetTheKnownTime) {
  bool is_complete = true;
  const SimulatedCall known{.outcome = Outcome::kRan, .algorithm = "known", .blocks = 1, .us = 10, .events = kDear};
  const std::vector<SimulatedCall> tried = tried_beside("dear", known, is_complete);
  EXPECT_FALSE(is_complete);
  for (const SimulatedCall& call : tried) EXPECT_LT(call.us, known.us);
}

/// BestChoice and the comparisons with defaults rely on this property, by the simulator.
TEST(BestChoice, NoAlgorithmIsQuickerThanItsOneBlockForFewBytesOrThanTheNics) {
  constexpr int pes = 16;
  constexpr double least_share = 0.97;  // as BestChoice's
  const Machine machine = load_machine("h100x8-rail");
  for (const Collective collective : all_collectives()) {
    std::string algorithm;  // the candidate's before
    double few_us = 0;
    for (const tune::Candidate& candidate : tune::candidates(collective, false)) {
      if (candidate.blocks != 1 && candidate.blocks != 16) continue;
      if (candidate.algorithm != algorithm) {
        algorithm = candidate.algorithm;
        few_us = BestChoice::shares_pes(algorithm)
                     ? 0
                     : simulate(machine, {collective, pes, Size{4} * pes}, algorithm, candidate.blocks).us;
      }
      const CollectiveCase one{collective, pes, Size{32} << 10};
      const SimulatedCall call = simulate(machine, one, algorithm, candidate.blocks);
      if (call.outcome != Outcome::kRan) continue;
      const std::string what = way_of(std::string(name(collective)) + " " + algorithm, candidate.blocks);
      EXPECT_GE(call.us, least_share * few_us) << what;
      EXPECT_GE(call.us, least_us(machine, one)) << what;
    }
  }
}

TEST(Defaults, OfAMeasuredGroupOrOfTheNearestOneAreNoModels) {
  EXPECT_TRUE(is_measured(load_machine("h200x4"), Collective::kAllReduce, 4));
  EXPECT_TRUE(is_measured(load_machine("host"), Collective::kAllReduce, 3)) << "2 and 4 PEs were measured";
  EXPECT_FALSE(is_measured(load_machine("h200x8"), Collective::kAllReduce, 5)) << "a predicted group has 5 PEs";
  EXPECT_FALSE(is_measured(load_machine("h100x8-rail"), Collective::kAllReduce, 16));
}

TEST(LeastTime, IsThatOfTheBytesThatHaveToPassANodesNics) {
  const Machine machine = load_machine("h100x8-rail");  // 8 NICs of 49 GB/s and 8.35 us
  const Size bytes = 392'000'000;                       // 1,000 us by all NICs of a node
  EXPECT_NEAR(least_us(machine, {Collective::kAllGather, 16, bytes}), 508.35, 0.01);
  EXPECT_NEAR(least_us(machine, {Collective::kAllReduce, 32, bytes}), 1508.35, 0.01);
  EXPECT_NEAR(least_us(machine, {Collective::kAllToAll, 32, bytes}), 6008.35, 0.01);
  EXPECT_NEAR(least_us(machine, {Collective::kSendRecv, 32, bytes}), 8008.35, 0.01) << "one NIC";
  EXPECT_NEAR(least_us(machine, {Collective::kGather, 32, bytes}), 6008.35, 0.01) << "the root's NIC";
  EXPECT_NEAR(least_us(machine, {Collective::kBroadcast, 32, bytes}), 6201.9, 0.01) << "24 of 31 parts";
  EXPECT_NEAR(least_us(machine, {Collective::kReduce, 16, bytes}), 8008.35, 0.01);
  EXPECT_NEAR(least_us(machine, {Collective::kReduce, 32, bytes}), 16008.35, 0.01) << "of two nodes";
  EXPECT_EQ(least_us(machine, {Collective::kExchange, 32, bytes}), 0);
}

TEST(LeastTime, WithinANodeIsThatOfTheBytesThatHaveToPassALink) {
  const Machine node = load_machine("h800x8"), mesh = load_machine("mi300x8");
  const Size bytes = 480'000'000;  // 3,000 us by a port of 160 GB/s, and 10,000 by a link of 48 GB/s
  EXPECT_NEAR(least_us(node, {Collective::kAllGather, 4, bytes}), 2250, 0.01);
  EXPECT_NEAR(least_us(mesh, {Collective::kAllGather, 4, bytes}), 2500, 0.01);
  EXPECT_NEAR(least_us(node, {Collective::kAllReduce, 4, bytes}), 4500, 0.01);
  EXPECT_NEAR(least_us(mesh, {Collective::kAllReduce, 4, bytes}), 5000, 0.01);
  EXPECT_NEAR(least_us(node, {Collective::kBroadcast, 5, bytes}), 3000, 0.01);
  EXPECT_NEAR(least_us(mesh, {Collective::kBroadcast, 5, bytes}), 2500, 0.01) << "over four links";
  EXPECT_NEAR(least_us(mesh, {Collective::kSendRecv, 5, bytes}), 10'000, 0.01) << "over one link";
  EXPECT_EQ(least_us(load_machine("host"), {Collective::kAllGather, 4, bytes}), 0) << "CPU PEs copy in memory";
}

/// Comparisons with defaults rely on this property, by the simulator.
TEST(LeastTime, NoAlgorithmIsQuickerWithinANode) {
  constexpr int pes = 3, blocks = 16;
  for (const char* const name_of_machine : {"h200x8", "mi300x8", "pcie-2numa"}) {
    const Machine machine = load_machine(name_of_machine);
    for (int i = 0; i < kCollectives; ++i) {
      const CollectiveCase one{static_cast<Collective>(i), pes, Size{3} << 20};
      for (const tune::Candidate& candidate : tune::candidates(one.collective, true)) {
        if (candidate.blocks != 0 && candidate.blocks != blocks) continue;
        const SimulatedCall call = simulate(machine, one, candidate.algorithm, candidate.blocks);
        if (call.outcome != Outcome::kRan || candidate.algorithm == "multimem") continue;
        EXPECT_GE(call.us, least_us(machine, one))
            << machine.name << " " << name(one.collective) << " " << way_of(candidate.algorithm, candidate.blocks);
      }
    }
  }
}

}  // namespace
}  // namespace tandem::bench
