// A user's settings of how calls run: the most blocks of a kernel, and algorithms by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "../../bindings/c/plans.h"
#include "c_api/simulated/memory.h"
#include "tandem/error.h"
#include "tandem/simulation.h"

namespace tandem::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Collective kAll[] = {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter,
                               Collective::kAllToAll,  Collective::kBroadcast, Collective::kReduce,
                               Collective::kGather,    Collective::kScatter};

/// Calls `test` with the choices of all collectives for sizes from 1 KB to 1 GB.
void for_all_choices(const c::Controls& controls,
                     const std::function<void(Collective, const c::Plans::Choice&)>& look) {
  SimOptions options;
  options.phantom = true;
  Simulation(load_machine("h200x4"), 3, options).run([&](World& world) {
    c::Plans plans(world, {}, controls);
    for (const Collective collective : kAll)
      for (Size count = 64; count <= Size{64} << 20; count *= 4)
        for (const bool local : {false, true})
          look(collective, plans.choice({collective, DType::kF32, ReduceOp::kSum, 0}, count, local, local));
  });
}

TEST(MostBlocks, HoldsForAllCalls) {
  int most = 0, without = 0;
  for_all_choices({}, [&](Collective, const c::Plans::Choice& choice) { without += choice.blocks == 0; });
  EXPECT_GT(without, 0) << "sizes of which the tables leave it open";
  for_all_choices({.max_blocks = 5}, [&](Collective collective, const c::Plans::Choice& choice) {
    most = std::max(most, choice.blocks);
    const bool by_copy_engine = choice.algorithm.find("copy_engine") != std::string::npos;
    if (!by_copy_engine || reduces(collective)) {
      EXPECT_GT(choice.blocks, 0) << name(collective) << " " << choice.algorithm << " takes what suits";
    }
    EXPECT_LE(choice.blocks, 5) << name(collective) << " " << choice.algorithm;
  });
  EXPECT_EQ(most, 5);
}

TEST(MostBlocks, IsNoMoreThanSuits) {
  for_all_choices({.max_blocks = 132}, [&](Collective collective, const c::Plans::Choice& choice) {
    EXPECT_LE(choice.blocks, 128) << name(collective) << " " << choice.algorithm;
  });
}

TEST(Algorithms, AreThoseNamedAndElseWhatSuits) {
  const c::Controls controls = c::parse_controls(0, " all_reduce=ring ,broadcast = chain");
  EXPECT_EQ(controls.text(), "all_reduce=ring, broadcast=chain");
  std::vector<std::string> others, expected;
  const auto keep = [](std::vector<std::string>& all) {
    return [&all](Collective collective, const c::Plans::Choice& choice) {
      if (collective != Collective::kAllReduce && collective != Collective::kBroadcast) all.push_back(choice.algorithm);
    };
  };
  for_all_choices(controls, [&](Collective collective, const c::Plans::Choice& choice) {
    if (collective == Collective::kAllReduce) {
      EXPECT_EQ(choice.algorithm, "ring");
    }
    if (collective == Collective::kBroadcast) {
      EXPECT_EQ(choice.algorithm, "chain");
    }
  });
  for_all_choices(controls, keep(others));
  for_all_choices({}, keep(expected));
  EXPECT_EQ(others, expected);
}

/// Two all-reduces and a message, of several pieces each.
void check_calls(CPeer& peer) {
  constexpr size_t count = 30'000;
  Words sum = words(0, 0, count);
  for (int pe = 1; pe < peer.n; ++pe) {
    const Words other = words(pe, 0, count);
    for (size_t i = 0; i < count; ++i) sum[i] += other[i];
  }
  for (const bool symmetric : {true, false}) {
    const Memory in(peer, symmetric, words(peer.pe, 0, count)), out(peer, symmetric, Words(count));
    EXPECT_EQ(unlike(tandem_all_reduce(peer.world, in.at(), out.at(), count, TANDEM_U32, TANDEM_SUM, peer.stream),
                     TANDEM_SUCCESS),
              "");
    EXPECT_EQ(out.contents(), sum);
    const tandem_message to{in.at(), count, TANDEM_U32, (peer.pe + 1) % peer.n};
    const tandem_message from{out.at(), count, TANDEM_U32, (peer.pe + peer.n - 1) % peer.n};
    EXPECT_EQ(unlike(tandem_send_recv(peer.world, &to, 1, &from, 1, peer.stream), TANDEM_SUCCESS), "");
    EXPECT_EQ(out.contents(), words(from.peer, 0, count));
  }
}

TEST(Controls, LeaveResultsRight) {
  for (const int blocks : {1, 2, 5})
    for (const char* const algorithms : {"all_reduce=ring", "all_reduce=two_shot_ll128", "all_reduce=copy_engine"})
      run_in_c(3, check_calls, {.max_blocks = blocks, .algorithms = [&](int) { return algorithms; }});
}

TEST(Controls, HoldForTheWorldsCalls) {
  run_in_c(2,
           [](CPeer& peer) {
             const Memory memory(peer, true, Words(100));
             const auto reduced =
                 tandem_all_reduce(peer.world, memory.at(), memory.at(), 100, TANDEM_F32, TANDEM_PROD, peer.stream);
             EXPECT_EQ(unlike(reduced, TANDEM_UNSUPPORTED, "all_reduce algorithm 'multimem'"), "");
           },
           {.algorithms = [](int) { return "all_reduce=multimem"; }});
}

std::string refusal(const CRun& run) {
  try {
    run_in_c(
        2, [](CPeer&) {}, run);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(Controls, OfAllPesAreTheSame) {
  const auto differ = [](int pe) { return pe == 0 ? "all_reduce=ring" : "all_reduce=two_shot"; };
  EXPECT_THAT(refusal({.max_blocks = 7, .algorithms = differ}),
              AllOf(HasSubstr("'calls with max_blocks 7, all_reduce=ring'"),
                    HasSubstr("'calls with max_blocks 7, all_reduce=two_shot'")));
}

TEST(Controls, AreThisMachines) {
  EXPECT_THAT(refusal({.max_blocks = 17}), HasSubstr("max_blocks: 17 given, allowed are 1 to 16, the SMs of"));
  EXPECT_EQ(refusal({.max_blocks = 16}), "");
}

}  // namespace
}  // namespace tandem::test
