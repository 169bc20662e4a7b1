// Memory of PEs on CPUs.
#include "host/world/memory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bootstrap/protocol/fd.h"
#include "host/world/available_memory.h"
#include "tandem/error.h"

namespace tandem::host {
namespace {

using bootstrap::Fd;
using ::testing::AllOf;
using ::testing::HasSubstr;
using world::Handles;

constexpr Size kBytes = Size{2} << 20;

template <class E, class Work>
std::string error_of(Work work) {
  try {
    work();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another error: ") + error.what();
  }
  return "no error";
}

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

#if !defined(__SANITIZE_THREAD__)  // whose address space has no such range
TEST(HostMemory, IsNotPromisedWhereThereIsNone) {
  HostMemory memory;
  const Size most = Size{1} << 44;  // more than any computer has
  std::byte* const range = memory.reserve(most);
  EXPECT_THAT(error_of<OutOfMemory>([&] { memory.commit(range, most); }),
              AllOf(HasSubstr("bytes of memory are needed"), HasSubstr("are left")));
  memory.give_back(range, most);
}
#endif

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
