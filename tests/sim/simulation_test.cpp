// The run as a whole: determinism, streams, deadlocks and their reports, memory.

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "tandem/error.h"
#include "tandem/simulation.h"
#include "tandem/timeline.h"

namespace tandem {
namespace {

/// Every PE sends to the next, `rounds` times; PE `skipper` leaves its last signal out.
struct TokenRing {
  struct Args {
    Signals token;
    int rounds;
    int skipper;
  };
  template <class Block>
  static void run(Block& block, const Args& a) {
    const int n = block.num_pes();
    for (int round = 1; round <= a.rounds; ++round) {
      if (round < a.rounds || block.pe() != a.skipper)
        block.notify(a.token, static_cast<Epoch>(round), (block.pe() + 1) % n);
      block.wait(a.token, 1, static_cast<Epoch>(round));
    }
  }
};

/// A grid-wide barrier: hangs where not all blocks are resident.
struct GridBarrier {
  struct Args {
    Signals count;
  };
  template <class Block>
  static void run(Block& block, const Args& a) {
    block.notify(a.count, 1, block.pe(), SignalOp::kAdd);
    block.wait(a.count, 1, static_cast<Epoch>(block.count()));
  }
};

struct Outcome {
  std::uint64_t hash;
  double time_us;
};

Outcome run_ring(int pes, std::uint64_t seed, int skipper = -1) {
  SimOptions options;
  options.seed = seed;
  Simulation simulation(load_machine("h200x8"), pes, options);
  simulation.run([&](World& world) {
    const auto token = world.heap().signals(1, "token");
    Stream stream = world.make_stream("main");
    stream.launch<TokenRing>({1, 32}, {token, 3, skipper});
    stream.synchronize();
  });
  return {simulation.trace_hash(), simulation.time_us()};
}

TEST(Simulation, SameSeedSameTraceOtherSeedOtherTrace) {
  EXPECT_EQ(run_ring(8, 1).hash, run_ring(8, 1).hash);
  EXPECT_NE(run_ring(8, 1).hash, run_ring(8, 2).hash);
  EXPECT_EQ(run_ring(8, 1).time_us, run_ring(8, 2).time_us);
}

TEST(Simulation, TraceIsTheSameOnEveryBuildAndMachine) {
  // Changes whenever the simulator's timing or the machine model's figures do: then take the new value from any build.
  EXPECT_EQ(run_ring(8, 1).hash, 382242595584162591ULL);
}

std::string deadlock_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Deadlock& error) {
    return error.what();
  }
  return "no deadlock";
}

TEST(Simulation, DeadlockNamesWhoWaitsForWhatOfWhom) {
  const std::string report = deadlock_of([] { run_ring(4, 1, 2); });
  EXPECT_NE(report.find("PE 3 block 0 of TokenRing waits for token[0] on PE 3 >= 3, found 2; PE 2 writes it"),
            std::string::npos)
      << report;
}

TEST(Simulation, GridLargerThanWhatIsResidentDeadlocksAndSaysSo) {
  const auto run = [](int blocks) {
    Simulation simulation(load_machine("h200x4"), 1);
    simulation.run([&](World& world) {
      const auto count = world.heap().signals(1, "count");
      Stream stream = world.make_stream("main");
      stream.launch<GridBarrier>({blocks, 1024}, {count});
      stream.synchronize();
    });
  };
  const Machine machine = load_machine("h200x4");
  const int resident = machine.gpu.sm_count * (machine.gpu.max_threads_per_sm / 1024);
  EXPECT_NO_THROW(run(resident));
  const std::string report = deadlock_of([&] { run(resident + 5); });
  EXPECT_NE(report.find("5 blocks never started"), std::string::npos) << report;
  EXPECT_NE(report.find("count[0] on PE 0"), std::string::npos) << report;
}

TEST(Simulation, StreamsKeepOrderAndMeetThroughEventsAndSignals) {
  Simulation simulation(load_machine("h200x4"), 2);
  simulation.run([](World& world) {
    constexpr Size kBytes = 3'000'001;
    const auto data = world.heap().allocate<std::uint8_t>(kBytes, "data");
    const auto got = world.heap().allocate<std::uint8_t>(kBytes, "got");
    const auto here = world.heap().signals(1, "here");
    std::fill_n(data.local(), kBytes, static_cast<std::uint8_t>(world.pe() + 1));
    Stream copies = world.make_stream("copies");
    Stream main = world.make_stream("main");
    copies.copy_async(got.on(1 - world.pe()), data.local(), kBytes);
    copies.write_signal(here.on(1 - world.pe()), 1);
    main.wait_signal(here.local(), 1);
    main.wait_for(copies);
    main.synchronize();
    EXPECT_EQ(got.local()[0], 2 - world.pe());
    EXPECT_EQ(got.local()[kBytes - 1], 2 - world.pe());
  });
  // 3 MB at 395 GB/s take 7.6 us, and the copy engine's start a few more.
  EXPECT_GT(simulation.time_us(), 7.6);
  EXPECT_LT(simulation.time_us(), 20);
}

/// A role with much to do.
struct CountsInARole {
  struct Args {
    Symm<Epoch> cell;
  };
  template <class Block>
  static void run(Block& block, const Args& a) {
    block.template parallel_for<1>(1, [&](auto& role, int) {
      for (int i = 0; i < 20; ++i) role.fetch_add(a.cell.local(), Epoch{1});
    });
  }
};

TEST(Simulation, RolesOfKernelsThatRunSideBySideAreDrawnOnLanesOfTheirBlocks) {
  Simulation simulation(load_machine("h200x4"), 1, {.record = true});
  simulation.run([](World& world) {
    const auto cell = world.heap().allocate<Epoch>(1, "cell");
    Stream first = world.make_stream("first");
    Stream second = world.make_stream("second");
    for (Stream* const stream : {&first, &second}) stream->launch<CountsInARole>({1, 64}, {cell});
    first.synchronize();
    second.synchronize();
  });
  const trace::Timeline& timeline = simulation.timeline();
  std::set<std::string> names;
  std::map<std::uint32_t, std::int64_t> end;
  for (const trace::Span& span : timeline.spans) {
    names.insert(timeline.lanes[span.lane].name);
    if (span.kind == trace::SpanKind::kKernel) continue;
    EXPECT_GE(span.begin, end[span.lane]) << timeline.lanes[span.lane].name;
    end[span.lane] = span.end;
  }
  EXPECT_TRUE(names.contains("sm 0 / role 0"));
  EXPECT_TRUE(names.contains("sm 1 / role 0"));
}

TEST(Simulation, TimelinesNameBuffersAndTiles) {
  Simulation simulation(load_machine("h200x4"), 2, {.record = true});
  simulation.run([](World& world) {
    const auto token = world.heap().signals(1, "token");
    Stream stream = world.make_stream("main");
    stream.launch<TokenRing>({1, 32}, {token, 2, -1});
    const auto memory = [&](const char* name) { return world.heap().allocate_local<float>(256 * 256, name); };
    Gemm gemm;
    gemm.a = memory("a");
    gemm.b = memory("b");
    gemm.destination = GemmLocal{memory("c")};
    gemm.m = gemm.n = gemm.k = 256;
    gemm.type = gemm.out_type = DType::kF32;
    gemm.tile_m = 128;
    gemm.tile_n = 256;
    stream.gemm(gemm, world.team());
    stream.synchronize();
  });
  const auto& labels = simulation.timeline().labels();
  for (const char* label : {"signal token", "wait token", "tile [128, 256) x [0, 256)"})
    EXPECT_NE(std::find(labels.begin(), labels.end(), label), labels.end()) << label;
}

TEST(Simulation, WaitsThatNeverEndAreDrawnAsWaits) {
  Simulation simulation(load_machine("h200x4"), 2, {.record = true});
  EXPECT_THROW(simulation.run([](World& world) {
    const auto token = world.heap().signals(1, "token");
    Stream stream = world.make_stream("main");
    stream.launch<TokenRing>({1, 32}, {token, 2, 0});
    stream.synchronize();
  }),
               Deadlock);
  const trace::Timeline& timeline = simulation.timeline();
  const auto stuck = std::find_if(timeline.spans.begin(), timeline.spans.end(), [&](const trace::Span& span) {
    return span.kind == trace::SpanKind::kWait && timeline.lanes[span.lane].pe == 1 && span.end == timeline.end;
  });
  ASSERT_NE(stuck, timeline.spans.end());
  EXPECT_EQ(timeline.label(stuck->label), "wait token");
}

TEST(Simulation, StreamThatIsNotReleasedIsReported) {
  const std::string report = deadlock_of([] {
    Simulation simulation(load_machine("h200x4"), 1);
    simulation.run([](World& world) {
      const auto never = world.heap().signals(2, "never");
      world.make_stream("side").wait_signal(never.local() + 1, 4);
    });
  });
  EXPECT_NE(report.find("stream side"), std::string::npos) << report;
  EXPECT_NE(report.find("never[1] on PE 0 >= 4, found 0, never written by anybody"), std::string::npos) << report;
}

/// The PE that forgot a call is the one that does not wait.
TEST(Simulation, DeadlockNamesPesWhoseProgramsHaveEnded) {
  const std::string report = deadlock_of([] {
    Simulation simulation(load_machine("h200x4"), 3);
    simulation.run([](World& world) {
      const auto here = world.heap().signals(1, "here");
      Stream stream = world.make_stream("main");
      if (world.pe() != 1) stream.wait_signal(here.local(), 1);
      stream.synchronize();
    });
  });
  EXPECT_NE(report.find("host programs that have ended: PE 1\n"), std::string::npos) << report;
}

TEST(Simulation, AllocationsThatDifferOrDoNotFitAreRefused) {
  const auto run = [](Size elements_of_pe1) {
    SimOptions options;
    options.heap_bytes = 1 << 20;
    Simulation simulation(load_machine("h200x4"), 2, options);
    simulation.run([&](World& world) { world.heap().allocate<float>(world.pe() == 1 ? elements_of_pe1 : 1000, "x"); });
  };
  EXPECT_NO_THROW(run(1000));
  EXPECT_THROW(run(1001), InvalidArgument);
  EXPECT_THROW(run(-1), InvalidArgument);
  SimOptions small;
  small.heap_bytes = 1 << 20;
  Simulation simulation(load_machine("h200x4"), 1, small);
  try {
    simulation.run([](World& world) { world.heap().allocate<float>(1 << 20, "large"); });
    FAIL() << "nothing was thrown";
  } catch (const OutOfMemory& error) {
    EXPECT_NE(std::string(error.what()).find("4194304 bytes asked, 1048576 of 1048576"), std::string::npos)
        << error.what();
  }
}

TEST(Simulation, ErrorOfOneHostProgramEndsTheRunAndUnwindsTheOthers) {
  struct Guard {
    int* count;
    ~Guard() { ++*count; }
  };
  int unwound = 0;
  Simulation simulation(load_machine("h200x4"), 3);
  EXPECT_THROW(simulation.run([&](World& world) {
    const Guard guard{&unwound};
    world.barrier();
    if (world.pe() == 1) throw std::runtime_error("on purpose");
    world.barrier();
  }),
               std::runtime_error);
  EXPECT_EQ(unwound, 3);
}

TEST(Simulation, BadGridsAreRefused) {
  for (const Grid grid : {Grid{0, 32}, Grid{1, 33}, Grid{1, 2048}}) {
    Simulation simulation(load_machine("h200x4"), 1);
    EXPECT_THROW(simulation.run([&](World& world) {
      Stream stream = world.make_stream("main");
      stream.launch<GridBarrier>(grid, {world.heap().signals(1, "count")});
    }),
                 InvalidArgument);
  }
}

TEST(Simulation, PhantomHasTheSameSignalsAndNoContents) {
  SimOptions options;
  options.phantom = true;
  Simulation simulation(load_machine("h200x4"), 2, options);
  simulation.run([](World& world) {
    EXPECT_TRUE(world.phantom());
    world.heap().allocate<float>(Size{1} << 31, "8 GiB of nothing");
    const auto token = world.heap().signals(1, "token");
    Stream stream = world.make_stream("main");
    stream.launch<TokenRing>({1, 32}, {token, 2, -1});
    stream.synchronize();
    EXPECT_EQ(token.local()->value, 2U);
  });
}

/// Thread blocks that have finished leave nothing behind, however many there are.
TEST(Memory, DoesNotGrowWithTheNumberOfCalls) {
  std::size_t after_few = 0, after_many = 0;
  Simulation simulation(load_machine("h200x4"), 2, {});
  simulation.run([&](World& world) {
    const auto token = world.heap().signals(1, "token");
    Stream stream = world.make_stream("main");
    const auto call = [&](int times) {
      for (int i = 0; i < times; ++i) {
        stream.launch<GridBarrier>({4, 32}, {token});
        stream.synchronize();
      }
      world.barrier();
      return static_cast<std::size_t>(mallinfo2().uordblks);
    };
    const std::size_t few = call(1000), many = call(10000);
    if (world.pe() == 0) after_few = few, after_many = many;
  });
  EXPECT_LT(after_many, after_few + (std::size_t{1} << 20));  // 80,000 blocks of threads later
}

}  // namespace
}  // namespace tandem
