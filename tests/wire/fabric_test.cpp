// Connections of libfabric's tcp provider, on loopback.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "bootstrap/protocol/socket.h"
#include "wire/fabric/fabric.h"
#include "wire/pes.h"

namespace tandem::wire {
namespace {

using testing::await;

constexpr std::size_t kPassBytes = sizeof(bootstrap::Key);

class FabricConnections : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL) == nullptr) GTEST_SKIP() << "libfabric1 is not installed";
    for (auto& end : ends_) end = make_fabric_endpoint("127.0.0.1");
  }
  void connect() {
    ends_[0]->connect({{}, ends_[1]->address()});
    ends_[1]->connect({ends_[0]->address(), {}});
  }
  static std::uint16_t port(const Endpoint& end) {
    const Bytes address = end.address();
    sockaddr_in at{};
    std::memcpy(&at, address.data() + kPassBytes, sizeof at);
    return ntohs(at.sin_port);
  }
  /// Sends a message, and returns what the other end receives.
  Bytes exchange(int from, View header, View data) {
    bool is_sent = false, has_come = false;
    Bytes got;
    await([&] {
      is_sent = is_sent || ends_[static_cast<std::size_t>(from)]->send(1 - from, header, data);
      for (auto& end : ends_)
        end->poll([&](View message) {
          got.assign(message.begin(), message.end());
          has_come = true;
        });
      return has_come;
    });
    return got;
  }
  void expect_messages() {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{64}, std::size_t{65}, std::size_t{200'000}})
      for (const int from : {0, 1}) {
        const Bytes header(64, std::byte{7});
        Bytes data(bytes);
        for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 5 + 1);
        Bytes all = header;
        all.insert(all.end(), data.begin(), data.end());
        EXPECT_EQ(exchange(from, header, data), all) << bytes;
      }
  }

  std::array<std::unique_ptr<Endpoint>, 2> ends_;
};

TEST_F(FabricConnections, CarryMessages) {
  connect();
  expect_messages();
}

/// Before the PEs meet, strangers connect. Some say nothing, some send noise, some leave.
TEST_F(FabricConnections, MeetAmongStrangers) {
  std::vector<bootstrap::Fd> staying;
  for (std::size_t i = 0; i < 200; ++i) {
    bootstrap::Fd stranger = bootstrap::connect_tcp("127.0.0.1", port(*ends_[i % 2]), bootstrap::Deadline(60));
    const Bytes noise(i * i % 5000, static_cast<std::byte>(i));
    static_cast<void>(::send(stranger.get(), noise.data(), noise.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
    for (auto& end : ends_) end->poll([](View) { ADD_FAILURE() << "a stranger's message"; });
    if (i % 3 != 0) staying.push_back(std::move(stranger));
  }
  connect();
  expect_messages();
}

/// A caller without the pass is refused, and the PEs meet all the same.
TEST_F(FabricConnections, RefuseACallerWithoutThePass) {
  const auto caller = make_fabric_endpoint("127.0.0.1");
  Bytes address = ends_[0]->address();
  address[3] ^= std::byte{1};
  caller->connect({address, {}});
  std::string error;
  await([&] {
    ends_[0]->poll([](View) { ADD_FAILURE() << "a stranger's message"; });
    try {
      caller->poll([](View) {});
    } catch (const std::exception& why) {
      error = why.what();
    }
    return !error.empty();
  });
  EXPECT_THAT(error, ::testing::HasSubstr("libfabric: connection to PE 0: "));
  EXPECT_FALSE(caller->send(0, Bytes(64), {}));
  connect();
  expect_messages();
}

/// Messages to a PE that has gone find no room. Its end is reported by those who know why.
TEST_F(FabricConnections, SendNothingToAPeThatHasGone) {
  connect();
  expect_messages();
  ends_[1].reset();
  const Bytes data(100'000);
  await([&] {
    ends_[0]->poll([](View) {});
    return !ends_[0]->send(1, data, {});
  });
}

/// Each wake ends a wait: the one that lasts, or the next.
TEST_F(FabricConnections, EndAWaitByEachWake) {
  connect();
  expect_messages();
  std::atomic<int> waits{0};
  ends_[0]->wake();
  std::thread sleeper([&] {
    for (; waits < 100; ++waits) ends_[0]->wait(1'000'000);
  });
  for (int i = 1; i <= 100; ++i) {
    await([&] { return waits >= i; });
    if (i % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ends_[0]->wake();
  }
  sleeper.join();
}

}  // namespace
}  // namespace tandem::wire
