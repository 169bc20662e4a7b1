// Memory of the host that peers map.
#include "bootstrap/local/shared_memory.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "bootstrap/protocol/socket.h"
#include "bootstrap/timeout.h"
#include "tandem/error.h"

namespace tandem::bootstrap {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kPage = 4096;

/// The error of a PE whose peer hands over a memory file of that size that can still shrink.
std::string error_with_peers_file(std::size_t bytes) {
  const UniqueId id = UniqueId::create();
  std::thread peer([&] {
    WorldMember member(id, 1, 2, kTimeout);
    FdExchange exchange(member);
    const Fd file(::memfd_create("test", MFD_CLOEXEC));
    EXPECT_EQ(::ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
    exchange.exchange({file.get()}, member.world());
  });
  WorldMember member(id, 0, 2, kTimeout);
  FdExchange exchange(member);
  std::string error = "no error";
  try {
    const SharedMemory memory(exchange, member.world(), kPage);
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

/// As FdExchange identifies it, without TANDEM_HOST.
std::string identity_of_host() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  struct stat space {};
  ::stat("/proc/self/ns/net", &space);
  return boot + " " + std::to_string(space.st_ino) + " ";
}

TEST(FdExchangeTest, CountsThePesOfTheComputer) {
  const UniqueId id = UniqueId::create();
  const std::string own = identity_of_host();
  const std::string computer = own.substr(0, own.find(' '));
  std::vector<std::thread> others;
  int pe = 0;
  for (const std::string& host : {computer + " 1 ", own + "a", std::string("another 1 ")})
    others.emplace_back([&id, host, me = ++pe] {
      WorldMember member(id, me, 4, kTimeout);
      member.all_gather(Writer().text(host).text("name").text("socket").result(), "local sockets");
    });
  {
    WorldMember member(id, 0, 4, kTimeout);
    const FdExchange exchange(member);
    EXPECT_EQ(exchange.pes_of_computer(), 3);
    EXPECT_FALSE(exchange.is_on_this_host(1));
  }
  for (std::thread& other : others) other.join();
}

/// PE 1 announces a socket, takes what comes there and proves nothing.
TEST(FdExchangeTest, GivesNoDescriptorsToWhoHasNotProvedTheSecret) {
  const UniqueId id = UniqueId::create();
  std::thread peer([&] {
    WorldMember member(id, 1, 2, kTimeout);
    const Fd listener = listen_local("", SOCK_SEQPACKET);
    member.all_gather(Writer().text(identity_of_host()).text("host").text(name_of(listener)).result(), "local sockets");
    member.all_gather(Writer().u64(0).u32(1).result(), "exchange of descriptors");
    ASSERT_TRUE(wait_for(listener.get(), POLLIN, Deadline(kTimeout)));
    const Fd socket = accept_one(listener);
    ASSERT_TRUE(wait_for(socket.get(), POLLIN, Deadline(kTimeout)));
    std::array<std::byte, 256> text;
    iovec part{text.data(), text.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(FdExchange::kMost * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    EXPECT_GT(::recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC), 0);
    EXPECT_EQ(message.msg_controllen, 0U);
    ::send(socket.get(), text.data(), 52, MSG_NOSIGNAL);
    member.fail({FailureKind::kRuntimeFailure, "enough"});
  });
  WorldMember member(id, 0, 2, kTimeout);
  FdExchange exchange(member);
  EXPECT_THROW(exchange.exchange({STDIN_FILENO}, member.world()), RuntimeFailure);
  peer.join();
}

}  // namespace
}  // namespace tandem::bootstrap
