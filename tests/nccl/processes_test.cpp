// Ranks as processes that come, die and leave.
#include <algorithm>
#include <fstream>

#include "peers.h"

namespace tandem::nccl_test {
namespace {

using ::testing::HasSubstr;

TEST(NcclProcesses, Reduce) {
  for (const std::string& text : outputs(3, "nothing")) EXPECT_EQ(text, "sum 3\nend\n");
}

TEST(NcclProcesses, MakeEveryCall) {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    const std::vector<std::string> texts = outputs(ranks, "every");
    EXPECT_THAT(texts[0], ::testing::ContainsRegex("sum [1-8]\n[0-9]+ right\nend\n"));
    for (const std::string& text : texts) EXPECT_EQ(text, texts[0]) << ranks << " processes";
  }
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

TEST(NcclProcesses, SayWhatCarriesACommunicator) {
  const std::string file = ::testing::TempDir() + fmt::format("/tandem_nccl_carrier_{}", ::getpid());
  outputs(1, "nothing");  // this process asks for ids, too
  ::setenv("NCCL_DEBUG", "INFO", 1);
  ::setenv("NCCL_DEBUG_FILE", file.c_str(), 1);
  outputs(2, "nothing");
  ::unsetenv("NCCL_DEBUG");
  ::unsetenv("NCCL_DEBUG_FILE");
  std::ifstream log(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(log, line);)
    if (line.find(" of 2 is carried by Tandem") != std::string::npos) lines.push_back(line);
  EXPECT_EQ(lines.size(), 2);
  ::unlink(file.c_str());
}

TEST(NcclProcesses, LeaveSmsAloneWhereTheyShould) {
  ::setenv("TANDEM_LOG", "info", 1);
  const auto texts = outputs(2, "copies");
  ::unsetenv("TANDEM_LOG");
  EXPECT_THAT(texts[0], ::testing::ContainsRegex("all_gather of at most .*: copy_engine_push"));
  EXPECT_THAT(texts[0], ::testing::ContainsRegex("all_reduce of at most .*: [^c]"));  // sums take SMs
  for (const std::string& text : texts) {
    EXPECT_THAT(text, HasSubstr("gathered 0 1\n"));
    EXPECT_THAT(text, HasSubstr("sum 2\n"));
  }
}

TEST(NcclProcesses, EndWithoutDisturbingTheOthers) {
  for (const int ranks : {1, 2, 3, 5, 8})
    for (const std::string& text : outputs(ranks, "exit")) EXPECT_EQ(text, fmt::format("sum {}\n", ranks));
}

TEST(NcclProcesses, ForkAndGoOn) {
  for (const int ranks : {1, 5})
    for (const std::string& text : outputs(ranks, "fork"))
      EXPECT_EQ(text, fmt::format("sum {0}\nchild ended\nsum {0}\nend\n", ranks));
}

TEST(NcclProcesses, NameTheOneThatWasKilledAndGoOnWithoutIt) {
  for (const int ranks : {2, 3, 8}) {
    auto texts = outputs(ranks, "kill");
    EXPECT_EQ(texts.back(), fmt::format("sum {}\n", ranks));
    texts.pop_back();
    for (const std::string& text : texts) {
      EXPECT_THAT(text, HasSubstr("failed 6: "));
      EXPECT_THAT(text, HasSubstr(fmt::format("PE {} is gone", ranks - 1)));
      EXPECT_THAT(text, HasSubstr(fmt::format("state 6\nsum {}\nend\n", ranks - 1)));
    }
  }
}

TEST(NcclProcesses, TakeAnEndForNoErrorUntilTheyCall) {
  const auto texts = outputs(2, "leave");
  EXPECT_THAT(texts[0], HasSubstr("sum 2\nstate 0\nfailed 6: "));
  EXPECT_THAT(texts[0], HasSubstr("PE 1"));
  EXPECT_THAT(texts[0], HasSubstr("end\n"));
}

TEST(NcclProcesses, SayForWhomTheyWait) {
  ::setenv("TANDEM_SLOW_WAIT_S", "0.2", 1);
  const auto texts = outputs(3, "late");
  ::unsetenv("TANDEM_SLOW_WAIT_S");
  for (int rank = 0; rank < 2; ++rank) {
    const std::string& text = texts[static_cast<std::size_t>(rank)];
    EXPECT_THAT(text, HasSubstr(fmt::format("sum 3\nrank {} of 3 has waited for 0.2 s: PE ", rank)));
    EXPECT_THAT(text, HasSubstr("2 not there: it has not come, or computes; so far PE "));
    EXPECT_THAT(text, HasSubstr("\nsum 3\nend\n"));  // the wait did not end by itself
  }
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
