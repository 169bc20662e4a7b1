// Streams, events, teams, handles and addresses that belong to something else are refused with one line.

#include <gmock/gmock.h>

#include <optional>

#include "tandem/advanced/local_handle.h"
#include "tandem/barrier.h"
#include "tandem/collectives.h"
#include "tandem/error.h"
#include "tandem/send_recv.h"
#include "tandem/simulation.h"

namespace tandem::stray_input_test {
namespace {

using ::testing::HasSubstr;

using Program = std::function<void(World&)>;

constexpr Size kCount = 64;

std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return {};
}

std::string refusal(int pes, const Program& program) {
  return refusal([&] { Simulation(load_machine("h200x4"), pes).run(program); });
}

/// An all-reduce over `team` of a buffer as `handle` makes it of the world's.
void all_reduce(World& world, const Team& team, const std::function<Symm<float>(Symm<float>)>& handle,
                std::optional<Stream> stream = {}) {
  const auto plan = make_collective(world, Collective::kAllReduce, {.max_count = kCount}, team);
  const auto data = handle(world.heap().allocate<float>(kCount, "data")).as<std::byte>();
  if (!stream) stream = world.make_stream("main");
  plan->run(*stream, data, data, kCount);
  stream->synchronize();
}

Symm<float> as_it_is(Symm<float> data) { return data; }

TEST(StrayInput, StreamsAreUsedWithinTheRun) {
  std::optional<Stream> kept;
  Symm<float> data;
  World* world = nullptr;
  Simulation simulation(load_machine("h200x4"), 1);
  simulation.run([&](World& its) {
    kept = its.make_stream("kept");
    data = its.heap().allocate<float>(kCount, "data");
    world = &its;
  });
  EXPECT_THAT(refusal([&] { kept->copy_async(data.local() + 8, data.local(), 16); }),
              HasSubstr("stream kept: copy given, allowed within a host program's run alone"));
  EXPECT_THAT(refusal([&] { world->barrier(); }), HasSubstr("barrier: allowed within"));
}

TEST(StrayInput, EventsAreThoseOfTheSameSimulation) {
  Event event;
  Simulation first(load_machine("h200x4"), 1);
  first.run([&](World& world) { event = world.make_stream("main").record(); });
  EXPECT_THAT(refusal(1, [&](World& world) { world.make_stream("main").wait(event); }),
              HasSubstr("wait: an event of another simulation"));
}

TEST(StrayInput, BuffersAreThoseOfTheSameSimulation) {
  Symm<float> data[2];
  Simulation first(load_machine("h200x4"), 2);
  first.run([&](World& world) { data[world.pe()] = world.heap().allocate<float>(kCount, "data"); });
  const auto others = [&](World& world) {
    all_reduce(world, world.team(), [&](Symm<float>) { return data[world.pe()]; });
  };
  EXPECT_THAT(refusal(2, others), HasSubstr("which are not in one PE's memory"));
}

TEST(StrayInput, TeamsAreSeenFromThePeThatGivesThem) {
  const auto seen_from_0 = [](World& world) {
    Team team = world.team();
    team.me = 0;
    return team;
  };
  const char* const text = "me 0, node_size 2 given on PE 1";
  EXPECT_THAT(refusal(2, [&](World& world) { all_reduce(world, seen_from_0(world), as_it_is); }), HasSubstr(text));
  EXPECT_THAT(refusal(2, [&](World& world) { SendRecvGroup(world, {}, seen_from_0(world)); }), HasSubstr(text));
  EXPECT_THAT(refusal(2, [&](World& world) { make_team_barrier(world, seen_from_0(world)); }), HasSubstr(text));
}

TEST(StrayInput, TeamsThatAreNone) {
  for (const Team& team : {Team{.size = 0}, Team{.size = 8, .node_size = 8}, Team{.first = 1, .size = 2}}) {
    EXPECT_THAT(refusal(2, [&](World& world) { SendRecvGroup(world, {}, team); }), HasSubstr("team: first"));
    EXPECT_THAT(refusal(2, [&](World& world) { make_team_barrier(world, team); }), HasSubstr("team: first"));
  }
}

TEST(StrayInput, ABarrierOfAnotherTeam) {
  const auto mixed = [](World& world) {
    const TeamBarrier barrier = make_team_barrier(world, world.split_strided(0, 1, 2));
    Stream stream = world.make_stream("main");
    barrier_on(stream, barrier, world.team());
    stream.synchronize();
  };
  EXPECT_THAT(refusal(4, mixed), HasSubstr("wait of 8 bytes"));
}

TEST(StrayInput, StreamsOfAnotherPe) {
  std::optional<Stream> first;
  const auto mixed = [&](World& world) {
    if (world.pe() == 0) first = world.make_stream("of PE 0");
    world.barrier();
    all_reduce(world, world.team(), as_it_is, first);
  };
  EXPECT_THAT(refusal(2, mixed), HasSubstr("a team seen from PE 1 given to a stream of PE 0"));
}

TEST(StrayInput, HandlesOfATeam) {
  const auto of_team = [](World& world) {
    all_reduce(world, world.team(), [&](Symm<float> data) { return data.of(world.split_strided(2, 1, 2)); });
  };
  EXPECT_THAT(refusal(4, of_team), HasSubstr("in: a team's handle given to all_reduce"));
  EXPECT_EQ(refusal(4, [](World& world) { all_reduce(world, world.team(), as_it_is); }), "");
}

TEST(StrayInput, BuffersThatAreTooSmall) {
  const auto run = [](Collective collective, Size in_count, Size out_count, bool local) {
    return refusal(2, [=](World& world) {
      const auto plan =
          make_collective(world, collective, {.max_count = kCount, .local_in = local, .local_out = local});
      SymmetricHeap& heap = world.heap();
      const auto buffer = [&](Size count, const char* name) {
        return local ? local_handle(world, heap.allocate_local<float>(count, name)) : heap.allocate<float>(count, name);
      };
      const auto in = buffer(in_count, "given");
      const auto out = buffer(out_count, "taken");
      heap.allocate<float>(kCount, "the neighbour");
      Stream stream = world.make_stream("main");
      plan->run(stream, in.as<const std::byte>(), out.as<std::byte>(), kCount);
      stream.synchronize();
    });
  };
  for (const bool local : {false, true}) {
    EXPECT_EQ(run(Collective::kAllReduce, kCount, kCount, local), "");
    EXPECT_THAT(run(Collective::kAllReduce, 10, kCount, local), HasSubstr("in: a buffer that has 40 bytes from "));
    EXPECT_THAT(run(Collective::kAllReduce, kCount, 10, local), HasSubstr("out: a buffer that has 40 bytes from "));
    EXPECT_THAT(run(Collective::kAllGather, kCount, kCount, local), HasSubstr(", this run needs 512"));
  }
}

TEST(StrayInput, BuffersBeyondMemory) {
  for (const Size far : {Size{1} << 32, Size{1} << 43})
    EXPECT_THAT(
        refusal(2, [&](World& world) { all_reduce(world, world.team(), [=](Symm<float> x) { return x + far; }); }),
        HasSubstr("which are not in one PE's memory"));
}

}  // namespace
}  // namespace tandem::stray_input_test
