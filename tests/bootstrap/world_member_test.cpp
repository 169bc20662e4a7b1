// Work that all PEs of a world do, and that fails on one of them.
#include "bootstrap/rendezvous/world_member.h"

#include <gmock/gmock.h>
#include <poll.h>

#include <functional>
#include <future>
#include <set>

#include "bootstrap/protocol/connection.h"
#include "bootstrap/protocol/handshake.h"
#include "bootstrap/rendezvous/host.h"
#include "bootstrap/timeout.h"
#include "tandem/error.h"

namespace tandem::bootstrap {
namespace {

/// A world whose PEs are threads; what each one's `work` throws, as "kind: text".
std::vector<std::string> errors_of(int size, const std::function<void(WorldMember&)>& work) {
  const UniqueId id = UniqueId::create();
  std::vector<std::string> errors(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  threads.reserve(errors.size());
  for (int pe = 0; pe < size; ++pe)
    threads.emplace_back([&, pe] {
      std::string& error = errors[static_cast<std::size_t>(pe)];
      try {
        WorldMember member(id, pe, size, kTimeout);
        work(member);
      } catch (const OutOfMemory& out_of_memory) {
        error = std::string("OutOfMemory: ") + out_of_memory.what();
      } catch (const Unsupported& unsupported) {
        error = std::string("Unsupported: ") + unsupported.what();
      } catch (const std::exception& other) {
        error = std::string("other: ") + other.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

TEST(WorldMemberTest, WhatFailsOnOnePeFailsOnAllAndTheWorldGoesOn) {
  const auto errors = errors_of(3, [](WorldMember& member) {
    member.all_or_none("nothing", [] {});
    try {
      member.all_or_none("something", [&] {
        if (member.pe() == 1) throw OutOfMemory("none left");
      });
      throw std::runtime_error("no error");
    } catch (const OutOfMemory&) {
      member.barrier("afterwards");
      throw;
    }
  });
  EXPECT_THAT(errors, ::testing::Each("OutOfMemory: PE 1: none left"));
}

const std::string kLong(200'000, 'x');
const std::string kCut = std::string(16'128, 'x') + " (183872 more bytes)";

TEST(WorldMemberTest, LongTextsOfErrorsAreCut) {
  const auto errors = errors_of(3, [](WorldMember& member) {
    const auto fail = [&] {
      if (member.pe() == 1) throw Unsupported(kLong);
    };
    EXPECT_THROW(member.all_or_none("something", fail), Unsupported);
    member.barrier("afterwards");
    if (member.pe() == 1) member.fail({FailureKind::kRuntimeFailure, kLong});
    member.barrier("never");
  });
  EXPECT_THAT(errors, ::testing::Each("other: PE 1: " + kCut));
}

/// The world is over before the second PE comes.
TEST(WorldMemberTest, LongTextsReachWhoComesLate) {
  const Key secret = random_key();
  const Host host(secret, "127.0.0.1");
  const Deadline deadline(kTimeout);
  const auto connect = [&] { return connect_tcp("127.0.0.1", host.contents().port, deadline); };
  const Fd first = connect();
  Handshake joined = shake_hands(first, secret, 0, 2, deadline);
  send_all(first, joined.out.frame(Kind::kFailed, Failure{FailureKind::kRuntimeFailure, kLong}.encode()), deadline);
  ASSERT_TRUE(wait_for(first.get(), POLLIN, deadline));  // it has failed
  std::string error;
  try {
    shake_hands(connect(), secret, 1, 2, deadline);
  } catch (const std::exception& why) {
    error = why.what();
  }
  EXPECT_EQ(error, "PE 0: " + kCut);
}

TEST(WorldMemberTest, OfSeveralErrorsAllPesThrowTheFirst) {
  const auto errors = errors_of(3, [](WorldMember& member) {
    member.all_or_none("something", [&] {
      if (member.pe() == 1) throw Unsupported("not this");
      if (member.pe() == 2) throw OutOfMemory("none left");
    });
  });
  EXPECT_THAT(errors, ::testing::Each("Unsupported: PE 1: not this"));
}

TEST(WorldMemberTest, WhoCannotMakeAWorldTellsWhy) {
  const auto errors = errors_of(3, [](WorldMember& member) {
    member.or_fail([&] {
      if (member.pe() == 2) throw OutOfMemory("none left");
    });
    member.barrier("the others wait");
  });
  EXPECT_EQ(errors[0], "OutOfMemory: PE 2: none left");
  EXPECT_EQ(errors[1], "OutOfMemory: PE 2: none left");
  EXPECT_EQ(errors[2], "OutOfMemory: none left");
}

/// A rendezvous by hand for a world of one PE, which stops to read once the world is made.
class SlowHost {
 public:
  SlowHost() : listener_(listen_tcp("127.0.0.1")) {
    thread_ = std::thread([this] { run(); });
  }
  UniqueId id() const { return id_of({"127.0.0.1", port_of(listener_), secret_}); }
  void go_on() { may_read_.set_value(); }
  /// After the session's end.
  int count_of_failures() {
    thread_.join();
    return failures_;
  }

 private:
  void run() {
    EXPECT_TRUE(wait_for(listener_.get(), POLLIN, Deadline(kTimeout)));
    std::set<Key> nonces;
    Connection connection(accept_one(listener_), secret_, "", nonces);
    while (!is_made_ && !connection.is_closed()) take(connection);
    may_read_.get_future().wait();
    while (!connection.is_closed()) take(connection);
  }
  void take(Connection& connection) {
    EXPECT_TRUE(wait_for(connection.socket().get(), POLLIN, Deadline(kTimeout)));
    for (const Frame& frame : connection.receive()) {
      if (frame.kind == Kind::kJoin) {
        connection.admit(0, 2 * kMostContribution);
        connection.send(Kind::kWelcome, {});
      }
      if (frame.kind == Kind::kContribute) {
        connection.send(Kind::kResult, Gathered{0, 1, 1, 0, {Bytes()}}.encode());
        is_made_ = true;
      }
      if (frame.kind == Kind::kFailed) ++failures_;
    }
    connection.flush();
  }

  Key secret_ = random_key();
  Fd listener_;
  bool is_made_ = false;
  int failures_ = 0;
  std::promise<void> may_read_;
  std::thread thread_;
};

TEST(WorldMemberTest, NoMemberWaitsForAHostThatDoesNotRead) {
  SlowHost host;
  const int messages = 400;  // of which the sockets take only a part
  {
    WorldMember member(host.id(), 0, 1, kTimeout);
    for (int i = 0; i < messages; ++i) member.fail({FailureKind::kRuntimeFailure, std::string(60000, 'x')});
    host.go_on();
  }
  EXPECT_EQ(host.count_of_failures(), messages);
}

}  // namespace
}  // namespace tandem::bootstrap
