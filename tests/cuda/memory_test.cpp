// Memory of GPUs below worlds, and what becomes of the driver's errors.
#include "cuda/memory/memory.h"

#include <gmock/gmock.h>

#include <cstring>
#include <set>
#include <thread>

#include "cuda/simulated/gpus.h"
#include "support/error_of.h"
#include "tandem/cuda.h"
#include "tandem/error.h"

namespace tandem::test {
namespace {

using ::testing::HasSubstr;
using world::Handles;

constexpr Size kBytes = Size{2} << 20;

/// A range with memory of its own.
std::byte* mapped(cuda::CudaMemory& memory, world::MemoryHandle handle) {
  std::byte* const at = memory.reserve(kBytes);
  memory.map(at, {handle, kBytes});
  memory.allow(at, kBytes, {0});
  return at;
}

TEST(CudaMemory, IsTheSameWhereItsDescriptorIsImported) {
  cuda::CudaMemory memory;
  const auto handle = memory.create(0, Handles::kDescriptors, kBytes);
  std::byte* const first = mapped(memory, handle);
  const auto imported = memory.import_descriptor(memory.export_descriptor(handle), kBytes);
  std::byte* const second = mapped(memory, imported);
  first[7] = std::byte{42};
  EXPECT_EQ(second[7], std::byte{42});
  for (std::byte* const at : {first, second}) {
    memory.unmap(at, kBytes);
    memory.give_back(at, kBytes);
  }
  memory.release(handle);
  memory.release(imported);
}

TEST(CudaMemory, NamesTheCallThatFails) {
  cuda::CudaMemory memory;
  const auto handle = memory.create(0, Handles::kDescriptors, kBytes);
  std::byte* const at = memory.reserve(kBytes);
  const auto text = [](const char* call, const auto& work) {
    fail_next(call);
    return error_of<RuntimeFailure>(work);
  };
  EXPECT_THAT(text("cuMemCreate", [&] { memory.create(0, Handles::kNone, kBytes); }), HasSubstr("cuMemCreate: "));
  EXPECT_THAT(text("cuMemAddressReserve", [&] { memory.reserve(kBytes); }), HasSubstr("cuMemAddressReserve: "));
  EXPECT_THAT(text("cuMemMap", [&] { memory.map(at, {handle, kBytes}); }), HasSubstr("cuMemMap: "));
  EXPECT_THAT(text("cuMemSetAccess", [&] { memory.allow(at, kBytes, {0}); }), HasSubstr("cuMemSetAccess: "));
  EXPECT_THAT(text("cuMemExportToShareableHandle", [&] { memory.export_descriptor(handle); }),
              HasSubstr("cuMemExportToShareableHandle: "));
  EXPECT_THAT(text("cuMemImportFromShareableHandle", [&] { memory.import_descriptor(0, kBytes); }),
              HasSubstr("cuMemImportFromShareableHandle: "));
  fail_next("cuMemCreate", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_THAT(error_of<OutOfMemory>([&] { memory.create(3, Handles::kNone, kBytes); }),
              ::testing::AllOf(HasSubstr("2097152 bytes asked for"), HasSubstr("left on GPU 3")));
  memory.give_back(at, kBytes);
  memory.release(handle);
}

TEST(CudaMemory, SaysWhyItCannotBeShared) {
  cuda::CudaMemory memory;
  int on_the_stack = 0;
  EXPECT_THAT(memory.holder_of(&on_the_stack).problem,
              HasSubstr("not from an allocator that uses CUDA virtual memory"));
  void* const exportable = exportable_memory(0, static_cast<std::size_t>(kBytes));
  const world::Holder holder = memory.holder_of(static_cast<std::byte*>(exportable) + 100);
  EXPECT_EQ(holder.problem, "");
  EXPECT_EQ(holder.base, exportable);
  EXPECT_EQ(holder.chunk.bytes, kBytes);
  memory.release(holder.chunk.handle);
  const auto own = memory.create(0, Handles::kNone, kBytes);
  const world::Holder within = memory.holder_of(mapped(memory, own));
  EXPECT_THAT(within.problem, HasSubstr("not made exportable"));
  EXPECT_TRUE(within.is_retained);
}

std::set<int> used_gpus() {
  std::set<int> used;
  for (int device = 0; device < kSimulatedGpus; ++device)
    if (has_context(device)) used.insert(device);
  return used;
}

/// The thread that destroys a world has no GPU of its own, and takes no part of GPU 0.
TEST(WorldsOnSimulatedGpus, UseTheirOwnGpuAlone) {
  std::set<int> before = used_gpus();
  CudaOptions options;
  options.heap_bytes = kBytes;
  options.device = 6;
  auto process = std::make_unique<CudaProcess>(UniqueId::create(), 0, 1, options);
  EXPECT_EQ(process->kind(), DeviceKind::kGpu);
  process->world().heap().allocate<float>(100, "data");
  std::thread([&] { process.reset(); }).join();
  before.insert(6);
  EXPECT_EQ(used_gpus(), before);
}

TEST(WorldsOnSimulatedGpus, AreTakenWhereNothingElseIsAskedFor) {
  WorldOptions options;
  options.heap_bytes = kBytes;
  EXPECT_EQ(WorldThreads(2, options).kind(), DeviceKind::kGpu);
  options.kind = DeviceKind::kHost;
  EXPECT_EQ(WorldThreads(2, options).kind(), DeviceKind::kHost);
}

}  // namespace
}  // namespace tandem::test
