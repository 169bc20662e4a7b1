// A run that fails unwinds the stacks of its host programs, kernels and roles. Destructors may wait, and the objects
// they refer to still exist.

#include <gmock/gmock.h>

#include <optional>

#include "sim/run/monitor.h"
#include "tandem/check.h"
#include "tandem/error.h"
#include "tandem/simulation.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

using Log = std::vector<std::string>;

/// Calls what it was given when it is destroyed.
template <class F>
class AtEnd {
 public:
  explicit AtEnd(F f) : f_(std::move(f)) {}
  ~AtEnd() { f_(); }
  AtEnd(const AtEnd&) = delete;
  AtEnd& operator=(const AtEnd&) = delete;

 private:
  F f_;
};

/// Waits for what never comes, in a role; whatever is on the stacks tells when it goes.
struct Waits {
  struct Args {
    Signals never;
    Symm<float> data;
    Log* log;
  };
  template <class Block>
  static void run(Block& block, const Args& a) {
    const AtEnd of_block([&] {
      block.quiet();
      block.store_scalar(a.data.on(1), 1.0F);
      block.fetch_add(&a.never.local()->value, Epoch{1});
      a.log->push_back("block");
    });
    block.template parallel_for<1>(1, [&](auto& role, int) {
      const AtEnd of_role([&] {
        role.wait(a.never, 1, 2);
        a.log->push_back("role");
      });
      role.wait(a.never, 1, 1);
    });
  }
};

/// PE 0 waits for what never comes, the others for PE 0.
void hang(World& world, Log& log) {
  const auto data = world.heap().allocate<float>(16, "data");
  const auto never = world.heap().signals(1, "never");
  Stream stream = world.make_stream("main");
  const AtEnd of_host([&] {
    for (int i = 0; i < 100; ++i) {
      Stream late = world.make_stream("late");
      late.launch<Waits>({1, 32}, {never, data, &log});
      late.synchronize();
    }
    world.barrier();
    float got = 0;
    world.copy_out(&got, data.local(), sizeof got);
    world.heap().free(data);
    if (world.pe() == 0) log.emplace_back("host");
  });
  if (world.pe() == 0) stream.launch<Waits>({1, 32}, {never, data, &log});
  stream.synchronize();
  world.barrier();
}

TEST(Unwinding, DestructorsMayWaitAndFindAliveWhatTheyReferTo) {
  Log log;
  EXPECT_THROW(Simulation(load_machine("h200x4"), 2).run([&](World& world) { hang(world, log); }), Deadlock);
  EXPECT_THAT(log, ElementsAre("role", "block", "host"));
}

TEST(Unwinding, EndsHostProgramsThatWaitInADestructor) {
  std::vector<std::optional<Stream>> streams(2);
  std::vector<Symm<float>> data(2);
  const auto program = [&](World& world) {
    const auto pe = static_cast<std::size_t>(world.pe());
    data[pe] = world.heap().allocate<float>(16, "data");
    const auto never = world.heap().signals(1, "never");
    streams[pe] = world.make_stream("main");
    const AtEnd at_end([&] {
      if (pe == 0) streams[pe]->synchronize();
      world.heap().free(data[pe]);
    });
    if (pe == 0) streams[pe]->wait_signal(never.local(), 1);
  };
  EXPECT_THROW(Simulation(load_machine("h200x4"), 2).run(program), Deadlock);
}

/// Is in the middle of much when the run fails.
struct MovesMuch {
  struct Args {
    Symm<float> data;
    Size count;
    bool puts;
    int* ended;
  };
  template <class Block>
  static void run(Block& block, const Args& a) {
    const AtEnd at_end([&] {
      block.quiet();
      ++*a.ended;
    });
    if (a.puts) block.put_nbi(a.data, a.data.local(), a.count, 1 - block.pe());
    if (!a.puts) block.copy(a.data.local(), a.data.local() + a.count, a.count);
    block.quiet();
  }
};

TEST(Unwinding, DestructorsMayCallQuietWhileBytesAreUnderWay) {
  for (const bool puts : {false, true}) {
    int ended = 0;
    const auto program = [&](World& world) {
      constexpr Size kMuch = Size{1} << 20;
      const auto data = world.heap().allocate<float>(2 * kMuch, "data");
      Stream main = world.make_stream("main");
      Stream side = world.make_stream("side");
      main.launch<MovesMuch>({1, 32}, {data, kMuch, puts, &ended});
      side.launch<MovesMuch>({1, 32}, {data, 1, false, &ended});
      side.synchronize();
      EXPECT_LE(ended, 2);
      throw InvalidArgument("enough");
    };
    EXPECT_THROW(Simulation(load_machine("h100x8-rail"), 2, {.pes_per_node = 1}).run(program), InvalidArgument);
    EXPECT_EQ(ended, 4) << puts;
  }
}

struct NoKernel {
  struct Args {};
  template <class Block>
  static void run(Block&, const Args&) {}
};

/// Throws when a signal is sent.
class RefusesSignals final : public sim::Schedule {
  sim::Time delay(Point point, int) override {
    if (point == Point::kSignal) throw CheckFailed("no signals here");
    return 0;
  }
  int choose(int) override { return 0; }
};

TEST(Unwinding, IsOverWhenAnErrorOfTheSchedulerLeavesTheRun) {
  RefusesSignals schedule;
  SimOptions options;
  options.seams.schedule = &schedule;
  std::vector<int> ended;
  Simulation simulation(load_machine("h200x4"), 2, options);
  const auto program = [&](World& world) {
    const AtEnd at_end([&] { ended.push_back(world.pe()); });
    const auto word = world.heap().signals(1, "word");
    Stream stream = world.make_stream("main");
    stream.launch<NoKernel>({1, 32}, {});
    stream.write_signal(word.local(), 1);  // begins where the kernel ends, on the scheduler
    stream.synchronize();
  };
  EXPECT_THROW(simulation.run(program), CheckFailed);
  EXPECT_THAT(ended, ElementsAre(1, 0));
}

TEST(Unwinding, WhatDestructorsDoIsNotCheckedAnyMore) {
  Log log;
  const CheckResult result = check([&](World& world) { hang(world, log); }, {.pes = 2, .schedules = 1});
  ASSERT_EQ(result.findings.size(), 1) << result.text();
  EXPECT_EQ(result.findings[0].kind, "hang");
}

}  // namespace
}  // namespace tandem
