// Connections of libfabric's tcp provider, on loopback.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>

#include "bootstrap/protocol/socket.h"
#include "tandem/error.h"
#include "wire/fabric/fabric.h"
#include "wire/pes.h"

namespace tandem::wire {
namespace {

using testing::await;

constexpr std::size_t kPassBytes = sizeof(bootstrap::Key);

/// The parameter is the time for which a thread that receives looks for messages. With 0 there is none.
class FabricConnections : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (::dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL) == nullptr) GTEST_SKIP() << "libfabric1 is not installed";
    for (auto& end : ends_) end = make_fabric_endpoint("127.0.0.1", search_);
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
  /// Sends a message, and returns what the other end receives. The data is lost as soon as it may be.
  Bytes exchange(int from, View header, Bytes data, bool stays) {
    bool is_sent = false, has_come = false;
    Bytes got;
    const auto lose_data = [&] { std::fill(data.begin(), data.end(), std::byte{}); };
    const OnSent sent = stays ? OnSent(lose_data) : nullptr;
    await([&] {
      if (!is_sent) {
        is_sent = ends_[static_cast<std::size_t>(from)]->send(1 - from, header, data, sent);
        if (is_sent && !stays) lose_data();
      }
      for (auto& end : ends_)
        end->poll([&](View message) {
          got.assign(message.begin(), message.end());
          has_come = true;
          return false;
        });
      return has_come;
    });
    await([&] {
      ends_[static_cast<std::size_t>(from)]->poll([](View) { return false; });
      return data.empty() || data[0] == std::byte{};
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
        for (const bool stays : {false, true}) EXPECT_EQ(exchange(from, header, data, stays), all) << bytes;
      }
  }

  const std::chrono::microseconds search_{GetParam()};
  std::array<std::unique_ptr<Endpoint>, 2> ends_;
};

TEST_P(FabricConnections, CarryMessages) {
  connect();
  expect_messages();
}

/// Messages in use keep their contents, and others find room again once they are released.
TEST_P(FabricConnections, LeaveMessagesInUse) {
  connect();
  for (int round = 0; round < 10; ++round) {
    std::vector<View> kept;
    int sent = 0;
    await([&] {
      const Bytes header(64, static_cast<std::byte>(sent)), data(100'000, static_cast<std::byte>(sent + 1));
      if (sent < 20 && ends_[0]->send(1, header, data, nullptr)) ++sent;
      ends_[0]->poll([](View) { return false; });
      ends_[1]->poll([&](View message) {
        kept.push_back(message);
        return true;
      });
      return kept.size() == 20;
    });
    for (std::size_t i = 0; i < kept.size(); ++i) {
      EXPECT_EQ(kept[i].size(), 100'064U);
      EXPECT_EQ(kept[i].front(), static_cast<std::byte>(i));
      EXPECT_EQ(kept[i].back(), static_cast<std::byte>(i + 1));
      ends_[1]->release(kept[i]);
    }
  }
}

TEST_P(FabricConnections, AreWokenByEachMessage) {
  connect();
  expect_messages();
  std::atomic<int> got{0};
  std::atomic<bool> is_over{false};
  std::thread receiver([&] {
    while (!is_over) {
      const bool has_message = ends_[1]->poll([&](View) {
        ++got;
        return false;
      });
      if (!has_message) ends_[1]->wait(1'000'000);
    }
  });
  const auto send = [&](int i) {
    await([&] { return ends_[0]->send(1, Bytes(64), {}, nullptr); });
    if (i % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    await([&] {
      ends_[0]->poll([](View) { return false; });
      return got >= i;
    });
  };
  try {
    for (int i = 1; i <= 50; ++i) send(i);
  } catch (const std::runtime_error& why) {
    ADD_FAILURE() << why.what();
  }
  is_over = true;
  ends_[1]->wake();
  receiver.join();
}

/// Before the PEs meet, 10,000 strangers connect. Some say nothing, some send noise, some leave.
TEST_P(FabricConnections, MeetAmongStrangers) {
  std::vector<bootstrap::Fd> staying;
  for (std::size_t i = 0; i < 10'000; ++i) {
    bootstrap::Fd stranger = bootstrap::connect_tcp("127.0.0.1", port(*ends_[i % 2]), bootstrap::Deadline(60));
    const Bytes noise(i * i % 5000, static_cast<std::byte>(i));
    static_cast<void>(::send(stranger.get(), noise.data(), noise.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
    for (auto& end : ends_)
      end->poll([](View) {
        ADD_FAILURE() << "a stranger's message";
        return false;
      });
    if (i < 200 && i % 3 != 0) staying.push_back(std::move(stranger));
  }
  connect();
  expect_messages();
}

/// Libfabric would read behind the end of an address that is too short.
TEST_P(FabricConnections, RefuseAnAddressOfAnotherLength) {
  Bytes address = ends_[1]->address();
  address.resize(address.size() - 1);
  try {
    ends_[0]->connect({{}, address});
    ADD_FAILURE() << "no error";
  } catch (const RuntimeFailure& why) {
    EXPECT_THAT(why.what(), ::testing::HasSubstr("libfabric: the address of PE 1 has "));
  }
}

/// A caller without the pass is refused, and the PEs meet all the same.
TEST_P(FabricConnections, RefuseACallerWithoutThePass) {
  const auto caller = make_fabric_endpoint("127.0.0.1", search_);
  Bytes address = ends_[0]->address();
  address[3] ^= std::byte{1};
  caller->connect({address, {}});
  std::string error;
  await([&] {
    ends_[0]->poll([](View) {
      ADD_FAILURE() << "a stranger's message";
      return false;
    });
    try {
      caller->poll([](View) { return false; });
    } catch (const std::exception& why) {
      error = why.what();
    }
    return !error.empty();
  });
  EXPECT_THAT(error, ::testing::HasSubstr("libfabric: connection to PE 0: "));
  EXPECT_FALSE(caller->send(0, Bytes(64), {}, nullptr));
  connect();
  expect_messages();
}

/// Messages to a PE that has gone find no room. Its connection is reported as broken once, whether or not anything is
/// sent.
TEST_P(FabricConnections, SendNothingToAPeThatHasGone) {
  for (const bool sends : {false, true}) {
    for (auto& end : ends_) end = make_fabric_endpoint("127.0.0.1", search_);
    connect();
    expect_messages();
    ends_[1].reset();
    std::vector<Break> broken;
    await([&] {
      ends_[0]->poll([](View) { return false; });
      if (sends) static_cast<void>(ends_[0]->send(1, Bytes(100'000), {}, nullptr));
      broken = ends_[0]->breaks();
      return !broken.empty();
    });
    ASSERT_EQ(broken.size(), 1U);
    EXPECT_EQ(broken[0].pe, 1);
    EXPECT_NE(broken[0].why, "");
    EXPECT_FALSE(ends_[0]->send(1, Bytes(64), {}, nullptr));
    EXPECT_TRUE(ends_[0]->breaks().empty());
  }
}

/// The connection breaks between two PEs that live. The PE that sends along it finds that, without a message.
TEST_P(FabricConnections, NoticeThatOneOfThemBroke) {
  const std::uint16_t listening = port(*ends_[1]);
  connect();
  expect_messages();
  int cut = 0;
  for (int fd = 0; fd < 1024; ++fd) {
    sockaddr_in at{};
    socklen_t bytes = sizeof at;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&at), &bytes) != 0 || ntohs(at.sin_port) != listening) continue;
    cut += ::shutdown(fd, SHUT_RDWR) == 0 ? 1 : 0;
  }
  ASSERT_EQ(cut, 1);
  std::vector<Break> broken;
  await([&] {
    for (auto& end : ends_) end->poll([](View) { return false; });
    broken = ends_[0]->breaks();
    return !broken.empty();
  });
  EXPECT_EQ(broken[0].pe, 1);
  EXPECT_TRUE(ends_[1]->breaks().empty());
  EXPECT_EQ(exchange(1, Bytes(64, std::byte{3}), Bytes(1000, std::byte{5}), false).size(), 1064U);
}

/// PE 1 takes no messages, and PE 2 gets all of its own.
TEST_P(FabricConnections, LeaveRoomForOtherPes) {
  std::array<std::unique_ptr<Endpoint>, 3> all;
  for (auto& end : all) end = make_fabric_endpoint("127.0.0.1", search_);
  std::vector<Bytes> addresses;
  for (auto& end : all) addresses.push_back(end->address());
  for (std::size_t pe = 0; pe < 3; ++pe) {
    std::vector<Bytes> others = addresses;
    others[pe].clear();
    all[pe]->connect(others);
  }
  const Bytes data(200'000, std::byte{9});
  std::array<int, 3> sent{}, got{};
  const auto send = [&](int pe) {
    const bool is_sent = all[0]->send(pe, Bytes(64), data, nullptr);
    sent[static_cast<std::size_t>(pe)] += is_sent ? 1 : 0;
    return is_sent;
  };
  const auto poll = [&](std::size_t pe) {
    all[pe]->poll([&](View) {
      ++got[pe];
      return false;
    });
  };
  for (const int pe : {1, 2})
    await([&] {
      for (std::size_t other = 0; other < 3; ++other) poll(other);
      return sent[static_cast<std::size_t>(pe)] == 1 || send(pe);
    });
  // As much as the system's own buffers hold, and then all that finds room.
  for (int in_vain = 0; in_vain < 1000; ++in_vain) {
    poll(0);
    if (send(1)) in_vain = 0;
  }
  const int last = sent[2] + 30;
  await([&] {
    for (const std::size_t pe : {0, 2}) poll(pe);
    if (sent[2] < last) send(2);
    return got[2] == last;
  });
  await([&] {
    for (const std::size_t pe : {0, 1}) poll(pe);
    return got[1] == sent[1];
  });
}

/// A litmus test of two proxies over connections. Each of 64 places gets new data many times, of several lengths. A
/// reader beside the proxy sees a word, then all data that was put before it. TANDEM_TEST_ROUNDS=1000000 makes as many
/// rounds.
TEST_P(FabricConnections, ShowDataToWhoeverSeesItsWord) {
  constexpr Size kPlaces = 64, kPlace = 8192, kPart = kPlaces * kPlace + 16;
  constexpr Size kWord = kPart - 16, kCredit = kPart - 8;
  const char* const text = std::getenv("TANDEM_TEST_ROUNDS");
  const std::uint64_t rounds = text == nullptr ? 20'000 : std::stoull(text);
  connect();
  std::vector<std::uint64_t> memory(2 * kPart / 8), source(kPlaces * kPlace / 8);
  std::vector<std::unique_ptr<Proxy>> proxies;
  for (int pe = 0; pe < 2; ++pe) {
    ProxySetup setup;
    setup.place = {reinterpret_cast<std::byte*>(memory.data()), kPart, 2, pe, 1};
    setup.secret = testing::key_of(1);
    setup.ring = [] {};
    setup.is_over = [] { return false; };
    setup.on_error = [](const std::exception_ptr& error) { std::rethrow_exception(error); };
    proxies.push_back(std::make_unique<Proxy>(std::move(setup), std::move(ends_[static_cast<std::size_t>(pe)]), kPart));
  }
  const auto word = [&](int pe, Size offset) {
    return std::atomic_ref(memory[static_cast<std::size_t>((pe * kPart + offset) / 8)]).load(std::memory_order_acquire);
  };
  const auto words_of = [](std::uint64_t round) { return 1 + round * 37 % (kPlace / 8); };
  const auto post = [&](int from, Request request) {
    request.pe = 1 - from;
    request.has_word = true;
    await([&] { return proxies[static_cast<std::size_t>(from)]->mailbox().try_post(request) != 0; });
  };
  std::atomic<std::uint64_t> wrong{0};
  std::thread reader([&] {
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      await([&] { return word(1, kWord) >= round; });
      const std::uint64_t* const data = &memory[static_cast<std::size_t>((kPart + round % kPlaces * kPlace) / 8)];
      for (std::uint64_t i = 0; i < words_of(round); ++i) wrong += data[i] == round + i ? 0U : 1U;
      if (round % (kPlaces / 2) == 0) post(1, {.word = kCredit, .value = round});
    }
  });
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    if (round > kPlaces) await([&] { return word(0, kCredit) + kPlaces / 2 * 2 > round; });
    std::uint64_t* const data = &source[static_cast<std::size_t>(round % kPlaces * kPlace / 8)];
    for (std::uint64_t i = 0; i < words_of(round); ++i) data[i] = round + i;
    post(0, {.local = data,
             .offset = static_cast<Size>(round % kPlaces) * kPlace,
             .bytes = static_cast<Size>(words_of(round)) * 8,
             .word = kWord,
             .value = round});
  }
  reader.join();
  EXPECT_EQ(wrong, 0U);
}

/// Each wake ends a wait: the one that lasts, or the next.
TEST_P(FabricConnections, EndAWaitByEachWake) {
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

INSTANTIATE_TEST_SUITE_P(Searches, FabricConnections, ::testing::Values(0, 100));

}  // namespace
}  // namespace tandem::wire
