// Ranks as processes that come, die and leave.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "program.h"

extern char** environ;

namespace tandem::nccl_test {
namespace {

using ::testing::HasSubstr;

/// A rank's process.
struct Peer {
  pid_t process = 0;
  int input = -1;  // closed: it goes on
  int output = -1;

  /// Waits for a line.
  std::string line() const {
    std::string all;
    for (char next = 0; next != '\n' && ::read(output, &next, 1) == 1;) all += next;
    return all;
  }
  /// Waits for all that follows.
  std::string text() const {
    std::string all;
    char part[4096];
    for (ssize_t got = 0; (got = ::read(output, part, sizeof(part))) > 0;) all.append(part, static_cast<size_t>(got));
    ::close(output);
    return all;
  }
  int wait() const {
    int status = 0;
    EXPECT_EQ(::waitpid(process, &status, 0), process);
    return status;
  }
};

Peer start(const std::string& id, int rank, int ranks, const std::string& deed) {
  int in[2], out[2];
  EXPECT_EQ(::pipe2(in, O_CLOEXEC), 0);
  EXPECT_EQ(::pipe2(out, O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  std::vector<std::string> words{TANDEM_NCCL_PEER, id, std::to_string(rank), std::to_string(ranks), deed};
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  Peer peer;
  EXPECT_EQ(::posix_spawn(&peer.process, TANDEM_NCCL_PEER, &actions, nullptr, arguments.data(), environ), 0);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(in[0]);
  ::close(out[1]);
  peer.input = in[1];
  peer.output = out[0];
  return peer;
}

/// Runs one process a rank. Returns what each has printed.
std::vector<std::string> outputs(int ranks, const std::string& deed) {
  ncclUniqueId id;
  EXPECT_EQ(error_of(ncclGetUniqueId(&id)), "");
  std::string hex;
  for (const char byte : id.internal) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  std::vector<Peer> peers;
  peers.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) peers.push_back(start(hex, rank, ranks, deed));
  std::vector<std::string> texts(peers.size());
  if (deed == "leave") {
    for (std::size_t i = 0; i < peers.size(); ++i) texts[i] = peers[i].line();
    ::close(peers.back().input);
    peers.back().wait();
    peers.back().input = -1;
  }
  for (const Peer& peer : peers)
    if (peer.input >= 0) ::close(peer.input);
  for (std::size_t i = 0; i < peers.size(); ++i) texts[i] += peers[i].text();
  for (const Peer& peer : peers)
    if (peer.input >= 0) peer.wait();
  return texts;
}

TEST(NcclProcesses, Reduce) {
  for (const std::string& text : outputs(3, "nothing")) EXPECT_EQ(text, "sum 3\nend\n");
}

TEST(NcclProcesses, SayOnceThatTheyRunOnTandem) {
  std::string file = ::testing::TempDir() + "/tandem_nccl_log_XXXXXX";
  const int made = ::mkstemp(file.data());
  outputs(1, "nothing");  // this process asks for ids, too: its own line is not written into the file
  ::setenv("NCCL_DEBUG", "WARN", 1);
  ::setenv("NCCL_DEBUG_FILE", file.c_str(), 1);
  outputs(1, "nothing");
  ::unsetenv("NCCL_DEBUG");
  ::unsetenv("NCCL_DEBUG_FILE");
  char text[4096];
  const std::string log(text, static_cast<std::size_t>(std::max<ssize_t>(::read(made, text, sizeof(text)), 0)));
  ::close(made);
  ::unlink(file.c_str());
  EXPECT_THAT(log, HasSubstr("Tandem "));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
}

TEST(NcclProcesses, EndWithoutDisturbingTheOthers) {
  for (int round = 0; round < 5; ++round)
    for (const std::string& text : outputs(3, "exit")) EXPECT_EQ(text, "sum 3\n");
}

TEST(NcclProcesses, ForkAndGoOn) {
  for (const std::string& text : outputs(2, "fork")) EXPECT_EQ(text, "sum 2\nchild ended\nsum 2\nend\n");
}

TEST(NcclProcesses, NameTheOneThatWasKilledAndGoOnWithoutIt) {
  const auto texts = outputs(3, "kill");
  for (int rank = 0; rank < 2; ++rank) {
    const std::string& text = texts[static_cast<std::size_t>(rank)];
    EXPECT_THAT(text, HasSubstr("failed 6: "));
    EXPECT_THAT(text, HasSubstr("PE 2 is gone"));
    EXPECT_THAT(text, HasSubstr("state 6\nsum 2\nend\n"));
  }
  EXPECT_EQ(texts[2], "sum 3\n");
}

TEST(NcclProcesses, TakeAnEndForNoErrorUntilTheyCall) {
  const auto texts = outputs(2, "leave");
  EXPECT_THAT(texts[0], HasSubstr("sum 2\nstate 0\nfailed 6: "));
  EXPECT_THAT(texts[0], HasSubstr("PE 1"));
  EXPECT_THAT(texts[0], HasSubstr("end\n"));
}

TEST(NcclProcesses, HearOfAnAbort) {
  const auto texts = outputs(3, "abort");
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_THAT(texts[static_cast<std::size_t>(rank)], HasSubstr("failed 6: "));
    EXPECT_THAT(texts[static_cast<std::size_t>(rank)], HasSubstr("ncclCommAbort"));
  }
  EXPECT_EQ(texts[2], "sum 3\nend\n");
}

}  // namespace
}  // namespace tandem::nccl_test
