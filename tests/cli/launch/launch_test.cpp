// `tandem launch`.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "cli/tool.h"
#include "tools/tandem/launch/local_rank.h"

namespace tandem::cli {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using testing::Outcome;
using testing::read_file;
using testing::tandem;
using testing::TemporaryFolder;
using ::testing::UnorderedElementsAre;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// The tool in the background. All its descendants hold the write end of a pipe, whose end shows that they are gone.
class Background {
 public:
  explicit Background(std::vector<std::string> arguments) {
    int life[2], out[2];
    if (::pipe(life) != 0 || ::pipe(out) != 0) throw std::runtime_error("no pipe");
    ::fcntl(life[0], F_SETFD, FD_CLOEXEC);
    ::fcntl(out[0], F_SETFD, FD_CLOEXEC);
    arguments.insert(arguments.begin(), TANDEM_CLI_PATH);
    std::vector<char*> words;
    for (std::string& word : arguments) words.push_back(word.data());
    words.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(out[1], STDOUT_FILENO);
      ::close(out[1]);
      ::execv(words[0], words.data());
      ::_exit(127);
    }
    ::close(life[1]);
    ::close(out[1]);
    life_ = life[0];
    out_ = out[0];
  }
  ~Background() {
    if (pid_ > 0) code();
    ::close(life_);
    close_output();
  }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  void signal(int number) const { ::kill(pid_, number); }
  void close_output() {
    if (out_ >= 0) ::close(out_);
    out_ = -1;
  }
  std::string read_line() {
    std::string line;
    for (char c = 0; ::read(out_, &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }
  /// Waits for its end.
  int code() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  bool all_have_ended() const {
    constexpr int timeout_ms = 120'000;  // for what would never come
    pollfd polled{life_, POLLIN, 0};
    char c = 0;
    return ::poll(&polled, 1, timeout_ms) == 1 && ::read(life_, &c, 1) == 0;
  }

 private:
  pid_t pid_ = -1;
  int life_ = -1, out_ = -1;
};

/// A shell script as the program.
Outcome launch(const std::string& options, const std::string& script, const TemporaryFolder& folder) {
  std::ofstream(folder / "script") << script;
  return tandem("launch " + options + " sh " + folder / "script");
}

TEST(Launch, SetsWhatTorchrunSetsAndPrefixesEveryLine) {
  const TemporaryFolder folder;
  const Outcome outcome = launch("-n 3 --",
                                 "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $MASTER_ADDR\n"
                                 "test $MASTER_PORT -gt 0 && test -n $TANDEM_RUN_ID && printf 'no end of line'\n"
                                 "echo to stderr >&2\n",
                                 folder);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(lines_of(outcome.out),
              UnorderedElementsAre("[0] 0 0 3 3 127.0.0.1", "[1] 1 1 3 3 127.0.0.1", "[2] 2 2 3 3 127.0.0.1",
                                   "[0] no end of line", "[1] no end of line", "[2] no end of line"));
  EXPECT_THAT(lines_of(outcome.err), UnorderedElementsAre("[0] to stderr", "[1] to stderr", "[2] to stderr"));
}

/// Programs select the GPU of that number.
TEST(Launch, NumbersProcessesThatShareGpusByGpu) {
  EXPECT_EQ(local_rank(5, 2), 1);
  EXPECT_EQ(local_rank(5, 0), 5) << "no GPU is shared";
  ::setenv("TANDEM_SHARE_GPU", "yes", 1);
  const Outcome wrong = tandem("launch -n 2 true");
  ::unsetenv("TANDEM_SHARE_GPU");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("TANDEM_SHARE_GPU: 'yes' given, allowed are 0 and 1"));
}

TEST(Launch, GivesTheProgramItsOwnOptions) {
  const Outcome outcome = tandem("launch -n 1 printf '%s|' -n 7 --help");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "[0] -n|7|--help|\n");
}

TEST(Launch, PutsItsOwnNcclBeforeAllOthers) {
  ASSERT_EQ(::setenv("LD_PRELOAD", "libm.so.6", 1), 0);
  const Outcome outcome = tandem("launch -n 2 --nccl printenv LD_PRELOAD VLLM_NCCL_SO_PATH SGLANG_NCCL_SO_PATH");
  ::unsetenv("LD_PRELOAD");
  EXPECT_EQ(outcome.code, 0);
  const std::vector<std::string> lines = lines_of(outcome.out);
  ASSERT_EQ(lines.size(), 6U);
  for (const std::string& line : lines) EXPECT_THAT(line, HasSubstr("/tandem/nccl/libnccl.so.2"));
  EXPECT_THAT(lines, Contains(HasSubstr("libnccl.so.2:libm.so.6")));
}

TEST(Launch, EndsTheOthersWhenOneFails) {
  const TemporaryFolder folder;
  // The other processes would sleep longer than the test may last, in processes of their own.
  const Outcome outcome = launch("-n 3", "test $RANK = 1 && exit 7\nsleep 1000\n", folder);
  EXPECT_EQ(outcome.code, 7);
  EXPECT_THAT(outcome.err, HasSubstr("tandem: PE 1 failed with exit code 7"));
}

TEST(Launch, SaysWhichSignalEndedAPe) {
  const TemporaryFolder folder;
  const Outcome outcome = launch("-n 2", "test $RANK = 0 && kill -KILL $$\nsleep 1000\n", folder);
  EXPECT_EQ(outcome.code, 128 + SIGKILL);
  EXPECT_THAT(outcome.err, HasSubstr("tandem: PE 0 was ended by signal 9"));
}

TEST(Launch, KillsWhoDoesNotListen) {
  const TemporaryFolder folder;
  const Outcome outcome = launch("-n 2",
                                 "if [ $RANK = 1 ]; then trap '' TERM; touch " + folder / "ready" +
                                     "; while :; do sleep 1; done; fi\n"
                                     "while [ ! -e " +
                                     folder / "ready" + " ]; do sleep 0.01; done\nexit 3\n",
                                 folder);
  EXPECT_EQ(outcome.code, 3);
}

TEST(Launch, MakesAWorldOfItsProcesses) {
  for (const char* const part : {"environment", "again 3"}) {
    const Outcome outcome = tandem("launch -n 3 '" TANDEM_BOOTSTRAP_PEER "' " + std::string(part));
    EXPECT_EQ(outcome.code, 0) << part;
    EXPECT_EQ(outcome.out, "") << part;
    EXPECT_EQ(outcome.err, "") << part;
  }
}

TEST(Launch, PassesOnLongOutputWhole) {
  const TemporaryFolder folder;
  const Outcome outcome =
      launch("-n 2", "i=0; while [ $i -lt 3000 ]; do echo line $i of some length; i=$((i+1)); done\n", folder);
  const std::vector<std::string> lines = lines_of(outcome.out);
  EXPECT_EQ(lines.size(), 6000U);
  for (const char* const prefix : {"[0] ", "[1] "}) {
    int next = 0;
    for (const std::string& line : lines) {
      if (line.rfind(prefix, 0) == 0) {
        EXPECT_EQ(line, prefix + std::string("line ") + std::to_string(next++) + " of some length");
      }
    }
    EXPECT_EQ(next, 3000);
  }
}

TEST(Launch, PassesOnOutputWithoutEndsOfLinesInPieces) {
  const Outcome outcome = tandem("launch -n 1 head -c 1000000 /dev/zero");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\0'), 1'000'000);
  for (const std::string& line : lines_of(outcome.out)) EXPECT_LE(line.size(), 200'000U);
}

/// Both start processes that would live on: one in the PE's group, one in a session of its own.
constexpr const char* kParent = "sleep 1000 & setsid sleep 1000 & echo $PPID; wait";

TEST(LaunchLeavesNothing, WhereItIsKilled) {
  Background job({"launch", "-n", "2", "sh", "-c", kParent});
  job.read_line();
  job.read_line();
  job.signal(SIGKILL);
  EXPECT_TRUE(job.all_have_ended());
}

TEST(LaunchLeavesNothing, WhereThePesParentIsKilled) {
  Background job({"launch", "-n", "2", "sh", "-c", kParent});
  const std::string line = job.read_line();  // "[1] 1234"
  job.read_line();
  ASSERT_EQ(::kill(std::stoi(line.substr(4)), SIGKILL), 0) << line;
  EXPECT_EQ(job.code(), 3);
  EXPECT_TRUE(job.all_have_ended());
}

TEST(LaunchLeavesNothing, WhereItsOutputIsNotRead) {
  Background job({"launch", "-n", "2", "sh", "-c", kParent});
  job.read_line();
  job.read_line();
  job.close_output();  // and nothing more is written
  EXPECT_EQ(job.code(), 3);
  EXPECT_TRUE(job.all_have_ended());
}

TEST(LaunchLeavesNothing, WhereASignalAsksItToEnd) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    Background job({"launch", "-n", "2", "sh", "-c", kParent});
    job.read_line();
    job.read_line();
    job.signal(number);
    EXPECT_EQ(job.code(), 128 + number);
    EXPECT_TRUE(job.all_have_ended()) << number;
  }
}

TEST(LaunchLeavesNothing, WhereThePesHaveEnded) {
  Background job({"launch", "-n", "2", "sh", "-c", "setsid sleep 1000 & exit 0"});
  EXPECT_EQ(job.code(), 0);
  EXPECT_TRUE(job.all_have_ended());
}

TEST(Launch, RunsThePesOfOneOfSeveralHosts) {
  const TemporaryFolder folder;
  std::ofstream(folder / "script")
      << "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $GROUP_RANK $MASTER_ADDR $MASTER_PORT $TANDEM_RUN_ID\n";
  ::setenv("TANDEM_SECRET", "0123456789abcdef0123456789abcdef", 1);
  const Outcome outcome =
      tandem("launch -n 4 --nodes 2 --node-rank 1 --address 10.0.0.1 --port 7 sh " + folder / "script");
  ::unsetenv("TANDEM_SECRET");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(lines_of(outcome.out), UnorderedElementsAre("[2] 2 0 4 2 1 10.0.0.1 7", "[3] 3 1 4 2 1 10.0.0.1 7"));
}

TEST(Launch, RefusesBadInputInOneLine) {
  const std::pair<const char*, const char*> inputs[] = {
      {"launch", "-n PES is missing"},
      {"launch -n", "-n: its value is missing"},
      {"launch -n 0 true", "-n: '0' given"},
      {"launch -n 2x true", "-n: '2x' given"},
      {"launch -n 2", "PROGRAM is missing"},
      {"launch -n 2 --", "PROGRAM is missing"},
      {"launch -n 4 --nodes 2 --address x true", "TANDEM_SECRET: not set"},
      {"launch -n 4 --nodes 2 true", "several nodes need either --address"},
      {"launch -n 4 --address x true", "--id, --address: one node given"},
      {"launch -n 3 --nodes 2 --id x true", "-n: 3 PEs on 2 nodes given"},
      {"launch -n 4 --nodes 2 --node-rank 2 --id x true", "--node-rank: 2 given, allowed are 0 to 1"},
      {"launch -n 4 --nodes 2 --id /nowhere true", "--id: '/nowhere' is no file with an id"},
      {"launch -n 4 --nodes 2 --port x --id y true", "--port: 'x' given"},
      {"launch -m 2 true", "'-m'"},
      {"launch -n 2 /nowhere/program", "/nowhere/program: No such file"}};
  for (const auto& [input, says] : inputs) {
    const Outcome outcome = tandem(input);
    EXPECT_EQ(outcome.code, 2) << input;
    EXPECT_EQ(outcome.out, "") << input;
    EXPECT_THAT(outcome.err, HasSubstr(says));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
}

TEST(Launch, PrintsHelp) {
  const Outcome outcome = tandem("launch --help");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("tandem launch -n PES"));
}

}  // namespace
}  // namespace tandem::cli
