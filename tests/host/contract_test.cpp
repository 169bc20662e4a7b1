/// The contract of tandem/block.h, on PEs in real threads: the same cases and expectations as in the simulator
/// (tests/sim/block_test.cpp) and on GPUs (tests/gpu/memory/litmus_gpu_check.cpp).

#include <gtest/gtest.h>

#include "gpu/memory/litmus_kernels.h"
#include "support/block_cases.h"
#include "support/host_pes.h"

namespace tandem {
namespace {

void check_cases(int pes, const test::HostOptions& options = {}) {
  test::HostPes(pes, options).run([](World& world) {
    test::each_block_case([&](auto type) {
      using Case = typename decltype(type)::type;
      EXPECT_EQ(Case::wrong(world), 0) << type_name<Case>() << " on PE " << world.pe();
    });
  });
}

TEST(HostContract, EveryOperationGivesWhatItPromises) {
  for (const int pes : {1, 2, 3}) check_cases(pes);
}

TEST(HostContract, EveryOperationGivesWhatItPromisesToBlocksOnSeveralThreads) {
  for (const int pes : {1, 2}) check_cases(pes, {.threads = 3});
}

TEST(HostContract, EveryOperationGivesWhatItPromisesWhileItIsRecorded) {
  check_cases(3, {.has_multicast = true, .threads = 2, .is_recorded = true});
}

TEST(HostContract, MulticastIsThereWhereTheMachineSaysSo) { check_cases(3, {.has_multicast = true}); }

constexpr int kBlocks = 8;
constexpr Size kWords = 500;  // of a block

/// Data and signals that travel round a ring of PEs, as on GPUs: nothing is read too early.
template <class Kernel>
void litmus_on_threads(int pes, int rounds, int threads) {
  test::HostPes(pes, {.threads = threads}).run([=](World& world) {
    test::LitmusArgs args{};
    args.data = world.heap().allocate<std::uint32_t>(kBlocks * kWords, "data");
    args.packets = world.heap().allocate<LLPacket>(2 * kBlocks * packets_for<LLPacket>(kWords * 4), "packets");
    args.lines = world.heap().allocate<LL128Line>(2 * kBlocks * (packets_for<LL128Line>(kWords * 4) + 8), "lines");
    std::vector<std::uint32_t> base(kWords);
    for (std::size_t i = 0; i < base.size(); ++i) base[i] = static_cast<std::uint32_t>(test::mix(1, 0, 0, i));
    args.base = test::device_copy(world, base, "base");
    args.differences = test::device_copy(world, std::vector<std::uint32_t>(kBlocks * kWords), "differences");
    args.arrived = world.heap().signals(kBlocks, "arrived");
    args.released = world.heap().signals(kBlocks, "released");
    args.epochs = world.heap().epochs(kBlocks, "epochs");
    args.count = kWords;
    args.rounds = rounds;
    world.barrier();
    Stream stream = world.make_stream("main");
    stream.launch<Kernel>({kBlocks, 64}, args);
    stream.launch<Kernel>({kBlocks, 64}, args);
    stream.synchronize();
    const auto differences = test::host_copy(world, args.differences, kBlocks * kWords);
    for (const std::uint32_t difference : differences) ASSERT_EQ(difference, 0U);
  });
}

template <class Kernel>
void litmus(int pes, int rounds) {
  for (const int threads : {1, 3}) litmus_on_threads<Kernel>(pes, rounds, threads);
}

TEST(HostLitmus, StoresArriveBeforeTheirNotify) { litmus<test::StoreNotify>(3, 200); }
TEST(HostLitmus, StoresArriveBeforeASignalBehindAFence) { litmus<test::StoreFenceSignal>(3, 200); }
TEST(HostLitmus, DataArrivesBeforeItsPutSignal) { litmus<test::PutSignal>(3, 200); }
TEST(HostLitmus, PacketsCarryTheirFlags) {
  litmus<test::Packets<LLPacket>>(2, 200);
  litmus<test::Packets<LL128Line>>(2, 200);
}
TEST(HostLitmus, OrderIsTransitive) { litmus<test::Transitive>(3, 200); }

}  // namespace
}  // namespace tandem
