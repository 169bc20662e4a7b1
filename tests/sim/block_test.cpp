// Every operation of the block, alone: what arrives, when it may be seen, and what is refused.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "support/block_cases.h"
#include "support/body_kernel.h"
#include "support/every_operation.h"
#include "tandem/error.h"
#include "tandem/simulation.h"

namespace tandem::block_test {
namespace {

template <class Body>
void launch(Stream& stream, Grid grid, const Body& body) {
  test::launch(stream, grid, body);
  stream.synchronize();
}

void simulate(int pes, const std::function<void(World&)>& program, const SimOptions& options = {}) {
  Simulation(load_machine("h200x8"), pes, options).run(program);
}

constexpr Size kCount = 1000;

template <class T>
void fill(T* values, T first) {
  for (Size i = 0; i < kCount; ++i) values[i] = static_cast<T>(first + static_cast<T>(i % 50));
}

TEST(Block, LoadsAndStoresConvertAndReachPeers) {
  simulate(3, [](World& world) {
    const auto data = world.heap().allocate<float>(kCount, "data");
    const auto sum = world.heap().allocate<std::int32_t>(kCount, "sum");
    const auto words = world.heap().signals(2 * 3, "words");
    Stream stream = world.make_stream("main");
    fill(data.local(), static_cast<float>(world.pe()));
    world.barrier();
    launch(stream, {2, 128}, [=](auto& block) {
      const Range part = split(kCount, block.count())[block.index()];
      for (const Range tile : block.template tiles<float>(part))
        block.store(sum.on((block.pe() + 1) % 3), tile, block.template load_reduce<float>(data, tile, ReduceOp::kSum));
      block.notify_all(words, 1);
      block.wait_all(words, 1);
    });
    for (Size i = 0; i < kCount; ++i) ASSERT_EQ(sum.local()[i], 3 + 3 * (i % 50)) << i;
  });
}

TEST(Block, PutSignalShowsDataBeforeItsSignalWithinAndBetweenNodes) {
  for (const int pes_per_node : {4, 2, 1}) {
    SimOptions options;
    options.pes_per_node = pes_per_node;
    simulate(
        4,
        [](World& world) {
          const auto data = world.heap().allocate<std::int64_t>(kCount, "data");
          const auto got = world.heap().allocate<std::int64_t>(kCount, "got");
          const auto arrived = world.heap().signals(1, "arrived");
          Stream stream = world.make_stream("main");
          fill(data.local(), std::int64_t{100} * world.pe());
          launch(stream, {1, 256}, [=](auto& block) {
            const int next = (block.pe() + 1) % 4;
            block.put_signal_nbi(got, data.local(), kCount, arrived, 7, next);
            block.signal_wait_until(arrived, Cmp::kEq, 7);
            block.quiet();
          });
          for (Size i = 0; i < kCount; ++i) ASSERT_EQ(got.local()[i], 100 * ((world.pe() + 3) % 4) + i % 50);
        },
        options);
  }
}

TEST(Block, GetReadsFromEverywhere) {
  SimOptions options;
  options.pes_per_node = 2;
  simulate(
      4,
      [](World& world) {
        const auto data = world.heap().allocate<std::uint8_t>(kCount, "data");
        const auto got = world.heap().allocate<std::uint8_t>(4 * kCount, "got");
        auto* const seen = world.heap().allocate_local<std::uint8_t>(kCount, "seen");
        Stream stream = world.make_stream("main");
        fill(data.local(), static_cast<std::uint8_t>(world.pe()));
        world.barrier();
        launch(stream, {1, 32}, [=](auto& block) {
          block.get(got.local(), data, kCount, 0);
          block.copy(seen, got.local(), kCount);  // a blocking get needs no quiet
          for (int pe = 1; pe < 4; ++pe) block.get_nbi(got.local() + pe * kCount, data, kCount, pe);
          block.quiet();
        });
        for (Size i = 0; i < kCount; ++i) ASSERT_EQ(seen[i], i % 50);
        for (int pe = 0; pe < 4; ++pe)
          for (Size i = 0; i < kCount; ++i) ASSERT_EQ(got.local()[pe * kCount + i], pe + i % 50);
      },
      options);
}

TEST(Block, AtomicsCountEveryArrivalOnce) {
  simulate(5, [](World& world) {
    const auto counter = world.heap().signals(1, "counter");
    Stream stream = world.make_stream("main");
    launch(stream, {4, 64}, [=](auto& block) {
      block.fetch_add(&counter.on(0)->value, Epoch{1});
      if (block.pe() == 0 && block.index() == 0) block.signal_wait_until(counter, Cmp::kEq, 20);
    });
    world.barrier();
    ASSERT_EQ(counter.local()->value, world.pe() == 0 ? 20U : 0U);
    auto* const word = world.heap().allocate_local<std::uint64_t>(1, "word");
    *word = 5;
    launch(stream, {1, 32}, [=](auto& block) {
      const auto first = block.compare_swap(word, std::uint64_t{4}, std::uint64_t{9});
      const auto second = block.compare_swap(word, first, std::uint64_t{6});
      block.exchange(word, second + 10);
    });
    ASSERT_EQ(*word, 15U);
  });
}

template <class Packet>
void check_packets(Size count) {
  simulate(2, [count](World& world) {
    const auto packets = world.heap().allocate<Packet>(packets_for<Packet>(count * 2), "packets");
    const auto relayed = world.heap().allocate<Packet>(packets_for<Packet>(count * 2), "relayed");
    const auto data = world.heap().allocate<std::int16_t>(count, "data");
    const auto out = world.heap().allocate<std::int16_t>(count, "out");
    Stream stream = world.make_stream("main");
    for (Size i = 0; i < count; ++i) data.local()[i] = static_cast<std::int16_t>(world.pe() * 1000 + i);
    for (Epoch epoch = 1; epoch <= 2; ++epoch) {
      launch(stream, {1, 64}, [=](auto& block) {
        const int peer = 1 - block.pe();
        block.ll_put(packets, data.local(), count, epoch, peer);
        block.ll_forward(relayed, packets.local(), packets_for<Packet>(count * 2), epoch, peer);
        block.store(out.local(), {0, count},
                    block.template ll_get<std::int16_t, std::int16_t>(relayed.local(), count, epoch));
      });
      for (Size i = 0; i < count; ++i) ASSERT_EQ(out.local()[i], world.pe() * 1000 + i) << i;
      world.barrier();
    }
  });
}

struct Swap {
  struct Args {
    std::int32_t* cell;
    std::int32_t* old;
  };
  template <class Block>
  static void run(Block& block, const Args& a) {
    *a.old = block.compare_swap(a.cell, -1, -7);
    block.fetch_add(a.cell, -3);
  }
};

TEST(Block, AtomicsTakeNegativeNumbersOfFourBytes) {
  std::int32_t old = 0;
  Simulation(load_machine("h200x4"), 1).run([&](World& world) {
    std::int32_t cell[2] = {-1, 5};
    auto* const cells = world.heap().allocate_local<std::int32_t>(2, "cells");
    world.copy_in(cells, cell, sizeof cell);
    Stream stream = world.make_stream("main");
    stream.launch<Swap>({1, 32}, {cells, &old});
    stream.synchronize();
    world.copy_out(cell, cells, sizeof cell);
    EXPECT_EQ(cell[0], -10);
    EXPECT_EQ(cell[1], 5);
  });
  EXPECT_EQ(old, -1);
}

TEST(Block, PacketsCarryTheirOwnFlags) {
  for (const Size count : {1, 2, 59, 60, 61, 1000}) {
    check_packets<LLPacket>(count);
    check_packets<LL128Line>(count);
  }
}

/// GPUs run the same cases in litmus_gpu_check.
TEST(Block, SumsForwardsAndScalarsAreWhatTheHostSays) {
  for (const int pes : {1, 3}) {
    simulate(pes, [](World& world) {
      test::each_block_case([&](auto type) {
        using Case = typename decltype(type)::type;
        EXPECT_EQ(Case::wrong(world), 0) << type_name<Case>();
      });
    });
  }
}

TEST(Block, SumsAddInTheOrderOfElementsAndIntegersWrap) {
  simulate(1, [](World& world) {
    float* const values = world.heap().allocate_local<float>(4, "values");
    auto* const integers = world.heap().allocate_local<std::int32_t>(3, "integers");
    float* const sum = world.heap().allocate_local<float>(2, "sum");
    auto* const wrapped = world.heap().allocate_local<std::int32_t>(1, "wrapped");
    const float large = 1.0F * (1 << 24);
    const float in[] = {large, 1.0F, 1.0F, -large};  // each 1 is lost behind 2^24
    std::copy_n(in, 4, values);
    std::fill_n(integers, 3, 0x40000000);
    Stream stream = world.make_stream("main");
    launch(stream, {1, 64}, [=](auto& block) {
      block.store_scalar(sum, block.sum(block.template load<float>(values, {0, 4})));
      block.store_scalar(sum + 1, block.sum(block.template load<float>(values, {2, 2})));
      block.store_scalar(wrapped, block.sum(block.template load<std::int32_t>(integers, {0, 3})));
    });
    EXPECT_EQ(sum[0], 0.0F);
    EXPECT_EQ(sum[1], 0.0F);
    EXPECT_EQ(static_cast<std::uint32_t>(*wrapped), 0xC0000000U);
  });
}

TEST(Block, FindsTheGreatestOfAllAndOfGroups) {
  simulate(1, [](World& world) {
    float* const values = world.heap().allocate_local<float>(40, "values");
    float* const greatest = world.heap().allocate_local<float>(43, "greatest");
    float* const firsts = world.heap().allocate_local<float>(3, "firsts");
    float* const again = world.heap().allocate_local<float>(40, "values of groups again");
    for (int i = 0; i < 40; ++i) values[i] = static_cast<float>(i * 7 % 40);
    values[35] = std::nanf("");
    Stream stream = world.make_stream("main");
    launch(stream, {1, 64}, [=](auto& block) {
      const auto of_groups = block.template group_greatest<16>(block.template load<float>(values, {0, 40}));
      block.store(greatest, {0, 40}, of_groups);
      block.template store_group_firsts<16>(firsts, of_groups);
      block.sync();
      block.store(again, {0, 40}, block.template load_groups<16>(firsts, of_groups));
      block.store_scalar(greatest + 40, block.greatest(block.template load<float>(values, {0, 32})));
      block.store_scalar(greatest + 41, block.greatest(block.template load<float>(values, {0, 40})));
      block.store_scalar(greatest + 42, block.greatest(block.template load<float>(values, {3, 3})));
    });
    EXPECT_EQ(greatest[0], 37);  // 11 * 7 % 40
    EXPECT_EQ(greatest[15], greatest[0]);
    EXPECT_EQ(greatest[16], 39);
    EXPECT_TRUE(std::isnan(greatest[39]));
    EXPECT_EQ(firsts[0], greatest[0]);
    EXPECT_EQ(firsts[1], greatest[16]);
    EXPECT_TRUE(std::isnan(firsts[2]));
    EXPECT_EQ(again[15], greatest[0]);
    EXPECT_EQ(again[16], greatest[16]);
    EXPECT_TRUE(std::isnan(again[39]));
    EXPECT_EQ(greatest[40], 39);
    EXPECT_TRUE(std::isnan(greatest[41]));
    EXPECT_EQ(greatest[42], 0);
  });
}

TEST(Block, AddsWhatIsBeforeAndStoresAtPlaces) {
  simulate(1, [](World& world) {
    auto* const values = world.heap().allocate_local<std::int32_t>(40, "values");
    auto* const places = world.heap().allocate_local<std::int32_t>(40, "places");
    auto* const sums = world.heap().allocate_local<std::int64_t>(40, "sums");
    auto* const moved = world.heap().allocate_local<std::int16_t>(41, "moved");
    for (int i = 0; i < 40; ++i) {
      values[i] = i % 3 - 1;
      places[i] = i % 2 == 0 ? 39 - i : -1;
    }
    std::fill_n(moved, 41, std::int16_t{77});
    Stream stream = world.make_stream("main");
    launch(stream, {1, 64}, [=](auto& block) {
      const auto loaded = block.template load<std::int32_t>(values, {0, 40});
      const auto before = block.exclusive_sum(loaded);
      block.store(sums, {0, 40}, before);
      block.store_at(moved, block.template load<std::int32_t>(places, {0, 40}), before);
    });
    int sum = 0;
    for (int i = 0; i < 40; ++i) {
      EXPECT_EQ(sums[i], sum) << i;
      EXPECT_EQ(moved[39 - i], i % 2 == 0 ? sum : 77) << i;
      sum += values[i];
    }
  });
}

/// The CUDA backend's blocks do so in tests/cuda/block_compile.cu.
TEST(Block, HasEveryOperationOfItsContract) {
  EXPECT_NE((&test::EveryOperation<float, LLPacket, true>::run<cpu::Block>), nullptr);
  EXPECT_NE((&test::EveryOperation<bf16, LL128Line>::run<cpu::Block>), nullptr);
  EXPECT_NE((&test::EveryPacketOperation<fp8_e4m3, LL128Line>::run<cpu::Block>), nullptr);
  EXPECT_NE((&test::EveryPacketOperation<float, LLPacket, true>::run<cpu::Block>), nullptr);
}

TEST(Block, MulticastStoresAndReducesThroughTheSwitch) {
  Machine machine = load_machine("h200x8");
  machine.link.multicast = true;
  Simulation simulation(machine, 4);
  simulation.run([](World& world) {
    const auto data = world.heap().allocate<float>(kCount, "data");
    const auto everywhere = world.heap().allocate<float>(kCount, "everywhere");
    const auto words = world.heap().signals(4, "words");
    Stream stream = world.make_stream("main");
    fill(data.local(), static_cast<float>(world.pe()));
    world.barrier();
    launch(stream, {1, 512}, [=](auto& block) {
      const Range shard = split(kCount, 4)[block.pe()];
      block.multimem_store(everywhere, shard, block.template multimem_load_reduce<float>(data, shard, ReduceOp::kSum));
      block.notify_all(words, 1);
      block.wait_all(words, 1);
    });
    for (Size i = 0; i < kCount; ++i) ASSERT_EQ(everywhere.local()[i], 6.0F + 4.0F * static_cast<float>(i % 50));
  });
  EXPECT_THROW(
      [] {
        Machine without = load_machine("h200x8");
        without.link.multicast = false;
        Simulation other(without, 2);
        other.run([](World& world) {
          const auto data = world.heap().allocate<float>(8, "data");
          Stream stream = world.make_stream("main");
          launch(stream, {1, 32}, [=](auto& block) {
            block.template multimem_load_reduce<float>(data, Range{0, 8}, ReduceOp::kSum);
          });
        });
      }(),
      Unsupported);
}

TEST(Block, RolesRunSideBySideAndJoin) {
  simulate(1, [](World& world) {
    const auto words = world.heap().signals(2, "words");
    auto* const order = world.heap().allocate_local<Epoch>(3, "order");
    Stream stream = world.make_stream("main");
    launch(stream, {1, 128}, [=](auto& block) {
      block.template parallel<1, 3>(
          [&](auto& consumer) {  // would hang if roles ran one after the other
            consumer.wait(words, 1, 1);
            consumer.store_scalar(order, Epoch{1});
            consumer.notify(words + 1, 1, 0);
          },
          [&](auto& producer) {
            producer.notify(words, 1, 0);
            producer.wait(words + 1, 1, 1);
          });
      block.template parallel_for<1>(
          3, [&](auto& role, int i) { role.store_scalar(order + i, static_cast<Epoch>(10 + i)); });
    });
    ASSERT_EQ(order[0], 10U);
    ASSERT_EQ(order[2], 12U);
  });
}

TEST(Block, RolesMayWaitForTheirPutsSideBySide) {
  SimOptions options;
  options.pes_per_node = 1;
  simulate(
      3,
      [](World& world) {
        const auto data = world.heap().allocate<float>(2 * kCount, "data");
        const auto got = world.heap().allocate<float>(2 * kCount, "got");
        Stream stream = world.make_stream("main");
        fill(data.local(), 1.0F);
        fill(data.local() + kCount, 2.0F);
        launch(stream, {1, 128}, [=](auto& block) {
          block.template parallel_for<1>(2, [&](auto& role, int i) {
            role.put(got + i * kCount, data.local() + i * kCount, kCount, (role.pe() + 1 + i) % 3);
          });
        });
        world.barrier();
        for (Size i = 0; i < 2 * kCount; ++i) ASSERT_EQ(got.local()[i], data.local()[i]);
      },
      options);
}

TEST(Block, LocalCopiesGoOnBesideThoseToAPeer) {
  SimOptions options;
  options.phantom = true;
  simulate(
      2,
      [](World& world) {
        constexpr Size count = Size{4} << 20;
        const auto in = world.heap().allocate<std::byte>(count, "in");
        const auto out = world.heap().allocate<std::byte>(count, "out");
        Stream stream = world.make_stream("main");
        const auto us = [&](const auto& body) {
          const double begin = world.time_us();
          launch(stream, {1, 512}, body);
          return world.time_us() - begin;
        };
        if (world.pe() != 0) return;
        const double nothing = us([](auto&) {});
        const auto local = [=](auto& block) { block.copy(out.local(), in.local(), count); };
        const auto remote = [=](auto& block) { block.copy(out.on(1), in.local(), count); };
        const double local_us = us(local) - nothing;
        const double remote_us = us(remote) - nothing;
        const double both = us([=](auto& block) { local(block), remote(block); }) - nothing;
        const double one_by_one = us([=](auto& block) { local(block), block.sync(), remote(block); }) - nothing;
        ASSERT_GT(std::min(local_us, remote_us), 10);
        EXPECT_NEAR(both, std::max(local_us, remote_us), 1);
        EXPECT_NEAR(one_by_one, local_us + remote_us, 1);
      },
      options);
}

TEST(Block, StoreToAnotherNodeIsRefusedWithPlaceAndBuffer) {
  SimOptions options;
  options.pes_per_node = 1;
  try {
    simulate(
        2,
        [](World& world) {
          const auto data = world.heap().allocate<float>(8, "weights");
          Stream stream = world.make_stream("main");
          launch(stream, {1, 32}, [=](auto& block) {
            ASSERT_EQ(block.remote(data, 1 - block.pe()), nullptr);
            block.store_scalar(data.on(1 - block.pe()) + 3, 1.0F);
          });
        },
        options);
    FAIL() << "nothing was thrown";
  } catch (const CheckFailed& error) {
    EXPECT_NE(std::string(error.what()).find("weights[3] on PE"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("block_test.cpp"), std::string::npos) << error.what();
  }
}

TEST(Block, TeamsNumberTheirOwnPes) {
  simulate(6, [](World& world) {
    const Team odd = world.split_strided(1, 2, 3);
    const auto data = world.heap().allocate<std::int32_t>(4, "data");
    const auto words = world.heap().signals(8, "words");
    std::fill_n(data.local(), 4, -1);
    world.barrier();
    if (odd.me >= 0) {
      Stream stream = world.make_stream("main");
      const auto body = [data = data.of(odd), words = words.of(odd)](auto& block) {
        for (const int pe : block.pes_from_self()) block.store_scalar(data.on(pe) + block.pe(), 10 + block.pe());
        block.notify_all(words, 1);
        block.wait_all(words, 1);
      };
      stream.launch<test::BodyKernel<decltype(body)>>({1, 32}, body, odd);
      stream.synchronize();
    }
    world.barrier();
    for (int i = 0; i < 3; ++i) ASSERT_EQ(data.local()[i], odd.me >= 0 ? 10 + i : -1);
  });
}

}  // namespace
}  // namespace tandem::block_test
