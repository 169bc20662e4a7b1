// Worlds beside many connections of processes that do not belong to them.
#include <gmock/gmock.h>

#include "bootstrap/processes.h"
#include "bootstrap/proxy.h"
#include "bootstrap/rendezvous/world_member.h"
#include "tandem/error.h"

namespace tandem::bootstrap::testing {
namespace {

using ::testing::HasSubstr;

/// A rendezvous that heard 64 strangers at a time, each for ten seconds, would need longer for so many. One that evicts
/// them needs milliseconds, so that a busy machine has time to spare.
constexpr double kTimeout = 40;
constexpr int kIdle = 350;

bool can_become_another_user() { return ::geteuid() == 0; }

void meet(const UniqueId& id, int pe) {
  try {
    WorldMember member(id, pe, 2, kTimeout);
    member.barrier("here");
  } catch (const Error& error) {
    ADD_FAILURE() << "PE " << pe << ": " << error.what();
  }
}

void expect_a_world_of_two(const UniqueId& id) {
  std::thread other([&] { meet(id, 1); });
  meet(id, 0);
  other.join();
}

Process idle_connections_to(const UniqueId& id) {
  Process process(TANDEM_BOOTSTRAP_PEER, {"idle", id.text(), std::to_string(kIdle)});
  process.wait_for_output();
  return process;
}

TEST(IdleConnections, OfAnotherUserDelayNoMemberOnThisHost) {
  if (!can_become_another_user()) GTEST_SKIP() << "only root can become another user";
  const UniqueId id = UniqueId::create();
  const Process idle = idle_connections_to(id);
  expect_a_world_of_two(id);
}

TEST(IdleConnections, OfAnotherUserDelayNoMemberOverTcp) {
  if (!can_become_another_user()) GTEST_SKIP() << "only root can become another user";
  const UniqueId id = UniqueId::create();
  const Process idle = idle_connections_to(id);
  const Proxy proxy(id);  // its id leads to no local socket
  expect_a_world_of_two(proxy.id());
}

TEST(IdleConnections, OfThisUserDelayNoMember) {
  const UniqueId id = UniqueId::create();
  const IdContents contents = contents_of(id);
  std::vector<Fd> idle;
  for (int i = 0; i < kIdle; ++i) {
    idle.push_back(connect_tcp(contents.address, contents.port, Deadline(kTimeout)));
    idle.push_back(connect_local(local_name(contents), SOCK_STREAM));
  }
  expect_a_world_of_two(id);
}

TEST(IdleConnections, AreCountedInTheErrorOfAWorldThatIsNotMade) {
  const UniqueId id = UniqueId::create();
  const IdContents contents = contents_of(id);
  const Fd idle = connect_tcp(contents.address, contents.port, Deadline(kTimeout));
  try {
    const WorldMember member(id, 0, 2, 2);
    ADD_FAILURE() << "no error";
  } catch (const Timeout& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("PE 1 of 2 never came; of connections without the world's secret, 1 were closed "
                          "and 0 wait"));
  }
}

TEST(ARendezvous, WithoutDescriptorsSleepsAndGoesOn) {
  const Ended ended = Process(TANDEM_BOOTSTRAP_PEER, {"full"}).wait();
  EXPECT_EQ(ended.code, 0) << ended.output;
}

TEST(AnotherUsersProcess, ThatKnowsTheSecretComesOverTcp) {
  if (!can_become_another_user()) GTEST_SKIP() << "only root can become another user";
  const UniqueId id = UniqueId::create();
  Process other(TANDEM_BOOTSTRAP_PEER, {"foreign barrier", id.text(), "1", "2"});
  {
    WorldMember member(id, 0, 2, 30);
    member.barrier("another user's barrier");
  }
  const Ended ended = other.wait();
  EXPECT_EQ(ended.code, 0) << ended.output;
}

}  // namespace
}  // namespace tandem::bootstrap::testing
