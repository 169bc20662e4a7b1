// Every collective that moves data without reducing it, over a pairwise covering array; TANDEM_FULL=1 runs the grid.

#include <gtest/gtest.h>

#include <array>
#include <iterator>
#include <memory>
#include <vector>

#include "support/collective_check.h"
#include "support/collective_grid.h"
#include "support/full_grid.h"
#include "support/pairwise.h"
#include "tandem/advanced/collective_traits.h"
#include "tandem/timeline.h"

namespace tandem::test::move_test {
namespace {

enum Factor : std::size_t { kAlgorithm, kLayout, kAmount, kType, kInPlace, kBlocks, kSeed };
constexpr int kBlockChoices[] = {0, 1, 3};
constexpr int kSeeds = 20;
constexpr int kShards = 4;  // of the covering array, so that they can run side by side
/// Elements: nothing; one; unaligned; some blocks' worth. Negative: so many bytes, and one element more: past a round
/// of packets, past a chunk of a pipeline.
constexpr Size kAmounts[] = {0, 1, 3, 1000, -(4 << 10), -(16 << 10)};
constexpr int kAmountChoices = static_cast<int>(std::size(kAmounts)) + 1;  // the last: 1 MiB in the larger buffer

std::vector<AlgorithmInfo> moving_algorithms() {
  std::vector<AlgorithmInfo> list;
  for (const AlgorithmInfo& info : collective_algorithms())
    if (!reduces(info.collective)) list.push_back(info);
  return list;
}

Size count_of(int amount, Collective collective, DType type, int pes) {
  const Size shares = traits(collective).is_whole() ? pes : 1;
  if (amount == kAmountChoices - 1) return (Size{1} << 20) / size_of(type) / shares;
  const Size given = kAmounts[amount];
  return given >= 0 ? given : -given / size_of(type) + 1;
}

CollectiveCase case_of(const std::vector<AlgorithmInfo>& algorithms, const std::vector<int>& row, std::size_t number) {
  const AlgorithmInfo& info = algorithms[static_cast<std::size_t>(row[kAlgorithm])];
  const Layout& layout = layouts()[static_cast<std::size_t>(row[kLayout])];
  CollectiveCase c;
  c.collective = info.collective;
  c.algorithm = info.name;
  c.machine = layout.machine;
  c.nodes = layout.nodes;
  c.pes = layout.pes;
  c.type = kDTypes[row[kType]];
  c.count = count_of(row[kAmount], c.collective, c.type, c.pes);
  c.in_place = row[kInPlace] == 1;
  // Integers take all values; floats small whole numbers (as of a minimum: those of all PEs differ), which are quick to
  // make.
  c.random = c.type >= DType::kI8 && c.type <= DType::kU64;
  c.op = ReduceOp::kMin;
  c.blocks = kBlockChoices[row[kBlocks]];
  c.seed = static_cast<std::uint64_t>(1 + row[kSeed]);
  c.calls = 3;
  c.root = traits(c.collective).has_root() ? static_cast<int>(number % static_cast<std::size_t>(c.pes)) : 0;
  return c;
}

void expect_right(const CollectiveCase& c) {
  try {
    const CollectiveResult result = check_collective(c);
    EXPECT_EQ(result.wrong, 0) << describe(c) << ": " << result.first_wrong;
    EXPECT_EQ(result.algorithm, c.algorithm) << describe(c);
  } catch (const std::exception& error) {
    ADD_FAILURE() << describe(c) << ": " << error.what();
  }
}

std::vector<int> levels(const std::vector<AlgorithmInfo>& algorithms) {
  const auto size = [](const auto& list) { return static_cast<int>(std::size(list)); };
  return {size(algorithms), size(layouts()), kAmountChoices, size(kDTypes), 2, size(kBlockChoices), kSeeds};
}

bool allowed(const AlgorithmInfo& info, std::size_t factor, int value) {
  if (factor == kLayout) return can_run(info, layouts()[static_cast<std::size_t>(value)]);
  if (factor == kInPlace) return value == 0 || traits(info.collective).has_place;
  return true;
}

class MovePairs : public testing::TestWithParam<int> {};

TEST_P(MovePairs, AreRight) {
  const std::vector<AlgorithmInfo> algorithms = moving_algorithms();
  const Pairwise pairwise(levels(algorithms), [&](std::size_t i, int a, std::size_t j, int b) {
    return i != kAlgorithm || allowed(algorithms[static_cast<std::size_t>(a)], j, b);
  });
  ASSERT_GE(pairwise.rows().size(), 300U);
  for (auto i = static_cast<std::size_t>(GetParam()); i < pairwise.rows().size(); i += kShards)
    expect_right(case_of(algorithms, pairwise.rows()[i], i));
}

INSTANTIATE_TEST_SUITE_P(Shards, MovePairs, testing::Range(0, kShards));

/// The grid of algorithms, layouts, amounts and types; other factors take turns.
TEST(Move, WholeGrid) {
  const auto shard = full_grid();
  if (!shard) GTEST_SKIP() << "set TANDEM_FULL=1 to run it, TANDEM_FULL=K/N for a part";
  const std::vector<AlgorithmInfo> algorithms = moving_algorithms();
  const std::vector<int> most = levels(algorithms);
  std::size_t turn = 0;
  int run = 0;
  std::vector<int> row(most.size());
  for (row[kAlgorithm] = 0; row[kAlgorithm] < most[kAlgorithm]; ++row[kAlgorithm]) {
    const AlgorithmInfo& info = algorithms[static_cast<std::size_t>(row[kAlgorithm])];
    for (row[kLayout] = 0; row[kLayout] < most[kLayout]; ++row[kLayout]) {
      if (!allowed(info, kLayout, row[kLayout])) continue;
      for (row[kAmount] = 0; row[kAmount] < most[kAmount]; ++row[kAmount])
        for (row[kType] = 0; row[kType] < most[kType]; ++row[kType]) {
          const int at = static_cast<int>(turn);
          row[kInPlace] = traits(info.collective).has_place ? at % 2 : 0;
          row[kBlocks] = at / 2 % most[kBlocks];
          row[kSeed] = at % most[kSeed];
          if (shard->takes(turn)) {
            expect_right(case_of(algorithms, row, turn));
            ++run;
          }
          ++turn;
        }
    }
  }
  RecordProperty("cases", run);
}

/// Byte `i` of PE `pe`'s input of a call.
std::byte input_byte(int call, int pe, Size i) { return static_cast<std::byte>(call * 89 + pe * 37 + i % 241); }

/// Returns byte `i` of the output of PE `me`.
std::byte output_byte(const CollectiveCase& c, int call, int me, Size i) {
  const CollectiveSource from = traits(c.collective).source({c.count, c.pes, c.root}, me, i);
  return input_byte(call, from.first, from.index);
}

/// Every call uses the same buffers again as soon as it returns, and PE `late` begins the second one long after all
/// others.
void expect_right_with_a_straggler(const CollectiveCase& c, int late) {
  SimOptions options;
  options.seed = static_cast<std::uint64_t>(1 + late);
  options.heap_bytes = Size{64} << 20;
  options.pes_per_node = c.pes / c.nodes;
  Simulation simulation(load_machine("h200x8"), c.pes, options);
  Size wrong = 0;
  simulation.run([&](World& world) {
    const auto plan = make_collective(
        world, c.collective,
        {.type = DType::kU8, .root = c.root, .max_count = c.count, .algorithm = c.algorithm, .blocks = 2});
    const auto in = world.heap().allocate<std::byte>(c.count * c.pes, "in");
    const auto out = world.heap().allocate<std::byte>(c.count * c.pes, "out");
    constexpr Size kDelay = Size{64} << 10;
    auto* const busy = world.heap().allocate_local<std::byte>(2 * kDelay, "busy");
    Stream stream = world.make_stream("main");
    std::vector<Stream> beside;
    for (int i = 0; i < 2 * world.machine().gpu.copy_engines; ++i) beside.push_back(world.make_stream("beside"));
    for (int call = 0; call < 4; ++call) {
      if (call == 1 && world.pe() == late) {
        for (int i = 0; i < 40; ++i) stream.copy_async(busy, busy + kDelay, kDelay);
        stream.synchronize();
      }
      // And its copy engines have other things to do in the third.
      for (Stream& stream_beside : beside)
        for (int i = 0; call == 2 && world.pe() == late && i < 10; ++i)
          stream_beside.copy_async(busy, busy + kDelay, kDelay);
      // Until this PE begins the call, its buffers are its own: what comes too early is lost here.
      for (Size i = 0; i < c.count * c.pes; ++i) out.local()[i] = std::byte{0xEE};
      for (Size i = 0; i < c.count * c.pes; ++i) in.local()[i] = input_byte(call, world.pe(), i);
      plan->run(stream, in, out, c.count);
      stream.synchronize();
      const Size outputs = output_elements(c.collective, c.count, c.pes, world.pe(), c.root);
      for (Size i = 0; i < outputs; ++i) wrong += out.local()[i] != output_byte(c, call, world.pe(), i);
      // And again from its end on: who still reads this PE's input reads something else.
      for (Size i = 0; i < c.count * c.pes; ++i) in.local()[i] = std::byte{0xEE};
    }
  });
  EXPECT_EQ(wrong, 0) << describe(c) << ", PE " << late << " late";
}

TEST(Move, BuffersAreOursAgainAfterACallThoughOnePeIsLate) {
  for (const AlgorithmInfo& info : moving_algorithms())
    for (const Size count : {40, 70'000})
      for (const int nodes : {1, 2})
        for (int late = 0; late < 4 && (nodes == 1 || !info.one_node_only); ++late) {
          CollectiveCase c;
          c.collective = info.collective;
          c.algorithm = info.name;
          c.nodes = nodes;
          c.count = count;
          c.root = traits(c.collective).has_root() ? 1 : 0;
          expect_right_with_a_straggler(c, late);
        }
}

/// Runs two broadcasts by pull from PE 1 of four, where the PEs of `in_place` have one buffer only. Returns the bytes
/// that the root moves.
Size bytes_moved_by_root(Size count, const std::array<bool, 4>& in_place) {
  constexpr int kPes = 4, kRoot = 1, kCalls = 2;
  Simulation simulation(load_machine("h200x8"), kPes, {.record = true});
  Size wrong = 0;
  simulation.run([&](World& world) {
    const auto plan =
        make_collective(world, Collective::kBroadcast,
                        {.type = DType::kU8, .root = kRoot, .max_count = count, .algorithm = "pull", .blocks = 2});
    const auto in = world.heap().allocate<std::byte>(count, "in");
    const auto out = world.heap().allocate<std::byte>(count, "out");
    const auto result = in_place[static_cast<std::size_t>(world.pe())] ? in : out;
    Stream stream = world.make_stream("main");
    for (int call = 0; call < kCalls; ++call) {
      for (Size i = 0; i < count; ++i) out.local()[i] = std::byte{0xEE};
      for (Size i = 0; i < count; ++i) in.local()[i] = input_byte(call, world.pe(), i);
      plan->run(stream, in, result, count);
      stream.synchronize();
      for (Size i = 0; i < count; ++i) wrong += result.local()[i] != input_byte(call, kRoot, i);
    }
  });
  EXPECT_EQ(wrong, 0) << count << " bytes";
  Size moved = 0;
  for (const trace::Span& span : simulation.timeline().spans) {
    const trace::Lane& lane = simulation.timeline().lanes[span.lane];
    const bool copies = lane.kind == trace::LaneKind::kSm && span.kind != trace::SpanKind::kSignal &&
                        span.kind != trace::SpanKind::kWait;
    if (lane.pe == kRoot && copies) moved += span.bytes;
  }
  return moved / kCalls;
}

TEST(Move, TheRootOfAnInPlacePullMovesAsMuchAsOthers) {
  constexpr Size kBytes = 2'200'000;
  EXPECT_EQ(bytes_moved_by_root(kBytes, {true, true, true, true}), 3 * 549'952);  // two blocks, 16 bytes aligned
  EXPECT_EQ(bytes_moved_by_root(kBytes, {false, true, true, false}), 549'952);    // PE 2 alone is in place, too
  EXPECT_EQ(bytes_moved_by_root(kBytes, {true, false, true, true}), kBytes);      // the root copies to its output
  EXPECT_EQ(bytes_moved_by_root(250'000, {true, true, true, true}), 0);           // too small to share
}

TEST(Move, OnAStridedTeam) {
  for (const AlgorithmInfo& info : moving_algorithms()) {
    CollectiveCase c;
    c.collective = info.collective;
    c.algorithm = info.name;
    c.pes = 8;
    c.team_first = 1;
    c.team_stride = 2;
    c.team_size = 3;
    c.root = traits(c.collective).has_root() ? 2 : 0;
    expect_right(c);
    if (info.one_node_only) continue;
    c.machine = "h100x8-rail";
    c.nodes = 2;
    c.team_size = 4;
    expect_right(c);
  }
}

TEST(Move, OneNodeAlgorithmsAreRefusedByNameBetweenNodes) {
  for (const AlgorithmInfo& info : moving_algorithms()) {
    if (!info.one_node_only) continue;
    CollectiveCase c;
    c.collective = info.collective;
    c.algorithm = info.name;
    c.nodes = 2;
    try {
      check_collective(c);
      ADD_FAILURE() << describe(c) << " was not refused";
    } catch (const Unsupported& error) {
      EXPECT_NE(std::string(error.what()).find("'" + info.name + "'"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace tandem::test::move_test
