// Invalid accesses of a kernel or a GEMM are refused with one line. Nothing crashes.

#include <gmock/gmock.h>

#include <limits>
#include <optional>

#include "check/conformance.h"
#include "tandem/error.h"
#include "tandem/simulation.h"

namespace tandem::bad_kernel_input_test {
namespace {

using check_test::Env;
using check_test::Kernel;
using ::testing::HasSubstr;

constexpr Size kN = Env::kCount;
constexpr Size kMost = std::numeric_limits<Size>::max();

Machine with_multicast() {
  Machine machine = load_machine("h200x4");
  machine.link.multicast = true;
  return machine;
}

/// Returns the error of a kernel of PE 0, or "".
template <class Body>
std::string refusal(const Body& body, const SimOptions& options = {}, int pes = 2) {
  const auto program = [&](World& world) {
    const Env env = check_test::make_env(world);
    Stream stream = world.make_stream("main");
    if (world.pe() == 0) stream.launch<Kernel<Body>>({1, 64}, {body, env});
    stream.synchronize();
  };
  try {
    Simulation(with_multicast(), pes, options).run(program);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(BadKernelInput, BothEndsOfAPutAreMemory) {
  EXPECT_EQ(refusal([](auto& b, const Env& e) { b.put(e.data, e.local, kN, 1); }), "");
  EXPECT_EQ(refusal([](auto& b, const Env& e) { b.put(e.data, nullptr, 0, 1); }), "");
  EXPECT_THAT(refusal([](auto& b, const Env& e) { b.put(e.data, nullptr, kN, 1); }),
              HasSubstr("load for a put of a null address"));
  EXPECT_THAT(refusal([](auto& b, const Env& e) { b.get(static_cast<float*>(nullptr), e.data, kN, 1); }),
              HasSubstr("store for a get of a null address"));
  const float on_stack = 0;
  EXPECT_THAT(refusal([&](auto& b, const Env& e) { b.put(e.data, &on_stack, 1, 1); }), HasSubstr("load for a put"));
  for (const Size count : {Size{1} << 33, Size{1} << 36}) {
    EXPECT_THAT(refusal([=](auto& b, const Env& e) { b.put(e.data, e.local, count, 1); }),
                HasSubstr("which are not in one PE's memory"));
    EXPECT_THAT(refusal([=](auto& b, const Env& e) { b.get(e.local, e.data, count, 1); }),
                HasSubstr("which are not in one PE's memory"));
  }
  EXPECT_THAT(refusal([](auto& b, const Env& e) { b.copy(e.local, e.result, -1); }), HasSubstr("copy of -4 bytes"));
}

TEST(BadKernelInput, ThePutsSignalIsOnThePeOfItsData) {
  EXPECT_EQ(refusal([](auto& b, const Env& e) { b.put_signal(e.data, e.local, kN, e.words, 1, 1); }), "");
  EXPECT_THAT(refusal([](auto& b, const Env& e) { b.put_signal(e.data, e.local, kN, Signals{}, 1, 1); }),
              HasSubstr("put_signal's signal to"));
  EXPECT_THAT(
      refusal([](auto& b, const Env& e) { b.put_signal(e.data, e.local, kN, Signals(e.words.on(0), 0, 0), 1, 1); }),
      HasSubstr("the data is for PE 1, the signal for PE 0"));
}

TEST(BadKernelInput, MultimemStaysWithinTheMemory) {
  const auto store = [](Size far) {
    return [=](auto& b, const Env& e) {
      b.multimem_store(e.data + far, {0, kN}, b.template load<float>(e.local, {0, kN}));
    };
  };
  EXPECT_EQ(refusal(store(0)), "");
  EXPECT_THAT(refusal(store(Size{1} << 40)), HasSubstr("multimem access of 128 bytes"));
}

TEST(BadKernelInput, WaitsAreForAsManyWordsAsThereMayBe) {
  EXPECT_EQ(refusal([](auto& b, const Env&) { b.wait(Signals{}, 0, 1); }), "");
  EXPECT_THAT(refusal([](auto& b, const Env& e) { b.wait(e.words, -1, 1); }), HasSubstr("wait of -1 words"));
  EXPECT_THAT(refusal([](auto& b, const Env&) { b.wait(Signals{}, -1, 1); }), HasSubstr("wait of -1 words"));
  for (const Size n : {(Size{1} << 61) + 1, Size{1} << 61, kMost})
    EXPECT_THAT(refusal([=](auto& b, const Env& e) { b.wait(e.words, n, 0); }),
                HasSubstr("which are not in one PE's memory"));
}

TEST(BadKernelInput, AccessesStayWithinOneBuffer) {
  EXPECT_THAT(refusal([](auto& b, const Env& e) {
                b.template load<float>(e.data.local(), {kN - 1, kN + 1});
              }),
              HasSubstr("load of 8 bytes by PE 0 at data[31, 33) on PE 0, which are not within one buffer (the buffer "
                        "has 4 bytes from there)"));
  EXPECT_THAT(refusal([](auto& b, const Env& e) { b.put(e.data, e.local, kN + 1, 1); }),
              HasSubstr("put of 132 bytes by PE 0 at data[0, 33) on PE 1"));
  EXPECT_THAT(refusal([](auto& b, const Env& e) { b.notify(e.words + 16, 1, 1); }),
              HasSubstr("signal of 8 bytes by PE 0 at words + 128 of 128 bytes on PE 1"));
  EXPECT_THAT(refusal([](auto& b, const Env& e) { b.wait(e.words + 10, 8, 0); }),
              HasSubstr("wait of 64 bytes by PE 0 at words[10, 18) on PE 0"));
  EXPECT_THAT(refusal([](auto& b, const Env& e) { b.notify_all(e.words + 15, 1); }),
              HasSubstr("notify_all of 16 bytes"));
  EXPECT_THAT(refusal([](auto& b, const Env& e) { b.wait_all(e.words + 15, 0); }), HasSubstr("wait_all of 16 bytes"));
  EXPECT_EQ(refusal([](auto& b, const Env& e) { b.put(e.data + kN, e.local + kN, 0, 1); }), "");
}

TEST(BadKernelInput, PacketsBeginAtMultiplesOf16Bytes) {
  const char* const text = "packets begin at a multiple of 16 bytes";
  EXPECT_THAT(refusal([](auto& b, const Env& e) { b.ll_put(e.packets + 1, e.local, 2, 1, 1); }),
              HasSubstr("packet store at packets[1] on PE 1 by PE 0: packets begin at a multiple of 16 bytes"));
  EXPECT_THAT(refusal([](auto& b, const Env& e) { b.template ll_get<float, float>(e.packets.local() + 1, 2, 0); }),
              HasSubstr(text));
  EXPECT_THAT(refusal([](auto& b, const Env& e) { b.ll_forward(e.packets, e.packets.local() + 3, 2, 0, 1); }),
              HasSubstr(text));
  EXPECT_EQ(refusal([](auto& b, const Env& e) { b.ll_put(e.packets + 2, e.local, 2, 1, 1); }), "");
}

TEST(BadKernelInput, NoBlockWaitsForTheFlagOfUnwrittenPackets) {
  const Epoch lower_half_is_0 = Epoch{1} << 32;
  const auto get = [](Epoch epoch) {
    return [epoch](auto& b, const Env& e) { b.template ll_get<float, float>(e.packets.local(), 2, epoch); };
  };
  const char* const text = "packet load at packets[0] on PE 0 by PE 0 for flag 0, which packets hold that no PE wrote";
  EXPECT_THAT(refusal(get(0)), HasSubstr(text));
  EXPECT_THAT(refusal(get(lower_half_is_0)), HasSubstr(text));
  EXPECT_THAT(refusal([](auto& b, const Env& e) { b.ll_forward(e.packets, e.packets.local(), 2, 0, 1); }),
              HasSubstr(text));
}

TEST(BadKernelInput, CopiesDoNotOverlap) {
  EXPECT_THAT(refusal([](auto& b, const Env& e) { b.copy(e.local + 1, e.local, 2); }),
              HasSubstr("copy of 8 bytes from local[0] on PE 0 to local[1] on PE 0, which overlap"));
  EXPECT_THAT(refusal([](auto& b, const Env& e) { b.copy(e.local, e.local, 2); }), HasSubstr("which overlap"));
  EXPECT_EQ(refusal([](auto& b, const Env& e) { b.copy(e.local + 2, e.local, 2); }), "");
}

TEST(BadKernelInput, FragmentsAreAsLongAsTheirRanges) {
  const auto store = [](Size loaded, Size stored) {
    return [=](auto& b, const Env& e) { b.store(e.result, {0, stored}, b.template load<float>(e.local, {0, loaded})); };
  };
  EXPECT_EQ(refusal(store(4, 4)), "");
  EXPECT_THAT(refusal(store(4, 8)), HasSubstr("store of a fragment of 4 elements, its range has 8"));
  EXPECT_THAT(refusal(store(8, 4)), HasSubstr("store of a fragment of 8 elements, its range has 4"));
  EXPECT_THAT(refusal([](auto& b, const Env& e) {
                b.multimem_store(e.data, {0, 8}, b.template load<float>(e.local, {0, 4}));
              }),
              HasSubstr("multimem_store of a fragment of 4 elements, its range has 8"));
  EXPECT_THAT(refusal([](auto& b, const Env& e) {
                const auto four = b.template load<float>(e.local, {0, 4});
                const auto eight = b.template load<float>(e.local, {0, 8});
                (void)b.combine(ReduceOp::kSum, four, eight);
              }),
              HasSubstr("two fragments of 4 and 8 elements"));
}

TEST(BadKernelInput, FragmentsAreNoLongerThanATile) {
  const auto program = [](Size elements) {
    return [=](World& world) {
      const auto data = world.heap().allocate<float>(elements, "data");
      const auto body = [=](auto& b, const Env&) { b.template load<float>(data.local(), {0, elements}); };
      Stream stream = world.make_stream("main");
      stream.launch<Kernel<std::remove_const_t<decltype(body)>>>({1, 64}, {body, {}});
      stream.synchronize();
    };
  };
  Simulation(load_machine("h200x4"), 1).run(program(16384));
  EXPECT_THROW(Simulation(load_machine("h200x4"), 1).run(program(16385)), CheckFailed);
}

TEST(BadKernelInput, FragmentsOfOtherLayoutsDoNotMeet) {
  EXPECT_THAT(refusal([](auto& b, const Env& e) {
                const auto words = b.template load<float>(e.cell.local(), {0, 4});
                (void)(b.template load<float>(e.local, {0, 4}) + words);
              }),
              HasSubstr("two fragments that were loaded from elements of 4 and 8 bytes"));
  EXPECT_THAT(refusal([](auto& b, const Env& e) {
                const auto words = b.template load<float>(e.cell.local(), {0, 4});
                b.template ll_put_fragment<float>(e.packets, words, 1, 1);
              }),
              HasSubstr("ll_put_fragment of a fragment that was loaded from elements of 8 bytes, allowed are 4"));
  EXPECT_EQ(refusal([](auto& b, const Env& e) {
              b.store(e.result, {0, 4}, b.template load<float>(e.cell.local(), {0, 4}));
            }),
            "");
}

TEST(BadKernelInput, FragmentsStayWithTheRoleThatLoadedThem) {
  EXPECT_THAT(refusal([](auto& b, const Env& e) {
                const auto of_block = b.template load<float>(e.local, {0, 4});
                b.template parallel_for<1>(1, [&](auto& role, int) { role.store(e.result, {0, 4}, of_block); });
              }),
              HasSubstr("store of a fragment that another block or role has loaded"));
  EXPECT_THAT(refusal([](auto& b, const Env& e) {
                const auto of_block = b.template load<float>(e.local, {0, 4});
                b.template parallel_for<1>(1, [&](auto& role, int) {
                  (void)(role.template load<float>(e.local, {0, 4}) + of_block);
                });
              }),
              HasSubstr("two fragments that two blocks or roles have loaded"));
}

TEST(BadKernelInput, RolesHaveWarps) {
  EXPECT_THAT(refusal([](auto& b, const Env&) { b.template parallel_for<0>(1, [](auto&, int) {}); }),
              HasSubstr("a role of 0 warps asked, at least 1"));
  EXPECT_THAT(refusal([](auto& b, const Env&) { b.template parallel<2, -1>([](auto&) {}, [](auto&) {}); }),
              HasSubstr("a role of -1 warps asked, at least 1"));
}

TEST(BadKernelInput, PhantomDataHasNoContents) {
  SimOptions phantom;
  phantom.phantom = true;
  const auto words = [](const Env& e) { return e.data.template as<Signal>(); };
  const char* const text = "which a phantom simulation has no contents of";
  EXPECT_EQ(refusal([](auto& b, const Env& e) { b.fetch_add(e.cell.local(), Epoch{1}); }, phantom), "");
  EXPECT_EQ(refusal([](auto& b, const Env& e) { b.compare_swap(e.cell.on(1), Epoch{1}, Epoch{2}); }, phantom), "");
  EXPECT_THAT(refusal([=](auto& b, const Env& e) { b.notify(words(e), 1, 1); }, phantom), HasSubstr(text));
  EXPECT_THAT(refusal([=](auto& b, const Env& e) { b.put_signal(e.data, e.local, kN, words(e), 1, 1); }, phantom),
              HasSubstr(text));
  EXPECT_THAT(refusal([=](auto& b, const Env& e) { b.wait(words(e), 1, 1); }, phantom), HasSubstr(text));
  EXPECT_THAT(refusal([=](auto& b, const Env& e) { b.signal_test(words(e), Cmp::kGe, 1); }, phantom), HasSubstr(text));
  EXPECT_THAT(refusal([](auto& b, const Env& e) { b.next_epoch({e.cell.local()}); }, phantom), HasSubstr(text));
  EXPECT_THAT(
      refusal([](auto& b, const Env& e) { b.ll_put(e.data.template as<LLPacket>(), e.local, 4, 1, 1); }, phantom),
      HasSubstr(text));
  EXPECT_THAT(
      refusal(
          [](auto& b, const Env& e) { b.template ll_get<float, float>(e.data.template as<LLPacket>().local(), 4, 1); },
          phantom),
      HasSubstr(text));
  EXPECT_THAT(refusal([](auto& b, const Env& e) { b.ll_put(e.packets, e.local, Size{1} << 32, 1, 1); }, phantom),
              HasSubstr("which are not in one PE's memory"));
}

TEST(BadKernelInput, AnotherNodesMemoryIsReachedByPutAndGetAlone) {
  SimOptions two_nodes;
  two_nodes.pes_per_node = 2;
  const auto refused = [&](const auto& body) { return refusal(body, two_nodes, 4); };
  const char* const text = "by PE 0, which cannot reach it by loads and stores";
  EXPECT_EQ(refused([](auto& b, const Env& e) { b.put(e.data, e.other.on(1), kN, 3), b.quiet(); }), "");
  EXPECT_EQ(refused([](auto& b, const Env& e) { b.get(e.data.on(1), e.other, kN, 3), b.quiet(); }), "");
  EXPECT_THAT(refused([](auto& b, const Env& e) { b.put(e.data, e.other.on(3), kN, 0); }), HasSubstr(text));
  EXPECT_THAT(refused([](auto& b, const Env& e) { b.get(e.data.on(3), e.other, kN, 1); }), HasSubstr(text));
  EXPECT_THAT(refused([](auto& b, const Env& e) {
                b.multimem_store(e.data, {0, kN}, b.template load<float>(e.local, {0, kN}));
              }),
              HasSubstr(text));
  EXPECT_THAT(refused([](auto& b, const Env& e) {
                b.template multimem_load_reduce<float>(e.data, {0, kN}, ReduceOp::kSum);
              }),
              HasSubstr(text));
}

TEST(BadKernelInput, AStreamIsWaitedForWithinTheRun) {
  std::optional<Stream> kept;
  const auto waits = [](auto& b, const Env& e) { b.wait(e.words, 1, 1); };
  Simulation simulation(load_machine("h200x4"), 1);
  EXPECT_THROW(simulation.run([&](World& world) {
    const Env env = check_test::make_env(world);
    kept = world.make_stream("kept");
    kept->launch<Kernel<decltype(waits)>>({1, 32}, {waits, env});
    kept->synchronize();
  }),
               Deadlock);
  try {
    kept->synchronize();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("stream kept: synchronize given, allowed within a host program's run alone"));
  }
}

/// Returns the error of a GEMM of 16 x 16 x 16 that `change` makes wrong.
std::string refusal_of_gemm(const std::function<void(World&, Gemm&)>& change, const SimOptions& options = {}) {
  const auto program = [&](World& world) {
    Gemm gemm;
    gemm.m = gemm.n = gemm.k = gemm.tile_m = gemm.tile_n = 16;
    gemm.type = gemm.out_type = DType::kF32;
    const auto matrix = [&](const char* name) { return world.heap().allocate<float>(256, name).local(); };
    gemm.a = matrix("a");
    gemm.b = matrix("b");
    gemm.destination = GemmLocal{matrix("c")};
    change(world, gemm);
    world.make_stream("main").gemm(gemm, world.team());
  };
  try {
    Simulation(load_machine("h200x4"), 2, options).run(program);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return {};
}

TEST(BadKernelInput, AGemmsMatricesLieInThePesMemory) {
  EXPECT_EQ(refusal_of_gemm([](World&, Gemm&) {}), "");
  const auto far = [](const char* field) {
    return refusal_of_gemm([=](World& world, Gemm& gemm) {
      const std::string name = field;
      if (name == "a") gemm.m = Size{1} << 30;
      if (name == "b") gemm.n = Size{1} << 30;
      if (name == "c") gemm.k = 0, gemm.m = gemm.n = kMost / 2;
      if (name == "bias") gemm.k = 0, gemm.n = Size{1} << 40, gemm.bias = gemm.a;
      if (name == "scales.a") gemm.scales.a = static_cast<const float*>(gemm.a), gemm.scales.a_per_row = true;
      if (name == "scales.a") gemm.k = 0, gemm.m = Size{1} << 40;
      if (name == "notify") gemm.destination = GemmLocal{gemm.destination.c(), {Signals{} + 1, true}};
      if (name == "gate.words") gemm.gate.words = Signals{}.local() + 1, gemm.rows.rows = gemm.m;
      if (name == "own_a") gemm.own_a = gemm.a, gemm.a = nullptr, gemm.rows.rows = gemm.m = Size{1} << 30;
      if (name == "ring.arrived") {
        gemm.order = TileOrder::kPeersFirst;
        gemm.rows = {.rows = 16, .shards = 2};
        GemmRing ring{.c = gemm.destination.c()};
        ring.received = world.heap().allocate<std::byte>(1024, "received").local();
        ring.forwarded = world.heap().allocate<std::byte>(1024, "forwarded").local();
        gemm.destination = ring;
      }
    });
  };
  for (const char* const field : {"a", "b", "c", "bias", "scales.a", "notify", "gate.words", "own_a", "ring.arrived"})
    EXPECT_THAT(far(field), HasSubstr(std::string("gemm: ") + field + " is ")) << field;
}

TEST(BadKernelInput, AGemmsPiecesAreThoseOfItsRows) {
  EXPECT_THAT(refusal_of_gemm([](World& world, Gemm& gemm) {
                gemm.gate = {world.heap().signals(1, "gate").local(), world.heap().epochs(1, "epoch").words};
              }),
              HasSubstr("gemm: rows.rows is 0, allowed: m"));
}

TEST(BadKernelInput, AGemmReachesItsMatricesByLoadsAndStores) {
  SimOptions two_nodes;
  two_nodes.pes_per_node = 1;
  EXPECT_THAT(refusal_of_gemm(
                  [](World& world, Gemm& gemm) {
                    gemm.destination = GemmLocal{world.heap().allocate<float>(256, "at the other").on(1 - world.pe())};
                  },
                  two_nodes),
              HasSubstr("cannot reach by loads and stores"));
}

}  // namespace
}  // namespace tandem::bad_kernel_input_test
