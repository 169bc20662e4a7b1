// Barriers: no PE leaves before all have arrived, with everything that was put before.

#include "tandem/barrier.h"

#include <gtest/gtest.h>

#include "tandem/error.h"
#include "tandem/simulation.h"

namespace tandem {
namespace {

/// In every round each block puts the round's number to all PEs, meets the others and looks at what they put.
struct Meet {
  struct Args {
    TeamBarrier barrier;
    Symm<std::int64_t> table;  // [block][PE]
    std::int64_t* mine;        // [block]
    std::int64_t* wrong;       // [block]
    int rounds;
    int late;
  };
  template <class Block>
  static void run(Block& block, const Args& a) {
    const Symm<std::int64_t> row = a.table + Size{block.index()} * block.num_pes();
    for (int round = 1; round <= a.rounds; ++round) {
      // Somebody is late, by a thousand loads.
      for (int i = 0; block.pe() == a.late && i < 1000; ++i) block.load_scalar(a.mine + block.index()), block.sync();
      block.store_scalar(a.mine + block.index(), std::int64_t{round});
      for (int pe : block.pes_from_self()) block.put_nbi(row + block.pe(), a.mine + block.index(), 1, pe);
      barrier_all(block, a.barrier);
      std::int64_t wrong = 0;
      for (int pe = 0; pe < block.num_pes(); ++pe) wrong += block.load_scalar(row.local() + pe) != round;
      block.store_scalar(a.wrong + block.index(), block.load_scalar(a.wrong + block.index()) + wrong);
      team_sync(block, a.barrier);  // before the next round's puts
    }
  }
};

void expect_barrier(int pes, int nodes, std::uint64_t seed, int late) {
  constexpr int kBlocks = 2;
  SimOptions options;
  options.seed = seed;
  options.heap_bytes = Size{1} << 20;
  Machine machine = load_machine(nodes > 1 ? "h100x8-rail" : "h200x8");
  machine.pes_per_node = nodes > 1 ? pes / nodes : 16;
  Simulation simulation(machine, pes, options);
  simulation.run([&](World& world) {
    SymmetricHeap& heap = world.heap();
    Meet::Args args{make_team_barrier(world, world.team(), kBlocks),
                    heap.allocate<std::int64_t>(Size{kBlocks} * pes, "table"),
                    heap.allocate_local<std::int64_t>(kBlocks, "mine"),
                    heap.allocate_local<std::int64_t>(kBlocks, "wrong"),
                    3,
                    late};
    for (int i = 0; i < kBlocks; ++i) args.wrong[i] = 0;
    Stream stream = world.make_stream("main");
    for (int launch = 0; launch < 2; ++launch) {
      stream.launch<Meet>({kBlocks, 32}, args);
      barrier_on(stream, args.barrier, world.team());  // no second launch puts into a first one that still looks
    }
    stream.synchronize();
    for (int i = 0; i < kBlocks; ++i)
      EXPECT_EQ(args.wrong[i], 0) << pes << " PEs, PE " << world.pe() << ", late " << late;
  });
}

TEST(Barrier, NoPeLeavesBeforeAllHaveArrived) {
  for (int pes = 1; pes <= 9; ++pes)
    for (int late = -1; late < pes; ++late) expect_barrier(pes, 1, static_cast<std::uint64_t>(pes + late + 1), late);
}

TEST(Barrier, BetweenNodes) {
  for (int late = -1; late < 4; ++late) expect_barrier(4, 2, 1, late);
  expect_barrier(9, 3, 2, 4);
  expect_barrier(16, 2, 3, 15);
}

TEST(Barrier, OnAStreamWaitsForTheSlowest) {
  Simulation simulation(load_machine("h200x8"), 5);
  simulation.run([](World& world) {
    const TeamBarrier barrier = make_team_barrier(world, world.team());
    constexpr Size kBytes = Size{64} << 20;
    auto* const busy = world.heap().allocate_local<std::byte>(kBytes, "busy");
    Stream stream = world.make_stream("main");
    if (world.pe() == 3) stream.copy_async(busy, busy + kBytes / 2, kBytes / 2);
    barrier_on(stream, barrier, world.team());
    stream.synchronize();
    EXPECT_GE(world.time_us(), 10) << "PE " << world.pe() << " left before PE 3's copy of 32 MiB was done";
  });
}

TEST(Barrier, RefusesAGridWithoutBlocks) {
  Simulation simulation(load_machine("h200x4"), 1);
  EXPECT_THROW(simulation.run([](World& world) { make_team_barrier(world, world.team(), 0); }), InvalidArgument);
}

}  // namespace
}  // namespace tandem
