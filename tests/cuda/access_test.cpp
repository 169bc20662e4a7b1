// How a proxy reaches the memory of a GPU, and worlds of several nodes on simulated GPUs.
#include <gmock/gmock.h>

#include <cstdlib>

#include "cuda/simulated/gpus.h"
#include "cuda/world/access.h"
#include "tandem/cuda.h"
#include "tandem/error.h"

namespace tandem::cuda {
namespace {

TEST(GpuAccess, ReadsAndWritesInOrder) {
  const int before = test::allocations_left();
  {
    Bytes memory(1 << 16);
    GpuAccess access(0, {memory.data(), 1 << 15, 2, 0, 1}, {1 << 12});
    Bytes data(1 << 12);
    for (int round = 0; round < 40; ++round) {  // more than may be on its way together
      data.back() = static_cast<std::byte>(round);
      access.write(memory.data(), data);
      const wire::Reading read = access.read(memory.data(), 1 << 12);
      ASSERT_TRUE(access.is_read(read));
      EXPECT_TRUE(std::equal(read.data.begin(), read.data.end(), data.begin(), data.end()));
      access.release(read);
    }
    Signal word{};
    access.change(word, SignalOp::kSet, 5);
    access.change(word, SignalOp::kAdd, 3);
    access.finish();
    EXPECT_EQ(access.value_of(word), 8U);
    EXPECT_TRUE(access.are_written(access.mark_writes()));
    std::vector<wire::Reading> readings;
    while (readings.size() < access.most_readings())
      readings.push_back(access.read(memory.data() + readings.size(), 1));
    EXPECT_GT(readings.size(), 1U);
    for (std::size_t i = 0; i < readings.size(); ++i) EXPECT_EQ(readings[i].data[0], memory[i]);
    access.release(readings[0]);
    EXPECT_EQ(access.read(memory.data(), 1).data.data(), readings[0].data.data());
  }
  EXPECT_EQ(test::allocations_left(), before);
}

/// Long data of a message is copied from where it has arrived. Short data and other memory are free at once.
TEST(GpuAccess, LeavesLongDataInMessages) {
  const int before = test::allocations_left();
  {
    constexpr std::size_t most = 1 << 14;
    Bytes memory(most), elsewhere(most, std::byte{9});
    const wire::Room room{most, std::shared_ptr<std::byte[]>(new std::byte[2 * most]), 2 * most};
    GpuAccess access(0, {memory.data(), most, 1, 0, 1}, room);
    const View arrived(room.memory.get(), 2 * most);
    std::fill_n(room.memory.get(), 2 * most, std::byte{5});
    EXPECT_TRUE(access.write(memory.data(), arrived.subspan(64, 8192)));
    EXPECT_EQ(memory[8191], std::byte{5});
    EXPECT_FALSE(access.write(memory.data(), arrived.subspan(64, 8191)));
    EXPECT_FALSE(access.write(memory.data(), elsewhere));
    EXPECT_EQ(memory, elsewhere);
  }
  EXPECT_EQ(test::allocations_left(), before);
}

TEST(GpuAccess, GivesKernelsTheirWay) {
  Bytes memory(256);
  GpuAccess access(0, {memory.data(), 64, 4, 3, 2}, {64});
  const MailLink& mail = access.mail();
  EXPECT_TRUE(mail.is_near(2));
  EXPECT_FALSE(mail.is_near(1));
  EXPECT_EQ(mail.offset_on(memory.data() + 64 + 24, 1), 24);
  MailSlot& slot = mail.ring->slots[1];
  slot.head = mail_head(MailKind::kGet, SignalOp::kAdd, true, 1);
  slot.offset = 24;
  EXPECT_FALSE(access.kernel_requests()->take());
  slot.number = 1;
  const auto request = access.kernel_requests()->take();
  ASSERT_TRUE(request);
  EXPECT_EQ(request->kind, wire::Request::Kind::kGet);
  EXPECT_EQ(request->op, SignalOp::kAdd);
  EXPECT_TRUE(request->has_word);
  EXPECT_EQ(request->pe, 1);
  EXPECT_EQ(request->offset, 24);
  access.kernel_requests()->note(1, 1);
  EXPECT_EQ(mail.progress->answered, 1U);
}

/// Host programs copy to other nodes.
TEST(NodesOfGpus, CopyForHostPrograms) {
  ::setenv("TANDEM_NODE_SIZE", "1", 1);
  CudaThreads(2, {}).run([](World& world) {
    EXPECT_EQ(world.team().node_size, 1);
    const auto box = world.heap().allocate<int>(100000, "box");
    const std::vector<int> values(100000, world.pe() + 7);
    world.copy_in(box.on(1 - world.pe()), values.data(), 400000);
    world.barrier();
    std::vector<int> got(100000);
    world.copy_out(got.data(), box.local(), 400000);
    EXPECT_EQ(got, std::vector<int>(100000, 8 - world.pe()));
  });
  ::unsetenv("TANDEM_NODE_SIZE");
}

}  // namespace
}  // namespace tandem::cuda
