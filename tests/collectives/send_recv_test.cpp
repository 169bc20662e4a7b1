// Grouped sends and receives: any pairs, any order of the lists, staging that is reused, sizes that do not match.

#include "tandem/send_recv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "support/earlier_calls.h"
#include "tandem/error.h"
#include "tandem/simulation.h"

namespace tandem {
namespace {

/// One message of a pattern that all PEs know.
struct Planned {
  int from, to;
  Size bytes;
};
using Pattern = std::vector<Planned>;

std::byte content(int run, std::size_t message, Size i) {
  return static_cast<std::byte>(static_cast<std::size_t>(run) * 131 + message * 31 +
                                static_cast<std::size_t>(i * 7 + i / 251));
}

/// Stripes of the smaller random sizes go as packets.
SendRecvOptions small_staging() {
  SendRecvOptions options;
  options.lanes = 2;
  options.slots = 2;
  options.slot_bytes = 64;
  options.packet_bytes = 64;
  return options;
}

using test::EarlierCalls;

/// A PE's buffers for the messages of a pattern.
class Player {
 public:
  Player(World& world, const std::vector<Pattern>& runs) : world_(world), runs_(runs) {
    for (const Pattern& pattern : runs) {
      auto& buffers = buffers_.emplace_back();
      for (const Planned& message : pattern) {
        const Size bytes = world.pe() == message.from || world.pe() == message.to ? message.bytes : 0;
        buffers.push_back({world.heap().allocate_local<std::byte>(bytes, "outgoing"),
                           world.heap().allocate_local<std::byte>(bytes, "incoming")});
      }
    }
  }

  /// `earlier_bits`: the group's counters are close to so many bits.
  void play(const SendRecvOptions& options, int late, int earlier_bits = 0) {
    EarlierCalls earlier(world_);
    SendRecvGroup group(world_, options);
    if (earlier_bits > 0) earlier.pretend((Epoch{1} << earlier_bits) - 3);
    constexpr Size kDelay = Size{1} << 20;
    auto* const busy = world_.heap().allocate_local<std::byte>(2 * kDelay, "busy");
    Stream stream = world_.make_stream("main");
    for (std::size_t run = 0; run < runs_.size(); ++run) {
      if (world_.pe() == late) stream.copy_async(busy, busy + kDelay, kDelay);
      std::vector<Send> sends;
      std::vector<Receive> receives;
      for (std::size_t i = 0; i < runs_[run].size(); ++i) {
        const Planned& message = runs_[run][i];
        const Buffers& buffer = buffers_[run][i];
        if (message.from == world_.pe()) {
          for (Size at = 0; at < message.bytes; ++at) buffer.out[at] = content(static_cast<int>(run), i, at);
          sends.push_back({message.to, buffer.out, message.bytes});
        }
        if (message.to == world_.pe()) receives.push_back({message.from, buffer.in, message.bytes});
      }
      // Only the order within a pair counts.
      const auto by_peer = [&](const auto& a, const auto& b) {
        return (a.peer * 5 + world_.pe()) % 7 < (b.peer * 5 + world_.pe()) % 7;
      };
      std::stable_sort(sends.begin(), sends.end(), by_peer);
      std::stable_sort(receives.begin(), receives.end(), by_peer);
      group.run(stream, sends, receives);
    }
    // Its count of wrong sizes is one of the counters.
    if (earlier_bits > 0) stream.synchronize();
    if (earlier_bits == 0) group.check(stream);
    for (std::size_t run = 0; run < runs_.size(); ++run) check(static_cast<int>(run));
  }

 private:
  struct Buffers {
    std::byte* out;
    std::byte* in;
  };

  void check(int run) {
    const auto& pattern = runs_[static_cast<std::size_t>(run)];
    for (std::size_t i = 0; i < pattern.size(); ++i) {
      if (pattern[i].to != world_.pe()) continue;
      Size wrong = 0;
      for (Size at = 0; at < pattern[i].bytes; ++at)
        wrong += buffers_[static_cast<std::size_t>(run)][i].in[at] != content(run, i, at);
      EXPECT_EQ(wrong, 0) << "run " << run << ", message " << i << " from PE " << pattern[i].from << " to "
                          << pattern[i].to;
    }
  }

  World& world_;
  const std::vector<Pattern>& runs_;
  std::vector<std::vector<Buffers>> buffers_;
};

void expect_delivered(int pes, int nodes, const std::vector<Pattern>& runs, const SendRecvOptions& options,
                      std::uint64_t seed = 1, int late = -1) {
  SimOptions sim;
  sim.seed = seed;
  sim.heap_bytes = Size{256} << 20;
  Machine machine = load_machine(nodes > 1 ? "h100x8-rail" : "h200x8");
  machine.pes_per_node = nodes > 1 ? pes / nodes : std::max(8, pes);
  Simulation simulation(machine, pes, sim);
  simulation.run([&](World& world) { Player(world, runs).play(options, late); });
}

/// `messages` messages between random PEs (itself included), several of them between the same.
Pattern random_pattern(int pes, int messages, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Pattern pattern;
  constexpr Size kSizes[] = {0, 1, 15, 16, 17, 64, 127, 129, 1000, 3000};
  const auto below = [&](std::size_t n) { return static_cast<int>(random() % n); };
  for (int i = 0; i < messages; ++i)
    pattern.push_back(
        {below(static_cast<std::size_t>(pes)), below(static_cast<std::size_t>(pes)), kSizes[below(std::size(kSizes))]});
  return pattern;
}

TEST(SendRecv, RandomPatternsWithOnePeLate) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const int pes = 1 + static_cast<int>(seed % 9);
    std::vector<Pattern> runs;
    for (std::uint64_t run = 0; run < 3; ++run) runs.push_back(random_pattern(pes, 6 * pes, seed * 10 + run));
    expect_delivered(pes, 1, runs, small_staging(), seed, static_cast<int>(seed * 7) % pes);
  }
}

TEST(SendRecv, RandomPatternsBetweenNodes) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed)
    for (const auto& [nodes, per_node] : {std::pair{2, 2}, {3, 3}, {2, 8}}) {
      const int pes = nodes * per_node;
      const std::vector<Pattern> runs{random_pattern(pes, 5 * pes, seed), random_pattern(pes, pes, seed + 50)};
      expect_delivered(pes, nodes, runs, small_staging(), seed, static_cast<int>(seed) % pes);
    }
}

TEST(SendRecv, LargeMessagesPipelineThroughDefaultSlots) {
  SendRecvOptions options;
  options.lanes = 2;
  Pattern pattern;
  for (int from = 0; from < 4; ++from)
    for (int to = 0; to < 4; ++to) pattern.push_back({from, to, (Size{2} << 20) + 1});
  expect_delivered(4, 1, {pattern, pattern}, options);
}

TEST(SendRecv, OneSlotOneLane) {
  SendRecvOptions options;
  options.lanes = options.slots = 1;
  options.slot_bytes = options.packet_bytes.emplace(16);
  expect_delivered(3, 1, {random_pattern(3, 30, 5), random_pattern(3, 30, 6)}, options, 3, 1);
}

/// More PEs than groups of blocks: distances take turns.
TEST(SendRecv, ManyPes) {
  Pattern pattern;
  for (int from = 0; from < 70; ++from)
    for (int d = 0; d < 70; ++d) pattern.push_back({from, (from + d) % 70, (from * d) % 100});
  SendRecvOptions options = small_staging();
  options.lanes = 1;
  expect_delivered(70, 1, {pattern}, options);
}

template <class E>
std::string error_of(int pes, const std::function<void(World&)>& program) {
  Simulation simulation(load_machine("h200x4"), pes);
  try {
    simulation.run(program);
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

TEST(SendRecv, SizesThatDoNotMatchNameBothPes) {
  const auto send = [](Size sent, Size expected) {
    return error_of<CheckFailed>(3, [&](World& world) {
      auto* const data = world.heap().allocate_local<std::byte>(2000, "data");
      SendRecvOptions options = small_staging();
      options.lanes = 1;
      SendRecvGroup group(world, options);
      Stream stream = world.make_stream("main");
      for (int run = 0; run < 2; ++run) {
        if (world.pe() == 2) group.run(stream, {{1, data, sent}}, {});
        if (world.pe() == 1) group.run(stream, {}, {{2, data, expected}});
        if (world.pe() == 0) group.run(stream, {}, {});
      }
      group.check(stream);
    });
  };
  const std::string begin = "send-receive group: PE 2 sent PE 1 another size than its receive 0 expects: ";
  EXPECT_EQ(send(100, 96), begin + "100 bytes, not 96");
  EXPECT_EQ(send(0, 1), begin + "0 bytes, not 1");
  EXPECT_EQ(send(2000, 16), begin + "2000 bytes, not 16");
  EXPECT_EQ(send(100, 100), "no error");
}

/// Sends `sent` bytes to a receiver of `expected`, in several stripes of several chunks. The receiver gets the bytes
/// that both sizes cover, and nothing is written beyond.
void expect_what_fits(Size sent, Size expected, int nodes, Size packet_bytes) {
  constexpr auto kUntouched = std::byte{0xEE};
  const Size most = std::max(sent, expected);
  Machine machine = load_machine(nodes > 1 ? "h100x8-rail" : "h200x8");
  if (nodes > 1) machine.pes_per_node = 1;
  Simulation(machine, 2).run([&](World& world) {
    auto* const data = world.heap().allocate_local<std::byte>(most, "data");
    SendRecvOptions options = small_staging();
    options.lanes = 3;
    options.packet_bytes = packet_bytes;
    SendRecvGroup group(world, options);
    Stream stream = world.make_stream("main");
    for (int run = 0; run < 2; ++run) {
      for (Size i = 0; i < most; ++i) data[i] = world.pe() == 0 ? content(run, 0, i) : kUntouched;
      if (world.pe() == 0) group.run(stream, {{1, data, sent}}, {});
      if (world.pe() == 1) group.run(stream, {}, {{0, data, expected}});
      stream.synchronize();
      Size wrong = 0;
      for (Size i = 0; world.pe() == 1 && i < most; ++i)
        wrong += data[i] != (i < std::min(sent, expected) ? content(run, 0, i) : kUntouched);
      EXPECT_EQ(wrong, 0) << sent << " bytes sent, " << expected << " expected, run " << run;
    }
    if (world.pe() == 1) {
      EXPECT_THROW(group.check(stream), CheckFailed);
    }
  });
}

TEST(SendRecv, OfUnequalMessagesToItselfWhatFitsIsReceived) {
  Simulation(load_machine("h200x8"), 2).run([](World& world) {
    auto* const data = world.heap().allocate_local<std::byte>(300, "data");
    std::fill_n(data, 300, std::byte{0});
    std::fill_n(data, 100, std::byte{7});
    SendRecvGroup group(world, small_staging());
    Stream stream = world.make_stream("main");
    const int me = world.pe();
    group.run(stream, {{me, data, 100}, {me, data, 40}}, {{me, data + 100, 60}, {me, data + 200, 50}});
    stream.synchronize();
    EXPECT_EQ(std::count(data + 100, data + 300, std::byte{7}), 60 + 40);
    EXPECT_EQ(std::count(data + 200, data + 240, std::byte{7}), 40);
    EXPECT_THROW(group.check(stream), CheckFailed);
  });
}

TEST(SendRecv, OfSizesThatDoNotMatchWhatFitsIsReceived) {
  for (const auto& [nodes, packet_bytes] : {std::pair<int, Size>{1, 0}, {1, 64}, {1, 512}, {2, 512}})
    for (const auto& [small, large] : {std::pair<Size, Size>{0, 1}, {0, 1000}, {47, 48}, {500, 1000}, {999, 1000}}) {
      expect_what_fits(small, large, nodes, packet_bytes);
      expect_what_fits(large, small, nodes, packet_bytes);
    }
}

TEST(SendRecv, IsRightAfterManyRuns) {
  for (const int nodes : {1, 2})
    for (const int bits : {32, 42, 46}) {
      Machine machine = load_machine(nodes > 1 ? "h100x8-rail" : "h200x8");
      if (nodes > 1) machine.pes_per_node = 2;
      std::vector<Pattern> runs;
      for (std::uint64_t run = 0; run < 3; ++run) runs.push_back(random_pattern(4, 20, run));
      Simulation(machine, 4).run([&](World& world) { Player(world, runs).play(small_staging(), 1, bits); });
    }
}

TEST(SendRecv, ASendWithoutItsReceiveIsADeadlockThatNamesIt) {
  const std::string report = error_of<Deadlock>(2, [](World& world) {
    auto* const data = world.heap().allocate_local<std::byte>(64, "data");
    SendRecvGroup group(world, small_staging());
    Stream stream = world.make_stream("main");
    group.run(stream, {}, world.pe() == 0 ? std::vector<Receive>{{1, data, 64}} : std::vector<Receive>{});
    group.check(stream);
  });
  EXPECT_NE(report.find("waits for send_recv heads"), std::string::npos) << report;
}

TEST(SendRecv, BadInputNamesTheMessage) {
  const auto run = [](const std::vector<Send>& sends, const std::vector<Receive>& receives,
                      SendRecvOptions options = {}) {
    return error_of<InvalidArgument>(1, [&](World& world) {
      SendRecvGroup group(world, options);
      Stream stream = world.make_stream("main");
      group.run(stream, sends, receives);
    });
  };
  int data = 0;
  EXPECT_EQ(run({{1, &data, 4}}, {}), "send 0: peer 1 given, allowed are 0 to 0");
  EXPECT_EQ(run({}, {{0, &data, 4}, {0, &data, -1}}), "receive 1: -1 bytes given, must not be negative");
  EXPECT_EQ(run({{0, nullptr, 4}}, {}), "send 0: 4 bytes given without data");
  EXPECT_EQ(run({{0, &data, 4}}, {}),
            "send-receive group: 1 sends to PE 0 itself and 0 receives from it given, allowed are equally many");
  EXPECT_EQ(run(std::vector<Send>(513), {}),
            "send-receive group: 513 sends and 0 receives given, allowed are 512 in all");
  EXPECT_EQ(run({}, {}, {.slot_bytes = 24}),
            "slot_bytes: 24 given to a send-receive group, allowed are multiples of 16 up to 1048576");
  EXPECT_EQ(run({}, {}, {.packet_bytes = 40}),
            "packet_bytes: 40 given to a send-receive group, allowed are multiples of 16 up to 2048");
  EXPECT_EQ(run({}, {}, {.slots = 0}), "slots: 0 given to a send-receive group, allowed are 1 to 1024");
}

}  // namespace
}  // namespace tandem
