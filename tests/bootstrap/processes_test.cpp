// Worlds of real processes.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <ifaddrs.h>
#include <sys/socket.h>

#include "bootstrap/processes.h"
#include "bootstrap/rendezvous/world_member.h"
#include "tandem/advanced/unique_id.h"
#include "tandem/error.h"

namespace tandem::bootstrap::testing {
namespace {

using ::testing::HasSubstr;

Process peer(std::vector<std::string> arguments, std::vector<std::string> variables = {}) {
  return Process(TANDEM_BOOTSTRAP_PEER, std::move(arguments), std::move(variables));
}

std::vector<Process> peers(const std::string& what, const UniqueId& id, int size, const std::string& last = "") {
  std::vector<Process> all;
  for (int pe = 0; pe < size; ++pe) {
    std::vector<std::string> arguments{what, id.text(), std::to_string(pe), std::to_string(size)};
    if (!last.empty()) arguments.push_back(last);
    all.push_back(peer(arguments));
  }
  return all;
}

void expect_all_well(std::vector<Process>& all) {
  for (std::size_t pe = 0; pe < all.size(); ++pe) {
    const Ended ended = all[pe].wait();
    EXPECT_EQ(ended.code, 0) << "PE " << pe << ": " << ended.output;
    EXPECT_EQ(ended.output, "") << "PE " << pe;
  }
}

std::vector<Process> job(const std::vector<std::string>& arguments, int size, const std::string& port) {
  std::vector<Process> all;
  all.reserve(static_cast<std::size_t>(size));
  for (int pe = 0; pe < size; ++pe)
    all.push_back(peer(arguments, {"RANK=" + std::to_string(pe), "WORLD_SIZE=" + std::to_string(size),
                                   "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port}));
  return all;
}

/// Not used as a port: it only tells jobs apart.
std::string unused_port() { return std::to_string(10000 + ::getpid() % 50000); }

class WorldOfProcesses : public ::testing::TestWithParam<int> {};

TEST_P(WorldOfProcesses, MeetsAndSharesMemory) {
  auto all = peers("share", UniqueId::create(), GetParam());
  expect_all_well(all);
}
INSTANTIATE_TEST_SUITE_P(Sizes, WorldOfProcesses, ::testing::Values(1, 2, 3, 8));

TEST(ProcessesOfAJob, MeetThroughTheEnvironment) {
  auto all = job({"environment"}, 3, unused_port());
  expect_all_well(all);
}

TEST(ProcessesOfAJob, MakeManyWorldsWithoutLeaks) {
  auto all = job({"again", "100"}, 3, unused_port());
  expect_all_well(all);
}

TEST(ProcessesOfAJob, DoNotMeetThoseOfAnotherJob) {
  auto first = job({"environment"}, 2, unused_port());
  auto second = job({"environment"}, 3, std::to_string(std::stoi(unused_port()) + 1));
  expect_all_well(first);
  expect_all_well(second);
}

TEST(Processes, TwoWorldsAtOnce) {
  const UniqueId other = UniqueId::create();
  auto all = peers("two", UniqueId::create(), 3, other.text());
  expect_all_well(all);
}

TEST(Processes, AKilledPeerIsKnownAndANewWorldCanBeMade) {
  const UniqueId next = UniqueId::create();
  auto all = peers("lose", UniqueId::create(), 4, next.text());
  EXPECT_EQ(all[1].wait().code, -SIGKILL);
  all.erase(all.begin() + 1);
  expect_all_well(all);
}

TEST(Processes, ARendezvousThatFailsSaysWhy) {
  const Ended ended = peer({"host fails"}).wait();
  EXPECT_EQ(ended.code, 0) << ended.output;
}

TEST(Processes, CallsThatDifferAreAnErrorForAll) {
  auto all = peers("calls", UniqueId::create(), 3);
  expect_all_well(all);
}

TEST(Processes, SplitIntoWorldsOfTheirOwn) {
  for (const int size : {2, 5}) {
    auto all = peers("split", UniqueId::create(), size);
    expect_all_well(all);
  }
}

/// One that 127.0.0.1 is not; empty: this host has none.
std::string other_address_of_host() {
  std::string found;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return found;
  for (const ifaddrs* a = list; a != nullptr; a = a->ifa_next) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (a->ifa_addr == nullptr) continue;
    if (a->ifa_addr->sa_family == AF_INET)
      ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(a->ifa_addr)->sin_addr, text.data(), text.size());
    if (a->ifa_addr->sa_family == AF_INET6)
      ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(a->ifa_addr)->sin6_addr, text.data(), text.size());
    const std::string address = text.data();
    if (!address.empty() && address != "127.0.0.1" && address.rfind("fe80", 0) != 0) found = address;
  }
  ::freeifaddrs(list);
  return found;
}

TEST(Processes, SplitMeetsWhereTheWorldDoes) {
  const std::string address = other_address_of_host();
  if (address.empty()) GTEST_SKIP() << "this host has the address 127.0.0.1 alone";
  auto all = peers("split", UniqueId::create(address), 3);
  expect_all_well(all);
}

TEST(Processes, ALeaderThatCannotSplitTellsAll) {
  auto all = peers("split without descriptors", UniqueId::create(), 3);
  expect_all_well(all);
}

TEST(ProcessesOfAJob, AreNotDisturbedByChildrenOfFork) {
  const std::string port = unused_port();
  const auto start = [&](const std::string& pe) {
    // A sanitizer would take what the parent's threads hold for lost in the child.
    return peer({"fork"}, {"RANK=" + pe, "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port,
                           "LSAN_OPTIONS=detect_leaks=0"});
  };
  std::vector<Process> all;
  all.push_back(start("0"));
  all[0].wait_for_output();  // its first child has ended
  all.push_back(start("1"));
  for (Process& process : all) {
    const Ended ended = process.wait();
    EXPECT_EQ(ended.code, 0) << ended.output;
  }
}

TEST(Processes, AChildOfForkDoesNotKeepARendezvousOpen) {
  const UniqueId id = UniqueId::create();
  const pid_t child = ::fork();  // has copies of the listening sockets
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) ::pause();
  }
  std::string error = "no error";
  try {
    const WorldMember member(id, 0, 1, 5);
    const WorldMember late(id, 0, 1, 5);
  } catch (const RuntimeFailure& failure) {
    error = failure.what();
  }
  EXPECT_THAT(error, HasSubstr("no process listens there any more"));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(Processes, OneThatNeverComesIsNamed) {
  const std::string timeout_ms = "10000";  // in which the two that come meet on a busy machine too
  const UniqueId id = UniqueId::create();
  auto first = peer({"share", id.text(), "0", "3", timeout_ms});
  auto third = peer({"share", id.text(), "2", "3", timeout_ms});
  for (Process* process : {&first, &third}) {
    const Ended ended = process->wait();
    EXPECT_EQ(ended.code, 1);
    EXPECT_THAT(ended.output, HasSubstr("PE 1 of 3 never came"));
  }
}

TEST(Processes, SizesThatDifferAreAnErrorForAll) {
  const UniqueId id = UniqueId::create();
  auto first = peer({"share", id.text(), "0", "2"});
  auto second = peer({"share", id.text(), "1", "3"});
  for (Process* process : {&first, &second}) {
    const Ended ended = process->wait();
    EXPECT_EQ(ended.code, 1);
    EXPECT_THAT(ended.output, HasSubstr("do not agree on the size of their world"));
  }
}

TEST(Processes, OneThatComesTwiceIsRefusedAndTheWorldIsMade) {
  const UniqueId id = UniqueId::create();
  std::vector<Process> all;
  all.push_back(peer({"share", id.text(), "1", "2"}));
  auto twin = peer({"share", id.text(), "1", "2"});
  // Which of the two came first is open; the other one is told, before PE 0 comes.
  pollfd ends[2] = {{all[0].output(), POLLIN, 0}, {twin.output(), POLLIN, 0}};
  ASSERT_EQ(::poll(ends, 2, 600'000), 1);
  if (ends[0].revents != 0) std::swap(all[0], twin);
  const Ended refused = twin.wait();
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.output, HasSubstr("PE 1 of 2 has joined twice"));
  all.push_back(peer({"share", id.text(), "0", "2"}));
  expect_all_well(all);
}

}  // namespace
}  // namespace tandem::bootstrap::testing
