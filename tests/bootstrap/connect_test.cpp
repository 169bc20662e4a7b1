// Connections to addresses that cannot be reached.
#include <gmock/gmock.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>
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

/// Takes a family of addresses from the calling thread, as a system without IPv6 does.
bool take_away(int family) {
  std::array<sock_filter, 6> steps{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_socket, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(family), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog filter{static_cast<unsigned short>(steps.size()), steps.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/// A name may have addresses of families that this host lacks. They are passed over.
TEST(Connect, NeedsNoFamilyOfAddressesThatTheHostLacks) {
  std::string error;
  bool is_filtered = false;
  std::thread([&] {
    is_filtered = take_away(AF_INET6);
    if (!is_filtered) return;
    try {
      connect_tcp("::1", 4242, Deadline(3600));
    } catch (const RuntimeFailure& failure) {
      error = failure.what();
    }
  }).join();
  if (!is_filtered) GTEST_SKIP() << "system calls cannot be filtered here";
  EXPECT_THAT(error, ::testing::HasSubstr("rendezvous at ::1 port 4242: this host has no route to that address"));
}

}  // namespace
}  // namespace tandem::bootstrap
