// Records of one process, sent to another one.
#include "trace/gpu/gpu_part.h"

#include <gtest/gtest.h>

namespace tandem::trace {
namespace {

constexpr std::uint64_t kBase = 0x7F00'0000'0000;
constexpr Size kBytes = Size{1} << 30;

GpuPart make_part() {
  GpuPart part;
  part.lost_work = 3;
  part.base = kBase;
  part.buffers = {{4096, 64, 8, "own epochs"}};
  GpuWork kernel;
  kernel.pe = 1;
  kernel.name = "AllReduceTwoShot<bf16>";
  kernel.stream = "main";
  kernel.team = {0, 1, 2, 1, 2};
  kernel.blocks = {{{100, 50, cuda::RecordKind::kBlock, 0, 0, 0, 17, 1},
                    {110, 20, cuda::RecordKind::kWait, 1, 2, 2, kBase + 512, 7}},
                   {}};
  GpuWork copy;
  copy.pe = 1;
  copy.name = "copy";
  copy.kind = SpanKind::kCopy;
  copy.bytes = 1 << 20;
  copy.signal = kBase + static_cast<std::uint64_t>(kBytes) - 8;
  copy.hidden = true;
  copy.after = {0};
  part.work = {kernel, copy};
  return part;
}

TEST(GpuPart, ArrivesAsItWas) {
  const GpuPart part = make_part();
  const GpuPart got = GpuPart::decode(part.encode());
  EXPECT_EQ(got.encode(), part.encode());
  ASSERT_EQ(got.work.size(), 2U);
  EXPECT_EQ(got.lost_work, 3);
  EXPECT_EQ(got.buffers.at(0).name, "own epochs");
  EXPECT_EQ(got.buffers.at(0).offset, 4096);
  EXPECT_EQ(got.work[0].name, "AllReduceTwoShot<bf16>");
  EXPECT_EQ(got.work[0].team.me, 1);
  ASSERT_EQ(got.work[0].blocks.size(), 2U);
  EXPECT_EQ(got.work[0].blocks[0].at(1).address, kBase + 512);
  EXPECT_EQ(got.work[0].blocks[0].at(1).kind, cuda::RecordKind::kWait);
  EXPECT_TRUE(got.work[0].blocks[1].empty());
  EXPECT_EQ(got.work[1].kind, SpanKind::kCopy);
  EXPECT_TRUE(got.work[1].hidden);
  EXPECT_EQ(got.work[1].after, std::vector<std::size_t>{0});
}

TEST(GpuPart, AddressesOfSymmetricMemoryMoveAndNothingElseDoes) {
  GpuPart part = make_part();
  part.work[0].blocks[0][1].payload = kBase;  // a value, no address
  part.work[0].blocks[1] = {{1, 1, cuda::RecordKind::kStore, 0, 0, 0, kBase + static_cast<std::uint64_t>(kBytes), 4}};
  const std::uint64_t new_base = 0x1000;
  part.move_to(new_base, kBytes);
  EXPECT_EQ(part.work[0].blocks[0][0].address, 17U) << "an SM's number";
  EXPECT_EQ(part.work[0].blocks[0][1].address, new_base + 512);
  EXPECT_EQ(part.work[0].blocks[0][1].payload, kBase);
  EXPECT_EQ(part.work[0].blocks[1][0].address, kBase + static_cast<std::uint64_t>(kBytes));
  EXPECT_EQ(part.work[1].signal, new_base + static_cast<std::uint64_t>(kBytes) - 8);
}

TEST(GpuPart, WhatIsCutOffIsRefused) {
  const Bytes bytes = make_part().encode();
  for (const std::size_t size : {std::size_t{0}, std::size_t{20}, bytes.size() / 2, bytes.size() - 1})
    EXPECT_THROW(GpuPart::decode(View(bytes).first(size)), BadMessage) << size;
}

}  // namespace
}  // namespace tandem::trace
