// Memory of PEs on CPUs.
#include "host/world/memory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bootstrap/protocol/fd.h"
#include "host/world/available_memory.h"
#include "support/error_of.h"
#include "tandem/error.h"

namespace tandem::host {
namespace {

using bootstrap::Fd;
using test::error_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using world::Handles;

constexpr Size kBytes = Size{2} << 20;

Fd file_of(Size bytes, int seals) {
  Fd file(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(file.get(), bytes), 0);
  EXPECT_EQ(::fcntl(file.get(), F_ADD_SEALS, seals), 0);
  return file;
}

TEST(HostMemory, IsTheSameWhereItsDescriptorIsImported) {
  HostMemory memory;
  const auto handle = memory.create(0, Handles::kDescriptors, kBytes);
  const Fd exported(memory.export_descriptor(handle));
  const auto imported = memory.import_descriptor(exported.get(), kBytes);
  std::byte* const range = memory.reserve(2 * kBytes);
  memory.map(range, {handle, kBytes});
  memory.map(range + kBytes, {imported, kBytes});
  range[5] = std::byte{7};
  EXPECT_EQ(range[kBytes + 5], std::byte{7});
  const world::Holder holder = memory.holder_of(range + kBytes + 5);
  EXPECT_EQ(holder.base, range + kBytes);
  EXPECT_EQ(holder.problem, "");
  memory.release(holder.chunk.handle);
  memory.unmap(range, kBytes);
  EXPECT_THAT(memory.holder_of(range).problem, HasSubstr("not from a symmetric heap"));
  memory.give_back(range, 2 * kBytes);
  memory.release(handle);
  memory.release(imported);
}

/// Maps a new memory file, which stays mapped until the process ends.
std::byte* mapped_file(const Fd& file, Size bytes, int flags = MAP_SHARED, Size offset = 0) {
  void* const at = ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, flags, file.get(), offset);
  EXPECT_NE(at, MAP_FAILED);
  return static_cast<std::byte*>(at);
}

TEST(HostMemory, IsFoundInMemoryFilesOfTheProgram) {
  HostMemory memory;
  const Fd file = file_of(kBytes, F_SEAL_GROW);
  std::byte* const at = mapped_file(file, kBytes);
  const world::Holder holder = memory.holder_of(at + 12345);
  ASSERT_EQ(holder.problem, "");
  EXPECT_EQ(holder.base, at);
  EXPECT_EQ(holder.chunk.bytes, kBytes);
  EXPECT_NE(::ftruncate(file.get(), 0), 0) << "it keeps its size";
  const Fd exported(memory.export_descriptor(holder.chunk.handle));
  const auto imported = memory.import_descriptor(exported.get(), kBytes);
  std::byte* const range = memory.reserve(kBytes);
  memory.map(range, {imported, kBytes});
  at[77] = std::byte{9};
  EXPECT_EQ(range[77], std::byte{9});
  memory.unmap(range, kBytes);
  memory.give_back(range, kBytes);
  memory.release(imported);
  memory.release(holder.chunk.handle);
}

TEST(HostMemory, OfTheProgramIsRefusedWhereOthersCannotMapIt) {
  HostMemory memory;
  const auto problem = [&](const std::byte* at) { return memory.holder_of(const_cast<std::byte*>(at)).problem; };
  const std::vector<std::byte> own(100);
  EXPECT_THAT(problem(own.data()), HasSubstr("not in a shared mapping of a memory file (memfd_create)"));
  const Fd file = file_of(kBytes, F_SEAL_GROW);
  EXPECT_THAT(problem(mapped_file(file, kBytes, MAP_PRIVATE)), HasSubstr("not in a shared mapping"));
  EXPECT_THAT(problem(mapped_file(file, kBytes / 2)), HasSubstr("not mapped as a whole"));
  EXPECT_THAT(problem(mapped_file(file, kBytes / 2, MAP_SHARED, kBytes / 2)), HasSubstr("not mapped as a whole"));
  const Fd odd = file_of(5000, F_SEAL_GROW);
  EXPECT_THAT(problem(mapped_file(odd, 5000)), HasSubstr("has 5000 bytes, allowed are multiples of 4096"));
  const Fd sealed = file_of(kBytes, F_SEAL_SEAL);
  EXPECT_THAT(problem(mapped_file(sealed, kBytes)), HasSubstr("MFD_ALLOW_SEALING"));
  const std::byte* const closed = mapped_file(file_of(kBytes, F_SEAL_GROW), kBytes);
  EXPECT_THAT(problem(closed), HasSubstr("no descriptor of its file is open"));
}

/// A file that shrinks would end its readers by SIGBUS.
TEST(HostMemory, OfOtherProcessesKeepsItsSize) {
  HostMemory memory;
  const Fd small = file_of(kBytes / 2, F_SEAL_SHRINK | F_SEAL_GROW);
  EXPECT_THAT(error_of<RuntimeFailure>([&] { memory.import_descriptor(small.get(), kBytes); }),
              HasSubstr("1048576 bytes given, needed are 2097152"));
  const Fd open = file_of(kBytes, F_SEAL_GROW);
  EXPECT_THAT(error_of<RuntimeFailure>([&] { memory.import_descriptor(open.get(), kBytes); }),
              HasSubstr("not sealed against shrinking"));
  const auto own = memory.create(0, Handles::kDescriptors, kBytes);
  EXPECT_NE(::ftruncate(static_cast<int>(own), 0), 0);
  memory.release(own);
}

TEST(HostMemory, NamesLimitsOfTheProcess) {
  HostMemory memory;
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{static_cast<rlim_t>(kBytes), before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const std::string text = error_of<OutOfMemory>([&] { memory.create(0, Handles::kNone, 2 * kBytes); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THAT(text, AllOf(HasSubstr("4194304 bytes asked for"), HasSubstr("at most 2097152 (ulimit -f)")));
}

TEST(HostMemory, IsNotPromisedWhereThereIsNone) {
  HostMemory memory;
  const Size most = 4 * available_memory().bytes;
  std::byte* const range = memory.reserve(most);
  EXPECT_THAT(error_of<OutOfMemory>([&] { memory.commit(range, most); }),
              AllOf(HasSubstr("bytes of memory are needed"), HasSubstr("are left")));
  memory.give_back(range, most);
}

TEST(AvailableMemory, IsTheLeastOfComputerAndControlGroup) {
  const std::string meminfo = "MemTotal:  1000 kB\nMemAvailable:   500 kB\n";
  const AvailableMemory alone = available_memory(meminfo, "max\n", "100\n", "");
  EXPECT_EQ(alone.bytes, 500 * 1024);
  EXPECT_EQ(alone.limit, "of this computer");
  const AvailableMemory limited = available_memory(meminfo, "300000\n", "200000\n", "anon 5\ninactive_file 1000\n");
  EXPECT_EQ(limited.bytes, 101000);
  EXPECT_EQ(limited.limit, "of this process's control group");
  EXPECT_EQ(available_memory(meminfo, "", "", "").bytes, 500 * 1024);
  EXPECT_EQ(available_memory(meminfo, "100\n", "200\n", "").bytes, 0);
}

}  // namespace
}  // namespace tandem::host
