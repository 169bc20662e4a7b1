// How the processes of a job get their id, and who does not get it.
#include <gmock/gmock.h>
#include <sys/socket.h>

#include "bootstrap/local/local_rendezvous.h"
#include "bootstrap/processes.h"
#include "bootstrap/protocol/socket.h"

namespace tandem::bootstrap::testing {
namespace {

using ::testing::HasSubstr;

/// A job of this test's own.
class Job {
 public:
  explicit Job(int pes)
      : variables_{"WORLD_SIZE=" + std::to_string(pes), "MASTER_ADDR=127.0.0.1", "MASTER_PORT=1",
                   "TANDEM_RUN_ID=" + hex(random_key())} {}

  Process start(int pe, std::vector<std::string> arguments = {"environment"}) const {
    std::vector<std::string> variables = variables_;
    variables.push_back("RANK=" + std::to_string(pe));
    return Process(TANDEM_BOOTSTRAP_PEER, std::move(arguments), std::move(variables));
  }
  std::string hand_off_name(int i) const {
    const auto variable = [&](const std::string& name) -> std::optional<std::string> {
      for (const std::string& one : variables_)
        if (one.rfind(name + "=", 0) == 0) return one.substr(name.size() + 1);
      return name == "RANK" ? std::optional<std::string>("0") : std::nullopt;
    };
    return bootstrap::hand_off_name(key_of_job(read_places(variable), 0), i);
  }
  /// Waits until PE 0 hands over its id. Returns a connection that has said nothing.
  Fd connect() const {
    const Deadline deadline(60);
    while (!deadline.passed())
      if (Fd socket = connect_local(hand_off_name(0), SOCK_STREAM)) return socket;
    return {};
  }

 private:
  std::vector<std::string> variables_;
};

void expect_well(Process& process) {
  const Ended ended = process.wait();
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_EQ(ended.output, "");
}

Process squatter(const Job& job, int names) {
  std::vector<std::string> arguments{"squat"};
  for (int i = 0; i < names; ++i) arguments.push_back(job.hand_off_name(i));
  Process process(TANDEM_BOOTSTRAP_PEER, std::move(arguments));
  process.wait_for_output();
  return process;
}

TEST(HandOff, StrangersGetNoIdAndTakeNoPlace) {
  const Job job(2);
  Process first = job.start(0);
  const Fd silent = job.connect();
  for (int i = 0; i < 3; ++i) {
    const Fd stranger = job.connect();
    const Bytes hello = FrameWriter(hello_key(random_key())).frame(Kind::kHello, random_key());
    send_all(stranger, hello, Deadline(60));
    ASSERT_TRUE(wait_for(stranger.get(), POLLIN, Deadline(60)));
    std::array<std::byte, 128> bytes;
    EXPECT_LE(::recv(stranger.get(), bytes.data(), bytes.size(), 0), 0);  // closed without an answer
  }
  Process second = job.start(1);
  expect_well(first);
  expect_well(second);
}

TEST(HandOff, NamesThatAnotherUserHoldsArePassedBy) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const Job job(3);
  const Process held = squatter(job, 2);
  std::vector<Process> all;
  for (const int pe : {2, 0, 1}) all.push_back(job.start(pe));
  for (Process& process : all) expect_well(process);
}

TEST(HandOff, WhoHoldsAllNamesIsNamed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const Job job(2);
  const Process held = squatter(job, kHandOffNames);
  Process first = job.start(0);
  Process second = job.start(1, {"environment", "2000"});
  const std::string holder = "process " + std::to_string(held.id()) + " of user 65534";
  const Ended of_first = first.wait();
  EXPECT_EQ(of_first.code, 1);
  EXPECT_THAT(of_first.output, HasSubstr("all 16 names of this job's hand-off socket are taken, by " + holder));
  const Ended of_second = second.wait();
  EXPECT_EQ(of_second.code, 1);
  EXPECT_THAT(of_second.output, HasSubstr("PE 0 of this job did not start"));
  EXPECT_THAT(of_second.output, HasSubstr(holder + " is at its hand-off socket and does not belong to the job"));
}

TEST(HandOff, AHolderThatDoesNotProveTheJobIsNotBelieved) {
  const Job job(2);
  const Fd listener = listen_local(job.hand_off_name(0), SOCK_STREAM);
  Process second = job.start(1, {"environment", "2000"});
  ASSERT_TRUE(wait_for(listener.get(), POLLIN, Deadline(60)));
  const Fd caller = accept_one(listener);
  send_all(caller, UniqueId::create().bytes(), Deadline(60));
  const Ended ended = second.wait();
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.output, HasSubstr("process " + std::to_string(::getpid()) + " of user"));
  EXPECT_THAT(ended.output, HasSubstr("does not belong to the job"));
}

TEST(HandOff, TwoJobsThatLookAlikeAreTold) {
  const Job job(3);
  Process first = job.start(0);
  const Fd connection = job.connect();
  const Ended other_first = job.start(0).wait();
  EXPECT_EQ(other_first.code, 1);
  EXPECT_THAT(other_first.output, HasSubstr("another process is PE 0 of this job already: process " +
                                            std::to_string(first.id()) + " of user"));
  EXPECT_THAT(other_first.output, HasSubstr("TANDEM_RUN_ID"));
  std::vector<Process> twins;
  twins.reserve(2);
  for (int i = 0; i < 2; ++i) twins.push_back(job.start(1));
  pollfd ends[2] = {{twins[0].output(), POLLIN, 0}, {twins[1].output(), POLLIN, 0}};
  ASSERT_EQ(::poll(ends, 2, 60000), 1);
  if (ends[0].revents != 0) std::swap(twins[0], twins[1]);
  const std::string both[2] = {std::to_string(twins[0].id()), std::to_string(twins[1].id())};
  const Ended refused = twins[1].wait();
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.output, HasSubstr("PE 1 of 3 has joined twice: process " + both[0] + " of user"));
  EXPECT_THAT(refused.output, HasSubstr("process " + both[1] + " of user"));
  Process third = job.start(2);
  expect_well(first);
  expect_well(twins[0]);
  expect_well(third);
}

}  // namespace
}  // namespace tandem::bootstrap::testing
