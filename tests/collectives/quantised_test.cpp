/// Collectives with codes of 8 bits on the wire: exact results on the simulator and on CPUs, and bounds of the error.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "collectives/reference/quantised.h"
#include "support/host_pes.h"
#include "support/pairwise.h"
#include "tandem/error.h"
#include "tandem/simulation.h"

namespace tandem::quantised_test {
namespace {

using kernels::kWireGroup;
using kernels::quantised_group;
using kernels::QuantisedCall;
using kernels::QuantisedGroup;
using ::testing::HasSubstr;

constexpr DType kTypes[] = {DType::kBF16, DType::kF32, DType::kF16};
constexpr Collective kCollectives3[] = {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter};

struct Case {
  Collective collective = Collective::kAllReduce;
  CollectiveOptions options;
  bool in_place = false;
  std::vector<Size> counts;
};

/// Values of magnitudes that vary within a group. Every fifth group has special values.
float value_of(int call, int pe, Size index) {
  std::uint64_t bits = static_cast<std::uint64_t>(index) * 0x9E3779B97F4A7C15U +
                       static_cast<std::uint64_t>(pe * 977 + call * 131 + 1) * 0xBF58476D1CE4E5B9U;
  bits ^= bits >> 29;
  bits *= 0x94D049BB133111EBU;
  bits ^= bits >> 32;
  const float unit = static_cast<float>(bits % 2001) / 1000.0F - 1.0F;
  const float value = std::ldexp(unit, static_cast<int>(bits >> 40 & 7) - 4);
  const Size group = index / kWireGroup;
  if (group % 5 != 3) return value;
  switch (group / 5 % 4) {
    case 0:
      return 0;
    case 1:
      return value * 1e-33F;
    case 2:
      return index % kWireGroup == 77 && pe == 0 ? std::numeric_limits<float>::infinity() : value;
    default:
      return index % kWireGroup == 5 && pe == 0 ? std::nanf("") : value;
  }
}

template <class T>
class Program {
 public:
  Program(World& world, const Case& one) : world_(world), case_(one), n_(world.num_pes()), me_(world.pe()) {}

  /// Returns the first error of this PE.
  std::string wrong() {
    const Size most = case_.options.max_count;
    const auto out_place = case_.in_place && case_.collective == Collective::kReduceScatter ? me_ : 0;
    const auto in = world_.heap().allocate<T>(most * n_, "in");
    const auto separate = world_.heap().allocate<T>(most * n_, "out");
    const auto plan = make_collective(world_, case_.collective, case_.options);
    Stream stream = world_.make_stream("main");
    std::vector<T*> results;
    for (std::size_t i = 0; i < case_.counts.size(); ++i) {
      const Size count = case_.counts[i];
      const Symm<T> out = case_.in_place ? in + out_place * count : separate;
      const bool gathers_in_place = case_.in_place && case_.collective == Collective::kAllGather;
      const Symm<T> from = gathers_in_place ? in + me_ * count : in;
      const Size ins = count * (case_.collective == Collective::kReduceScatter ? n_ : 1);
      const Size outs = count * (case_.collective == Collective::kAllGather ? n_ : 1);
      std::vector<T> host(static_cast<std::size_t>(ins));
      for (Size j = 0; j < ins; ++j) host[static_cast<std::size_t>(j)] = input(static_cast<int>(i), me_, j);
      T* const staged = world_.heap().template allocate_local<T>(ins, "input of a call");
      world_.copy_in(staged, host.data(), ins * Size{sizeof(T)});
      stream.copy_async(reinterpret_cast<std::byte*>(from.local()), reinterpret_cast<std::byte*>(staged),
                        ins * Size{sizeof(T)});
      plan->run(stream, from.template as<const std::byte>(), out.template as<std::byte>(), count);
      results.push_back(world_.heap().template allocate_local<T>(outs, "result of a call"));
      stream.copy_async(reinterpret_cast<std::byte*>(results.back()), reinterpret_cast<std::byte*>(out.local()),
                        outs * Size{sizeof(T)});
    }
    stream.synchronize();
    for (std::size_t i = 0; i < results.size(); ++i)
      if (const std::string text = error_of(static_cast<int>(i), results[i]); !text.empty()) return text;
    return "";
  }

 private:
  static T input(int call, int pe, Size index) { return convert<T>(value_of(call, pe, index)); }

  std::string error_of(int number, const T* result) const {
    const Size count = case_.counts[static_cast<std::size_t>(number)];
    QuantisedCall call{case_.collective, case_.options.wire, n_, count, {}};
    call.input = [number](int pe, Size index) { return convert<float>(input(number, pe, index)); };
    const Size parts = case_.collective == Collective::kAllGather ? n_ : 1;
    std::vector<T> host(static_cast<std::size_t>(parts * count));
    world_.copy_out(host.data(), result, parts * count * Size{sizeof(T)});
    for (Size part = 0; part < parts; ++part)
      for (Size begin = 0; begin < count; begin += kWireGroup) {
        const Size first = part * count + begin;
        const QuantisedGroup group = quantised_group(call, me_, first);
        for (std::size_t i = 0; i < group.values.size(); ++i) {
          const T got = host[static_cast<std::size_t>(first) + i];
          const T want = convert<T>(group.values[i]);
          const bool both_nan = std::isnan(convert<float>(got)) && std::isnan(convert<float>(want));
          if (!both_nan && std::memcmp(&got, &want, sizeof(T)) != 0)
            return fmt::format("call {} of {}, PE {}, element {}: {} instead of {}", number, count, me_,
                               first + static_cast<Size>(i), convert<float>(got), convert<float>(want));
        }
      }
    return "";
  }

  World& world_;
  const Case& case_;
  int n_, me_;
};

std::string wrong(World& world, const Case& one) {
  try {
    if (one.options.type == DType::kF32) return Program<float>(world, one).wrong();
    if (one.options.type == DType::kF16) return Program<f16>(world, one).wrong();
    return Program<bf16>(world, one).wrong();
  } catch (const Error& error) {
    return error.what();
  }
}

std::string text_of(const Case& one, int pes) {
  return fmt::format("{} {} as {} on {} PEs in {} blocks{}", name(one.collective), name(one.options.type),
                     name(one.options.wire), pes, one.options.blocks, one.in_place ? ", in place" : "");
}

/// Every pair of values, with counts of 0, 1, an odd number and one past a piece.
std::vector<Case> cases() {
  const test::Pairwise pairwise({3, 2, 3, 2, 3}, [](std::size_t, int, std::size_t, int) { return true; });
  constexpr int kBlocks[] = {0, 1, 3};
  std::vector<Case> list;
  for (const std::vector<int>& row : pairwise.rows()) {
    Case one;
    one.collective = kCollectives3[row[0]];
    one.options.wire = row[1] == 0 ? WireFormat::kFp8 : WireFormat::kInt8;
    one.options.type = kTypes[row[2]];
    one.in_place = row[3] == 1;
    one.options.blocks = kBlocks[row[4]];
    one.counts = {4500, 0, 1, 129, 4097, 333, 4500, 128};
    one.options.max_count = 4500;
    list.push_back(one);
  }
  return list;
}

void expect_right_in_simulator(const Case& one, int pes) {
  SCOPED_TRACE(text_of(one, pes));
  Simulation simulation(load_machine("h200x8"), pes);
  simulation.run([&](World& world) { EXPECT_EQ(wrong(world, one), ""); });
}

TEST(Quantised, IsExactInTheSimulator) {
  int number = 0;
  for (const Case& one : cases()) expect_right_in_simulator(one, 1 + number++ % 8);
}

// Rounds of blocks differ in size where a block has enough elements, and small calls of the same plan have one round.
TEST(Quantised, StaggeredRoundsOfAnAllReduceAreExact) {
  Case one;
  one.options.type = DType::kBF16;
  one.options.wire = WireFormat::kFp8;
  one.options.blocks = 3;
  one.options.max_count = 70'001;
  one.counts = {70'001, 129, 40'000, 70'001};
  for (const bool in_place : {false, true}) {
    one.in_place = in_place;
    expect_right_in_simulator(one, 2 + (in_place ? 1 : 0));
  }
}

TEST(Quantised, IsExactOnCpus) {
  int number = 0;
  for (const Case& one : cases()) {
    const int pes = 1 + number++ % 4;
    SCOPED_TRACE(text_of(one, pes));
    test::HostPes(pes, {.timeout_s = 60, .arrival_timeout_s = 120}).run([&](World& world) {
      EXPECT_EQ(wrong(world, one), "");
      world.barrier();
    });
  }
}

/// A place in the staging of a block has 32,768 elements.
TEST(Quantised, IsExactInSeveralRounds) {
  constexpr Size kTwoRounds = 32768 + 130;
  for (const Collective collective : kCollectives3) {
    Case one{collective, {.type = DType::kBF16, .wire = WireFormat::kInt8, .blocks = 1}, false, {}};
    one.options.max_count = kTwoRounds * (collective == Collective::kAllReduce ? 2 : 1);
    one.counts = {one.options.max_count, one.options.max_count - 200, one.options.max_count};
    expect_right_in_simulator(one, 2);
  }
}

/// The reference is exact (see above), so its bounds hold for the library.
TEST(Quantised, ErrorsStayWithinTheBounds) {
  for (const WireFormat wire : {WireFormat::kFp8, WireFormat::kInt8})
    for (const Collective collective : kCollectives3)
      for (const int pes : {1, 3, 8}) {
        QuantisedCall call{collective, wire, pes, 5 * kWireGroup, [](int pe, Size i) { return value_of(0, pe, i); }};
        for (Size first = 0; first < call.count; first += kWireGroup) {
          const QuantisedGroup group = quantised_group(call, pes - 1, first);
          for (std::size_t i = 0; i < group.values.size() && !std::isnan(group.bounds[i]); ++i)
            EXPECT_LE(std::abs(static_cast<double>(group.values[i]) - group.exact[i]), group.bounds[i]);
        }
      }
}

TEST(Quantised, ScalesAndCodesByHand) {
  std::vector<float> values{127, -1.5F, 0.25F, 0.75F, -126.4F};
  kernels::pass_through_wire(WireFormat::kInt8, values);  // a scale of 1
  EXPECT_THAT(values, ::testing::ElementsAre(127, -2, 0, 1, -126));
  values = {448, 17, -19, 0.001F, 1.0F / 1024};
  kernels::pass_through_wire(WireFormat::kFp8, values);  // three bits of the significand; least code 2^-9
  EXPECT_THAT(values, ::testing::ElementsAre(448, 16, -20, 1.0F / 512, 0));
}

std::string refusal(Collective collective, const CollectiveOptions& options) {
  std::string text;
  Simulation(load_machine("h200x4"), 2).run([&](World& world) {
    try {
      make_collective(world, collective, options);
    } catch (const Error& error) {
      if (world.pe() == 0) text = error.what();
    }
  });
  return text;
}

TEST(Quantised, RefusesOptionsByName) {
  constexpr auto kFp8 = WireFormat::kFp8;
  EXPECT_EQ(refusal(Collective::kBroadcast, {.wire = kFp8}),
            "wire: fp8 given to broadcast, allowed with all_reduce, all_gather and reduce_scatter");
  EXPECT_EQ(refusal(Collective::kAllReduce, {.type = DType::kI32, .wire = kFp8}),
            "type: i32 given to all_reduce with fp8 on the wire, allowed are f32, f16 and bf16");
  EXPECT_EQ(refusal(Collective::kReduceScatter, {.op = ReduceOp::kMax, .wire = WireFormat::kInt8}),
            "op: max given to reduce_scatter with int8 on the wire, allowed is sum");
  EXPECT_EQ(refusal(Collective::kAllGather, {.wire = kFp8, .algorithm = "ring"}),
            "algorithm: 'ring' given to all_gather with fp8 on the wire, allowed is quantised");
  EXPECT_THAT(refusal(Collective::kAllReduce, {.wire = static_cast<WireFormat>(9)}),
              HasSubstr("wire: 9 given to all_reduce, allowed are the values of WireFormat"));
  EXPECT_THAT(refusal(Collective::kAllReduce, {.algorithm = "quantised"}), HasSubstr("has no 'quantised'"));
  EXPECT_THROW(parse_wire_format("fp4"), InvalidArgument);
  for (const char* const text : {"type", "fp8", "int8"}) EXPECT_STREQ(name(parse_wire_format(text)), text);
}

TEST(Quantised, NoTableChoosesIt) {
  for (const AlgorithmInfo& info : collective_algorithms()) EXPECT_NE(info.name, "quantised");
  Simulation(load_machine("h200x4"), 4, {.pes_per_node = 2}).run([](World& world) {
    EXPECT_THROW(make_collective(world, Collective::kAllReduce, {.wire = WireFormat::kFp8}), Unsupported);
  });
}

}  // namespace
}  // namespace tandem::quantised_test
