// Invalid input is refused with one line, in host programs and in kernels. Nothing crashes.

#include <gmock/gmock.h>

#include <limits>

#include "tandem/barrier.h"
#include "tandem/check.h"
#include "tandem/collectives.h"
#include "tandem/error.h"
#include "tandem/simulation.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

constexpr Size kMost = std::numeric_limits<Size>::max();

/// Returns the text of InvalidArgument from a run of `program` on two PEs, or "".
std::string refusal(const std::function<void(World&)>& program) {
  try {
    Simulation(load_machine("h200x4"), 2).run(program);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return {};
}

/// One operation that cannot be.
struct Wrong {
  enum What { kNothing, kSignal, kPut, kPutToNone, kGetFromNone, kStore, kAtomic, kEpoch, kPacket, kWait, kRoles };
  struct Args {
    Symm<float> data;
    Signals word;
    What what;
    int pe;
    const LLPacket* packets = nullptr;
  };
  template <class Block>
  static void run(Block& block, const Args& a) {
    switch (a.what) {
      case kNothing:
        return;
      case kSignal:
        return block.signal(a.word, 1, a.pe);
      case kPut:
        return block.put(a.data, a.data.local(), 4, a.pe);
      case kPutToNone:
        return block.put(Symm<float>{}, a.data.local(), 4, 1);
      case kGetFromNone:
        return block.get(a.data.local(), Symm<const float>{}, 4, 1);
      case kStore:
        return block.store(static_cast<float*>(nullptr), {0, 4}, block.template load<float>(a.data.local(), {0, 4}));
      case kAtomic:
        block.fetch_add(static_cast<std::uint32_t*>(nullptr), std::uint32_t{1});
        return;
      case kEpoch:
        block.next_epoch(Epochs{});
        return;
      case kPacket:
        block.template ll_get<float, float>(a.packets, 4, 1);
        return;
      case kWait:
        block.wait(Signals{}, 1, 1);
        return;
      case kRoles:
        return block.template parallel_for<1>(3, [](auto&, int) {});
    }
  }
};

std::string refusal_of_kernel(Wrong::What what, int pe = 1) {
  return refusal([&](World& world) {
    const auto data = world.heap().allocate<float>(16, "data");
    const auto word = world.heap().signals(1, "word");
    Stream stream = world.make_stream("main");
    stream.launch<Wrong>({1, 64}, {data, word, what, pe});
    stream.synchronize();
  });
}

TEST(BadInput, KernelsAreToldWhatCannotBe) {
  EXPECT_EQ(refusal_of_kernel(Wrong::kNothing), "");
  for (const int pe : {-1, 2, 1000}) {
    EXPECT_THAT(refusal_of_kernel(Wrong::kSignal, pe), HasSubstr("no PE's memory: PEs are 0 to 1")) << pe;
    EXPECT_THAT(refusal_of_kernel(Wrong::kPut, pe), HasSubstr("no PE's memory: PEs are 0 to 1")) << pe;
  }
  EXPECT_THAT(refusal_of_kernel(Wrong::kPutToNone), HasSubstr("no PE's memory"));
  EXPECT_THAT(refusal_of_kernel(Wrong::kGetFromNone), HasSubstr("no PE's memory"));
  EXPECT_THAT(refusal_of_kernel(Wrong::kStore), HasSubstr("store of a null address by PE"));
  EXPECT_THAT(refusal_of_kernel(Wrong::kAtomic), HasSubstr("atomic of a null address"));
  EXPECT_THAT(refusal_of_kernel(Wrong::kEpoch), HasSubstr("next_epoch of a null address"));
  EXPECT_THAT(refusal_of_kernel(Wrong::kPacket), HasSubstr("packet load of a null address"));
  EXPECT_THAT(refusal_of_kernel(Wrong::kWait), HasSubstr("wait of a null address"));
  EXPECT_THAT(refusal_of_kernel(Wrong::kRoles), HasSubstr("roles of 3 warps in all asked, the block has 2"));
}

TEST(BadInput, AllocationsThatOverflowAreRefused) {
  for (const Size count : {Size{-1}, Size{1} << 61, Size{1} << 62, kMost, -kMost})
    EXPECT_THAT(refusal([&](World& world) { world.heap().allocate<double>(count, "x"); }), HasSubstr("allocation 'x'"))
        << count;
  EXPECT_THAT(refusal([](World& world) { world.heap().allocate_local<float>(kMost, "x"); }), HasSubstr("allocation"));
}

TEST(BadInput, CopiesStayWithinOnePesMemory) {
  float host[4] = {};
  const auto with_buffer = [](const std::function<void(World&, Symm<float>)>& use) {
    return refusal([&](World& world) { use(world, world.heap().allocate<float>(16, "x")); });
  };
  EXPECT_EQ(with_buffer([&](World& w, Symm<float> x) { w.copy_in(x.local(), host, sizeof host); }), "");
  EXPECT_THAT(with_buffer([&](World& w, Symm<float>) { w.copy_in(nullptr, host, 4); }), HasSubstr("copy_in"));
  EXPECT_THAT(with_buffer([&](World& w, Symm<float> x) { w.copy_out(nullptr, x.local(), 4); }), HasSubstr("copy_out"));
  EXPECT_THAT(with_buffer([&](World& w, Symm<float> x) { w.copy_in(x.local(), host, -4); }), HasSubstr("-4 bytes"));
  EXPECT_THAT(with_buffer([&](World& w, Symm<float> x) { w.copy_out(host, x.local(), Size{1} << 40); }),
              HasSubstr("one PE's memory"));
  EXPECT_THAT(
      with_buffer([&](World& w, Symm<float> x) { w.make_stream("main").copy_async(x.on(1), x.on(0), Size{1} << 40); }),
      HasSubstr("copy_async"));
}

TEST(BadInput, StreamsNeedAddressesOfPes) {
  EXPECT_THAT(refusal([](World& world) { world.make_stream("main").wait_signal(nullptr, 1); }),
              HasSubstr("wait_signal"));
  EXPECT_THAT(refusal([](World& world) { world.make_stream("main").write_signal(nullptr, 1); }),
              HasSubstr("write_signal"));
  EXPECT_THAT(refusal([](World& world) {
                Stream stream = world.make_stream("main");
                barrier_on(stream, TeamBarrier{}, world.team());
              }),
              HasSubstr("make_team_barrier"));
  const auto with_bias_of_the_host = [](World& world) {
    const std::vector<bf16> bias(8);
    bf16* const matrix = world.heap().allocate_local<bf16>(64, "a, b and c");
    Gemm gemm;
    gemm.m = gemm.n = gemm.k = 8;
    gemm.a = gemm.b = matrix;
    gemm.destination = GemmLocal{matrix};
    gemm.bias = bias.data();
    world.make_stream("main").gemm(gemm, world.team());
  };
  EXPECT_THAT(refusal(with_bias_of_the_host), HasSubstr("gemm: bias is"));
  for (const char* const left_out : {"a", "b", "c"}) {
    const auto without = [&](World& world) {
      Gemm gemm;
      gemm.m = gemm.n = gemm.k = 8;
      gemm.a = world.heap().allocate_local<bf16>(64, "a");
      gemm.b = world.heap().allocate_local<bf16>(64, "b");
      gemm.destination = GemmLocal{world.heap().allocate_local<bf16>(64, "c")};
      if (*left_out == 'a') gemm.a = nullptr;
      if (*left_out == 'b') gemm.b = nullptr;
      if (*left_out == 'c') gemm.destination = GemmLocal{};
      world.make_stream("main").gemm(gemm, world.team());
    };
    EXPECT_THAT(refusal(without), HasSubstr(std::string("gemm: ") + left_out + " is"));
  }
}

TEST(BadInput, SimulationsNeedAMachineWithFiguresAProgramAndAHeapThatCanBe) {
  const Machine machine = load_machine("h200x4");
  EXPECT_THROW(Simulation(Machine{}, 2), InvalidArgument);
  EXPECT_THROW(Simulation(machine, 2, {.heap_bytes = -1}), InvalidArgument);
  EXPECT_THROW(Simulation(machine, 2, {.heap_bytes = kMost}), InvalidArgument);
  EXPECT_THROW(Simulation(machine, 2, {.heap_limit_bytes = kMost}), InvalidArgument);
  EXPECT_THROW(Simulation(machine, 2).run(nullptr), InvalidArgument);
  EXPECT_THROW(check(nullptr, {.machine = machine}), InvalidArgument);
  Simulation simulation(machine, 2);
  simulation.run([](World&) {});
  EXPECT_THROW(simulation.run([](World&) {}), InvalidArgument);
}

TEST(BadInput, TeamsDoNotOverflow) {
  constexpr int most = std::numeric_limits<int>::max();
  EXPECT_THAT(refusal([](World& world) { world.split_strided(0, most, most); }), HasSubstr("split_strided"));
}

TEST(BadInput, CollectivesNameTheOption) {
  const auto make = [](Collective collective, const CollectiveOptions& options) {
    return refusal([&](World& world) { make_collective(world, collective, options); });
  };
  EXPECT_EQ(make(Collective::kAllReduce, {.max_count = 4}), "");
  EXPECT_THAT(make(static_cast<Collective>(99), {.max_count = 4}), HasSubstr("collective: no number 99"));
  EXPECT_THAT(make(Collective::kAllGather, {.max_count = Size{1} << 62}), HasSubstr("max_count"));
  EXPECT_THAT(make(Collective::kAllReduce, {.max_count = 4, .blocks = 529}), HasSubstr("allowed are 1 to 528"));
  EXPECT_THAT(make(Collective::kAllReduce, {.type = static_cast<DType>(99)}), HasSubstr("dtype"));
  for (const bool has_in : {false, true})
    for (const char* const algorithm : {"two_shot", "copy_engine"})
      EXPECT_THAT(refusal([&](World& world) {
                    const auto plan =
                        make_collective(world, Collective::kAllReduce, {.max_count = 4, .algorithm = algorithm});
                    const auto buffer = world.heap().allocate<std::byte>(64, "buffer");
                    Stream stream = world.make_stream("main");
                    plan->run(stream, has_in ? buffer : Symm<std::byte>{}, {}, 4);
                  }),
                  HasSubstr(has_in ? "out: no buffer given" : "in: no buffer given"));
  for (const char* const algorithm : {"two_shot", "copy_engine"})
    EXPECT_THAT(refusal([&](World& world) {
                  const auto plan =
                      make_collective(world, Collective::kAllReduce, {.max_count = 4, .algorithm = algorithm});
                  const auto buffer = world.heap().allocate<std::byte>(64, "buffer");
                  Stream stream = world.make_stream("main");
                  plan->run(stream, buffer, buffer + 18, 4);
                }),
                HasSubstr("allowed are multiples of 4 bytes"));
}

/// Returns the error of a call of `collective` with these offsets into one buffer, or "".
std::string overlap(Collective collective, Size in, Size out, bool times_pe_in = false, bool times_pe_out = false) {
  return refusal([=](World& world) {
    constexpr Size kCount = 4;
    const auto plan = make_collective(world, collective, {.max_count = kCount});
    const auto buffer = world.heap().allocate<float>(64, "buffer");
    const auto at = [&](Size offset, bool times_pe) {
      return (buffer + offset + (times_pe ? world.pe() * kCount : 0)).as<std::byte>();
    };
    Stream stream = world.make_stream("main");
    plan->run(stream, at(in, times_pe_in), at(out, times_pe_out), kCount);
    stream.synchronize();
  });
}

TEST(BadInput, CollectivesRefuseBuffersThatOverlap) {
  using enum Collective;
  EXPECT_THAT(overlap(kAllReduce, 0, 1), HasSubstr("in, out: buffers that overlap"));
  EXPECT_THAT(overlap(kAllGather, 1, 0, true, false), HasSubstr("buffers that overlap"));
  EXPECT_THAT(overlap(kReduceScatter, 0, 2, false, true), HasSubstr("buffers that overlap"));
  for (const Collective collective : {kAllToAll, kSendRecv, kExchange})
    EXPECT_THAT(overlap(collective, 0, 0), HasSubstr("allowed are separate ones"));
  EXPECT_EQ(overlap(kAllReduce, 0, 0), "");
  EXPECT_EQ(overlap(kBroadcast, 0, 0), "");
  EXPECT_EQ(overlap(kAllGather, 0, 0, true, false), "");
  EXPECT_EQ(overlap(kReduceScatter, 0, 0, false, true), "");
  EXPECT_EQ(overlap(kAllReduce, 0, 4), "");  // next to each other
}

TEST(BadInput, CollectivesRefuseTeamsThatAreNone) {
  const auto make = [](const Team& team) {
    return refusal([&](World& world) { make_collective(world, Collective::kAllReduce, {.max_count = 4}, team); });
  };
  EXPECT_THAT(make({.first = 3, .stride = 5, .size = 9, .me = 0, .node_size = 9}), HasSubstr("team: first 3"));
  EXPECT_THAT(make({.size = 0}), HasSubstr("team: "));
  EXPECT_THAT(make({.size = 2, .node_size = 0}), HasSubstr("team: "));
  EXPECT_THAT(refusal([](World& world) {
                make_collective(world, Collective::kAllReduce, {.op = static_cast<ReduceOp>(99), .max_count = 4});
              }),
              HasSubstr("op: 99"));
}

TEST(BadInput, AGridHasAnEnd) {
  struct Nothing {
    struct Args {};
    static void run(cpu::Block&, const Args&) {}
  };
  EXPECT_THAT(refusal([](World& world) { world.make_stream("main").launch<Nothing>({.blocks = 2'000'000'000}, {}); }),
              HasSubstr("2000000000 blocks given"));
}

}  // namespace
}  // namespace tandem
