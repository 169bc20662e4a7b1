// Connections to addresses that cannot be reached.
#include <gmock/gmock.h>
#include <sched.h>

#include <thread>

#include "bootstrap/protocol/socket.h"
#include "tandem/error.h"

namespace tandem::bootstrap {
namespace {

/// The thread has a network of its own, with no interface that is up.
TEST(Connect, FailsAtOnceWithoutARoute) {
  std::string error;
  bool has_network = false;
  std::thread([&] {
    has_network = ::unshare(CLONE_NEWNET) == 0;
    if (!has_network) return;
    try {
      connect_tcp("10.1.2.3", 4242, Deadline(3600));
    } catch (const RuntimeFailure& failure) {
      error = failure.what();
    }
  }).join();
  if (!has_network) GTEST_SKIP() << "network name spaces need root";
  EXPECT_THAT(error, ::testing::HasSubstr("rendezvous at 10.1.2.3 port 4242: this host has no route to that address"));
}

}  // namespace
}  // namespace tandem::bootstrap
