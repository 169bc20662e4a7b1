// Processes that meet at a port with a secret of the job, in several worlds.
#include "bootstrap/rendezvous/job_port.h"

#include <gmock/gmock.h>
#include <sys/socket.h>

#include <thread>

#include "bootstrap/processes.h"
#include "bootstrap/protocol/mac.h"
#include "tandem/error.h"

namespace tandem::bootstrap::testing {
namespace {

using ::testing::HasSubstr;
using Variables = std::vector<std::string>;

constexpr const char* kWorlds = "3";  // of each process, besides the first two

/// A port that is free now.
std::uint16_t free_port() { return port_of(listen_tcp("127.0.0.1")); }

Process start(int pe, int pes, Variables variables, std::vector<std::string> arguments = {"again", kWorlds}) {
  for (const std::string& one : {"RANK=" + std::to_string(pe), "WORLD_SIZE=" + std::to_string(pes)})
    variables.push_back(one);
  return {TANDEM_BOOTSTRAP_PEER, std::move(arguments), std::move(variables)};
}

/// Variables of a PE, without the secret of its job.
Variables at_port(std::uint16_t port) {
  return {"MASTER_ADDR=127.0.0.1", "TANDEM_PORT=" + std::to_string(port), "LOCAL_WORLD_SIZE=1"};
}

Variables with(Variables variables, const std::string& one) {
  variables.push_back(one);
  return variables;
}

const std::string kSecret = "TANDEM_SECRET=0123456789abcdef0123456789abcdef";

TEST(JobPort, BringsSeveralWorldsTogetherInAnyOrder) {
  const Variables variables = with(at_port(free_port()), kSecret);
  std::vector<Process> all;
  for (const int pe : {2, 1, 0}) all.push_back(start(pe, 3, variables));
  for (Process& one : all) {
    const Ended ended = one.wait();
    EXPECT_EQ(ended.code, 0);
    EXPECT_EQ(ended.output, "");
  }
}

TEST(JobPort, StaysOpenWhereARendezvousCannotBegin) {
  JobPort port("127.0.0.1", 0, random_key());
  {
    const Fd taken = listen_local(local_name(port.contents()), SOCK_STREAM);
    EXPECT_THROW(port.next(Deadline(0)), RuntimeFailure);
  }
  ASSERT_TRUE(port.is_free());
  const auto host = port.next(Deadline(0));
  EXPECT_EQ(host->contents().secret, port.contents().secret);  // no world's number is lost
}

TEST(JobPort, RefusesAnotherSecret) {
  const Variables place = at_port(free_port());
  Process first = start(0, 2, with(place, kSecret), {"environment", "600000"});
  Process stranger = start(1, 2, with(place, "TANDEM_SECRET=another secret of thirty-two chars"));
  const Ended refused = stranger.wait();
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.output, HasSubstr("another secret"));
  Process second = start(1, 2, with(place, kSecret), {"environment", "600000"});
  EXPECT_EQ(second.wait().output, "");
  EXPECT_EQ(first.wait().output, "");
}

TEST(JobPort, NamesWhatIsMissing) {
  const auto refusal = [](const Variables& variables) { return start(0, 2, variables, {"environment"}).wait().output; };
  EXPECT_THAT(refusal(with(at_port(1), "MASTER_PORT=1")),
              HasSubstr("TANDEM_SECRET: not set in the environment; processes of several hosts"));
  EXPECT_THAT(refusal(with(at_port(1), "TANDEM_SECRET=short")),
              HasSubstr("TANDEM_SECRET: 5 characters given, at least 32 are needed"));
  const Fd taken = listen_tcp("127.0.0.1");
  EXPECT_THAT(
      refusal(with(at_port(port_of(taken)), kSecret)),
      HasSubstr("address '127.0.0.1' port " + std::to_string(port_of(taken)) + ": cannot listen there: Address"));
}

/// As `tandem rendezvous --worlds 5` does for processes that have its id.
TEST(JobPort, ServesTheWorldsOfAnId) {
  JobPort port("127.0.0.1", 0, random_key());
  const Variables variables{"TANDEM_UNIQUE_ID=" + id_of(port.contents()).text()};
  std::vector<Process> all;
  for (const int pe : {0, 1}) all.push_back(start(pe, 2, variables));
  std::vector<std::unique_ptr<Host>> hosts;
  hosts.reserve(5);
  for (int i = 0; i < 5; ++i) hosts.push_back(port.next(Deadline(600)));
  for (Process& one : all) EXPECT_EQ(one.wait().output, "");
  EXPECT_FALSE(hosts.empty());
}

}  // namespace
}  // namespace tandem::bootstrap::testing
