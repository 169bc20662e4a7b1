// Memory of the host that peers map.
#include "bootstrap/shared_memory.h"

#include <gmock/gmock.h>
#include <sys/mman.h>

#include <thread>

#include "bootstrap/socket.h"
#include "tandem/error.h"

namespace tandem::bootstrap {
namespace {

using ::testing::HasSubstr;

constexpr double kTimeout = 30;
constexpr std::size_t kPage = 4096;

/// The error of a PE whose peer hands over a memory file of that size that can still shrink.
std::string error_with_peers_file(std::size_t bytes) {
  const UniqueId id = UniqueId::create();
  std::thread peer([&] {
    Session session(id, 1, 2, kTimeout);
    FdExchange exchange(session);
    const Fd file(::memfd_create("test", MFD_CLOEXEC));
    EXPECT_EQ(::ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
    exchange.exchange({file.get()}, session.world());
  });
  Session session(id, 0, 2, kTimeout);
  FdExchange exchange(session);
  std::string error = "no error";
  try {
    const SharedMemory memory(exchange, session.world(), kPage);
  } catch (const RuntimeFailure& failure) {
    error = failure.what();
  }
  peer.join();
  return error;
}

TEST(SharedMemoryTest, OfAnotherSizeIsRefused) {
  EXPECT_EQ(error_with_peers_file(0), "PE 1's shared memory: 0 bytes given, needed are 4096");
  EXPECT_EQ(error_with_peers_file(kPage + 1), "PE 1's shared memory: 4097 bytes given, needed are 4096");
}

TEST(SharedMemoryTest, ThatCanShrinkIsRefused) {
  EXPECT_THAT(error_with_peers_file(kPage), HasSubstr("PE 1's shared memory: it is not sealed against shrinking"));
}

}  // namespace
}  // namespace tandem::bootstrap
