// Standard output and standard error that are closed or full, and hostile text on its way to a terminal.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "base/builtin_files.h"
#include "cli/tool.h"
#include "tools/tandem/main/console.cpp"

namespace tandem::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::Outcome;
using testing::tandem;
using testing::TemporaryFolder;

/// The tool with redirections of its own: `arguments` end with them. Core files are not written.
Outcome shell(const std::string& arguments) {
  const TemporaryFolder folder;
  std::ofstream(folder / "script") << "ulimit -c 0\nexec '" << TANDEM_CLI_PATH << "' " << arguments << '\n';
  const std::string command = "sh " + folder / "script" + " >'" + folder / "out" + "' 2>'" + folder / "err" + "'";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, testing::read_file(folder / "out"),
          testing::read_file(folder / "err")};
}

TEST(Console, OutputThatCannotBeWrittenHasCode3) {
  const std::string commands[] = {"list",
                                  "--help",
                                  "launch --help",
                                  "machines h200x4",
                                  "run all_reduce --bytes 1K",
                                  "run all_reduce --bytes 1K --json -",
                                  "bench all_reduce -e 2K",
                                  "bench all_gather_gemm --shape 64x64x64",
                                  "check barrier --pes 2 --schedules 1",
                                  "doctor",
                                  "launch -n 2 echo hi"};
  for (const std::string& command : commands)
    for (const std::string to : {" >/dev/full", " >&-"}) {
      const Outcome outcome = shell(command + to);
      EXPECT_EQ(outcome.code, 3) << command + to;
      EXPECT_THAT(outcome.err, ::testing::StartsWith("tandem: ")) << command + to;
      EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    }
  EXPECT_EQ(shell("bench all_reduce -e 2K >/dev/full").err,
            "tandem: writing to standard output failed: No space left on device\n");
}

TEST(Console, ErrorsThatCannotBeWrittenEndNothing) {
  for (const std::string to : {" 2>/dev/full", " 2>&-"}) {
    EXPECT_EQ(shell("nope" + to).code, 2) << to;
    EXPECT_EQ(shell("check barrier --break x" + to).code, 2) << to;
    EXPECT_EQ(shell("run all_reduce --bytes 1K" + to).code, 0) << to;
    EXPECT_EQ(shell("launch -n 2 sh -c 'echo ho >&2'" + to).code, 3) << to;
  }
}

/// A file that the tool opens must not become its standard output.
TEST(Console, NothingIsWrittenIntoAFileThatTookAClosedStreamsNumber) {
  const TemporaryFolder folder;
  const Outcome outcome = shell("run all_reduce --bytes 1K --json " + folder / "a.json" + " >&- 2>&-");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(nlohmann::json::parse(testing::read_file(folder / "a.json"))["correct"], true);
}

TEST(Console, AFileThatIsNotFinishedDoesNotStayWhereASignalEndsTheTool) {
  const TemporaryFolder folder;
  const TemporaryFolder files;
  // SIGXFSZ comes while the file is written: the report is longer than the limit.
  std::ofstream(folder / "script") << "ulimit -c 0\nulimit -f 4\nexec '" << TANDEM_CLI_PATH
                                   << "' run all_reduce --bytes 64K --report " << files / "a.html" << '\n';
  EXPECT_NE(std::system(("sh " + folder / "script >/dev/null 2>&1").c_str()), 0);
  EXPECT_TRUE(std::filesystem::is_empty(files.path()));
}

TEST(Console, TheReasonOfAFailedWriteIsGiven) {
  EXPECT_EQ(tandem("bench all_reduce -e 4K --json /dev/full").err,
            "tandem: writing '/dev/full' failed: No space left on device\n");
}

TEST(Console, ControlCharactersOfInputsAreEscaped) {
  const Outcome outcome = tandem("\"$(printf 'a\\nb\\033[31m\\342\\200\\256\\377\\303\\251')\"");
  EXPECT_THAT(outcome.err, HasSubstr("'a\\nb\\x1b[31m\\u202e\\xff\303\251' given"));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

TEST(Console, AVeryLongInputIsCut) {
  const Outcome outcome = tandem("run all_reduce --pes $(head -c 100000 /dev/zero | tr '\\0' 7)");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_LT(outcome.err.size(), 4000U);
  EXPECT_THAT(outcome.err, HasSubstr("bytes left out"));
  EXPECT_THAT(outcome.err, HasSubstr("allowed is a whole number below 2^31"));
}

TEST(Console, AMachineFileCannotSpeakToTheTerminal) {
  const TemporaryFolder folder;
  auto machine = nlohmann::json::parse(detail::builtin_machines()[0].text);
  machine["name"] = "mine\033[31m";
  std::ofstream(folder / "m.json") << machine;
  for (const std::string command :
       {"machines ", "run all_reduce --bytes 1K --machine ", "bench all_reduce -e 1K --machine "}) {
    const Outcome outcome = tandem(command + folder / "m.json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("mine\\x1b[31m"));
    EXPECT_THAT(outcome.out, Not(HasSubstr("\033")));
  }
}

TEST(Printable, KeepsWellFormedTextAndTheEndsOfLines) {
  const std::string text = "gr\303\274n \342\202\254 \360\237\230\200 100 %\nnext";
  EXPECT_EQ(printable(text, Lines::kSeveral), text);
  EXPECT_EQ(printable("a\nb"), "a\\nb");
  EXPECT_EQ(printable(""), "");
}

TEST(Printable, EscapesWhatIsNoUtf8) {
  EXPECT_EQ(printable("\300\200"), "\\xc0\\x80");                    // a zero in two bytes
  EXPECT_EQ(printable("\355\240\200"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(printable("\364\220\200\200"), "\\xf4\\x90\\x80\\x80");  // beyond Unicode
  EXPECT_EQ(printable("\342\202"), "\\xe2\\x82");                    // cut off
  EXPECT_EQ(printable("\302\233"), "\\x9b");                         // a control character of Latin-1
}

}  // namespace
}  // namespace tandem::cli
