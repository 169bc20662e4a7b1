// Worlds of processes on CPUs that span hosts. TANDEM_HOST divides this computer, and messages go through libfabric.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>

#include "bootstrap/processes.h"
#include "tandem/advanced/unique_id.h"
#include "world/two_hosts.h"

namespace tandem::test {
namespace {

using bootstrap::testing::Ended;
using bootstrap::testing::Process;

struct Shape {
  int hosts;
  int size;  ///< PEs of a host
};

/// Variables of a process on a host. No PE is lost for silence on a busy machine.
std::vector<std::string> on_host(int host, const std::vector<std::string>& more) {
  std::vector<std::string> all{std::string("TANDEM_HOST=") + static_cast<char>('a' + host), "TANDEM_HEARTBEAT_S=600"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// Starts one process for each PE.
std::vector<Process> start(const std::string& what, Shape shape, const std::vector<std::string>& variables = {}) {
  const UniqueId id = UniqueId::create();
  const int pes = shape.hosts * shape.size;
  std::vector<Process> all;
  all.reserve(static_cast<std::size_t>(pes));
  for (int pe = 0; pe < pes; ++pe)
    all.emplace_back(TANDEM_WORLD_PEER,
                     std::vector<std::string>{what, id.text(), std::to_string(pe), std::to_string(pes)},
                     on_host(pe / shape.size, variables));
  return all;
}

void expect_good_ends(std::vector<Process> all) {
  for (std::size_t pe = 0; pe < all.size(); ++pe) {
    const Ended ended = all[pe].wait();
    EXPECT_EQ(ended.code, 0) << "PE " << pe;
    EXPECT_EQ(ended.output, "") << "PE " << pe;
  }
}

std::string read_line(Process& process) {
  std::string line;
  char letter = 0;
  process.wait_for_output();
  while (::read(process.output(), &letter, 1) == 1 && letter != '\n') line += letter;
  return line;
}

constexpr const char* kDefaultHeartbeat = "TANDEM_HEARTBEAT_S=";

bool has_libfabric() { return ::dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL) != nullptr; }

class OnHosts : public ::testing::TestWithParam<Shape> {
 protected:
  void SetUp() override {
    if (!has_libfabric()) GTEST_SKIP() << "libfabric1 is not installed";
  }
};

TEST_P(OnHosts, Collectives) { expect_good_ends(start("collectives", GetParam())); }
TEST_P(OnHosts, Operators) { expect_good_ends(start("operators", GetParam())); }
TEST_P(OnHosts, Splits) { expect_good_ends(start("split_between_hosts", GetParam())); }
TEST_P(OnHosts, SealedCollectives) { expect_good_ends(start("collectives", GetParam(), {"TANDEM_SEAL=all"})); }
TEST_P(OnHosts, SealedOperators) { expect_good_ends(start("operators", GetParam(), {"TANDEM_SEAL=all"})); }

class FailuresBetweenHosts : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!has_libfabric()) GTEST_SKIP() << "libfabric1 is not installed";
  }
};

/// Each of three PEs is on a host of its own.
TEST_P(FailuresBetweenHosts, OfThreeProcesses) {
  const UniqueId second = UniqueId::create();
  const bool is_killed = GetParam() == std::string("survive_a_kill");
  auto all = start(GetParam(), {3, 1}, {"LSAN_OPTIONS=detect_leaks=0", "TANDEM_TEST_SECOND_ID=" + second.text()});
  for (std::size_t pe = 0; pe < all.size(); ++pe) {
    const Ended ended = all[pe].wait();
    EXPECT_EQ(ended.code, is_killed && pe == 1 ? -SIGKILL : 0) << "PE " << pe;
    EXPECT_EQ(ended.output, "") << "PE " << pe;
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, FailuresBetweenHosts,
                         ::testing::Values("abort_waits", "give_up_and_leave", "come_late", "stand_still",
                                           "learn_of_the_end", "cannot_begin", "cannot_load", "fork_within",
                                           "survive_a_kill", "miss_a_call", "differ_between_hosts", "differ_in_order",
                                           "differ_in_collective", "differ_on_devices", "exhaust_the_heap",
                                           "exhaust_addresses", "register_between_hosts", "grow_between_hosts",
                                           "keep_handlers", "have_no_port"),
                         [](const auto& one) { return std::string(one.param); });

/// Layers of libfabric keep their ports open.
TEST(Hosts, MeetStrangers) {
  if (!has_libfabric()) GTEST_SKIP() << "libfabric1 is not installed";
  expect_good_ends(start("meet_strangers", {3, 1}, {"TANDEM_FABRIC=tcp;ofi_rxm", "FI_OFI_RXM_BUFFER_SIZE=16384"}));
}

TEST(Hosts, UseLayersOfLibfabric) {
  if (!has_libfabric()) GTEST_SKIP() << "libfabric1 is not installed";
  expect_good_ends(start("operators", {2, 2}, {"TANDEM_FABRIC=tcp;ofi_rxm", "FI_OFI_RXM_BUFFER_SIZE=16384"}));
}

TEST(Hosts, LoseAStoppedPe) {
  if (!has_libfabric()) GTEST_SKIP() << "libfabric1 is not installed";
  auto all = start("lose_a_stopped_pe", {2, 1}, {kDefaultHeartbeat});
  EXPECT_EQ(read_line(all[0]), "lost");
  ::kill(all[1].id(), SIGCONT);
  expect_good_ends(std::move(all));
}

/// Fabric handles exist on all PEs, and hosts that do not reach each other's memory exchange messages.
TEST(Hosts, ShareMemoryWhereTheyReachIt) {
  if (!has_libfabric()) GTEST_SKIP() << "libfabric1 is not installed";
  expect_good_ends(start("share_a_domain", {2, 1}, {"TANDEM_FABRIC_LIBRARY=/nowhere/libfabric.so"}));
  expect_good_ends(start("have_a_domain_each", {2, 1}));
  expect_good_ends(start("have_a_domain_each", {2, 2}, {"TANDEM_HANDLES=fabric"}));
}

/// PE 0 outlives one world for each fault. TANDEM_TEST_ROUNDS=600 makes a hundred for each.
TEST(Hosts, LeaveNothingAfterFaults) {
  if (!has_libfabric()) GTEST_SKIP() << "libfabric1 is not installed";
  Process process(TANDEM_WORLD_PEER, {"leave_nothing", UniqueId::create().text(), "0", "2"}, on_host(0, {}));
  const Ended ended = process.wait();
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.output, "");
}

/// A PE learns from another one of its host which PEs of the other host wait.
TEST(Hosts, OfTwoPesStandStill) {
  if (!has_libfabric()) GTEST_SKIP() << "libfabric1 is not installed";
  expect_good_ends(start("stand_still", {2, 2}));
}

TEST(Hosts, LoadNoEngineForOneOfThem) { expect_good_ends(start("load_no_engine", {1, 2})); }

TEST(Hosts, WithoutTheEngineAreRefused) {
  expect_good_ends(start("be_refused", {2, 1},
                         {"TANDEM_FABRIC_LIBRARY=/nowhere/libfabric.so",
                          "TANDEM_TEST_ERROR=install libfabric (Debian and Ubuntu: libfabric1)"}));
}

TEST(Hosts, WithoutTheProviderAreRefused) {
  if (!has_libfabric()) GTEST_SKIP() << "libfabric1 is not installed";
  expect_good_ends(start("be_refused", {2, 1},
                         {"TANDEM_FABRIC=carrier_pigeon",
                          "TANDEM_TEST_ERROR=several hosts: libfabric has no provider 'carrier_pigeon' at 127.0.0.1"}));
}

/// Starts processes whose environments are of the given hosts, and have one more variable each.
std::vector<Process> start_each(const std::string& hosts, const std::vector<std::string>& own,
                                const std::vector<std::string>& common) {
  const UniqueId id = UniqueId::create();
  std::vector<Process> all;
  all.reserve(hosts.size());
  for (std::size_t pe = 0; pe < hosts.size(); ++pe) {
    std::vector<std::string> variables = common;
    if (!own.empty()) variables.push_back(own[pe]);
    all.emplace_back(
        TANDEM_WORLD_PEER,
        std::vector<std::string>{"be_refused", id.text(), std::to_string(pe), std::to_string(hosts.size())},
        on_host(hosts[pe] - 'a', variables));
  }
  return all;
}

TEST(Hosts, OfOtherProvidersAreRefused) {
  if (!has_libfabric()) GTEST_SKIP() << "libfabric1 is not installed";
  expect_good_ends(start_each("ab", {"TANDEM_FABRIC=tcp", "TANDEM_FABRIC=tcp;ofi_rxm"},
                              {"TANDEM_TEST_ERROR=; all must have the same"}));
}

#ifdef TANDEM_OTHER_FABRIC
TEST(Hosts, OfOtherVersionsAreRefused) {
  if (!has_libfabric()) GTEST_SKIP() << "libfabric1 is not installed";
  expect_good_ends(start_each("ab", {"TANDEM_FABRIC_LIBRARY=", "TANDEM_FABRIC_LIBRARY=" TANDEM_OTHER_FABRIC},
                              {"TANDEM_TEST_ERROR=has libfabric 1.99 "}));
}
#endif

TEST(Hosts, OfOtherSealsAreRefused) {
  if (!has_libfabric()) GTEST_SKIP() << "libfabric1 is not installed";
  expect_good_ends(
      start_each("ab", {"TANDEM_SEAL=headers", "TANDEM_SEAL=all"}, {"TANDEM_TEST_ERROR=; all must have the same"}));
}

TEST(Hosts, ThatTakeTurnsAreRefused) {
  expect_good_ends(start_each(
      "aba", {},
      {"TANDEM_TEST_INVALID=1", "TANDEM_TEST_ERROR=hosts: PEs 0, 2 on host a, PEs 1 on host b given, allowed are"}));
}

TEST(Hosts, RecordOneTimeline) {
  if (!has_libfabric()) GTEST_SKIP() << "libfabric1 is not installed";
  expect_good_ends(start("record_between_hosts", {2, 2}));
  expect_good_ends(start("record_between_hosts", {3, 1}));
}

/// Hosts with a network of their own, with two PEs each.
class NameSpaces : public ::testing::Test {
 protected:
  static constexpr int kPes = 4;

  void SetUp() override {
    if (!has_libfabric()) GTEST_SKIP() << "libfabric1 is not installed";
    if (!hosts_.are_made()) GTEST_SKIP() << "network name spaces need root, unshare, nsenter and ip";
  }

  /// Starts the PEs. The first one makes the rendezvous.
  void start(const std::string& what, const std::vector<std::string>& variables) {
    std::string id = "new:" + TwoHosts::address(0);
    std::vector<std::string> all = variables;
    all.push_back("TANDEM_TEST_ADDRESS=" + TwoHosts::address(0));
    for (int pe = 0; pe < kPes; ++pe) {
      all_.push_back(hosts_.start(pe / 2, TANDEM_WORLD_PEER, {what, id, std::to_string(pe), std::to_string(kPes)},
                                  on_host(pe / 2, all)));
      if (pe == 0) id = read_line(all_[0]);
    }
  }
  TwoHosts hosts_;
  std::vector<Process> all_;
};

TEST_F(NameSpaces, RunCollectives) {
  start("collectives", {});
  expect_good_ends(std::move(all_));
}

TEST_F(NameSpaces, RunOperators) {
  start("operators", {"TANDEM_SEAL=all"});
  expect_good_ends(std::move(all_));
}

/// Variables of a launcher for one PE of two hosts with two PEs each.
using Launcher = std::vector<std::string> (*)(int pe);

std::vector<std::string> of_torchrun(int pe) {
  return {fmt::format("RANK={}", pe),
          "WORLD_SIZE=4",
          fmt::format("LOCAL_RANK={}", pe % 2),
          "LOCAL_WORLD_SIZE=2",
          "MASTER_ADDR=" + TwoHosts::address(0),
          "MASTER_PORT=29500",
          "TORCHELASTIC_RUN_ID=none"};
}

std::vector<std::string> of_srun(int pe) {
  return {fmt::format("SLURM_PROCID={}", pe),
          "SLURM_NTASKS=4",
          fmt::format("SLURM_LOCALID={}", pe % 2),
          "SLURM_NTASKS_PER_NODE=2",
          "SLURM_STEP_NUM_NODES=2",
          "SLURM_JOB_ID=7",
          "SLURM_STEP_ID=0",
          "SLURM_STEP_NODELIST=" + TwoHosts::address(0) + "," + TwoHosts::address(1)};
}

TEST_F(NameSpaces, MeetByTheVariablesOfLaunchers) {
  for (const Launcher launcher : {of_torchrun, of_srun}) {
    for (int pe = 0; pe < kPes; ++pe) {
      std::vector<std::string> variables = launcher(pe);
      variables.emplace_back("TANDEM_SECRET=0123456789abcdef0123456789abcdef");
      variables.emplace_back("TANDEM_HEARTBEAT_S=600");
      all_.push_back(hosts_.start(pe / 2, TANDEM_WORLD_PEER, {"meet_by_environment"}, variables));
    }
    expect_good_ends(std::exchange(all_, {}));
  }
}

/// The clock of the second host is 1,000 s ahead.
TEST_F(NameSpaces, RecordOneTimelineByTwoClocks) {
  if (!TwoHosts::have_clocks()) GTEST_SKIP() << "this system lets no process have a time name space (unshare --time)";
  std::string id = "new:" + TwoHosts::address(0);
  for (int pe = 0; pe < kPes; ++pe) {
    const std::vector<std::string> arguments{"record_between_hosts", id, std::to_string(pe), std::to_string(kPes)};
    const auto variables = on_host(pe / 2, {"TANDEM_TEST_AHEAD_S=1000"});
    all_.push_back(pe < 2 ? hosts_.start(0, TANDEM_WORLD_PEER, arguments, variables)
                          : hosts_.start_ahead(1, 1000, TANDEM_WORLD_PEER, arguments, variables));
    if (pe == 0) id = read_line(all_[0]);
  }
  expect_good_ends(std::move(all_));
}

/// A host of two sends no more than the algorithm needs. Headers and heartbeats are a little more.
TEST_F(NameSpaces, SendHardlyMoreThanTheData) {
  constexpr Size kCalls = 2, kOfAPe = Size{8} << 20;  // of send_much
  struct Row {
    const char* call;
    double least;  ///< bytes that a host sends in a call, by those of a PE
  };
  // A ring of n PEs passes 2 (n - 1) / n of the data to the other host.
  for (const Row& row :
       {Row{"all_gather two_level", 2}, Row{"reduce_scatter two_level", 2}, Row{"all_reduce two_level", 1},
        Row{"all_reduce multi_ring", 1.5}, Row{"all_to_all two_level", 4}, Row{"all_gather_gemm", 2}}) {
    const Size before = hosts_.sent(0);
    start("send_much", {std::string("TANDEM_TEST_CALL=") + row.call});
    expect_good_ends(std::exchange(all_, {}));
    const double sent = static_cast<double>(hosts_.sent(0) - before) / static_cast<double>(kCalls * kOfAPe);
    EXPECT_GE(sent, row.least) << row.call;
    EXPECT_LE(sent, row.least * 1.03) << row.call;
  }
}

TEST_F(NameSpaces, GoOnAfterALinkWasCutForASecond) {
  start("reduce_again", {});
  for (Process& process : all_) EXPECT_EQ(read_line(process), "ready");
  ASSERT_TRUE(hosts_.set_link(1, false));
  std::this_thread::sleep_for(std::chrono::seconds(1));
  ASSERT_TRUE(hosts_.set_link(1, true));
  expect_good_ends(std::move(all_));
}

TEST_F(NameSpaces, RunOverALinkOfOneGigabit) {
  if (!hosts_.limit_rate("1gbit")) GTEST_SKIP() << "this system has no tc with tbf";
  start("send_much", {"TANDEM_TEST_CALL=all_reduce two_level"});
  expect_good_ends(std::move(all_));
}

/// The calls last longer than a PE may be silent.
TEST_F(NameSpaces, RunOverALinkOfOneMegabit) {
  if (!hosts_.limit_rate("1mbit")) GTEST_SKIP() << "this system has no tc with tbf";
  start("reduce_slowly", {"TANDEM_HEARTBEAT_S=3"});
  expect_good_ends(std::move(all_));
}

TEST_F(NameSpaces, NameAPortThatAFirewallDrops) {
  if (!hosts_.drop_ports("7000-7999")) GTEST_SKIP() << "this system has no policy routing";
  start("be_cut_off", {"FI_TCP_PORT_LOW_RANGE=7000", "FI_TCP_PORT_HIGH_RANGE=7999", "TANDEM_CONNECT_S=2"});
  expect_good_ends(std::move(all_));
}

TEST_F(NameSpaces, NameAPortThatNftDrops) {
  if (!hosts_.drop_ports_by_nft("7000-7999"))
    GTEST_SKIP() << "nft is not installed (nftables), or this system does not let it set rules";
  start("be_cut_off", {"FI_TCP_PORT_LOW_RANGE=7000", "FI_TCP_PORT_HIGH_RANGE=7999", "TANDEM_CONNECT_S=2"});
  expect_good_ends(std::move(all_));
}

TEST_F(NameSpaces, NameAnAddressOfOneHostAlone) {
  const UniqueId id = UniqueId::create();
  all_.push_back(hosts_.start(1, TANDEM_WORLD_PEER, {"miss_the_rendezvous", id.text(), "1", "2"}, on_host(1, {})));
  expect_good_ends(std::move(all_));
}

TEST_F(NameSpaces, LoseTheHostOfTheRendezvous) {
  start("outlive_the_rendezvous", {});
  for (Process& process : all_) EXPECT_EQ(read_line(process), "ready");
  for (int pe = 0; pe < 2; ++pe) ::kill(all_[static_cast<std::size_t>(pe)].id(), SIGKILL);
  all_.erase(all_.begin(), all_.begin() + 2);
  expect_good_ends(std::move(all_));
}

TEST_F(NameSpaces, LoseAHostWhoseLinkIsCut) {
  start("lose_the_other_host", {kDefaultHeartbeat});
  for (Process& process : all_) EXPECT_EQ(read_line(process), "ready");
  ASSERT_TRUE(hosts_.set_link(1, false));
  for (Process& process : all_) EXPECT_EQ(read_line(process), "alive");
  ASSERT_TRUE(hosts_.set_link(1, true));
  expect_good_ends(std::move(all_));
}

TEST_F(NameSpaces, LoseAKilledPe) {
  start("lose_a_killed_pe", {});
  EXPECT_EQ(all_.back().wait().code, -SIGKILL);
  all_.pop_back();
  expect_good_ends(std::move(all_));
}

INSTANTIATE_TEST_SUITE_P(Shapes, OnHosts, ::testing::Values(Shape{2, 1}, Shape{2, 2}, Shape{3, 1}),
                         [](const auto& shape) {
                           return std::to_string(shape.param.hosts) + "x" + std::to_string(shape.param.size);
                         });

}  // namespace
}  // namespace tandem::test
