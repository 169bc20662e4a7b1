// The tool's runs on CPUs.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <cstdlib>

#include "cli/tool.h"

namespace tandem::cli {
namespace {

using ::testing::HasSubstr;
using testing::run_json;
using testing::tandem;
using testing::TemporaryFolder;

TEST(OnHost, RunsACollective) {
  const auto json = run_json("all_reduce --backend host --pes 3 --bytes 10K --dtype bf16 --algo ring");
  EXPECT_EQ(json["backend"], "host");
  EXPECT_EQ(json["predicted"], false);
  EXPECT_EQ(json["pes"], 3);
  EXPECT_EQ(json["algorithm"], "ring");
  EXPECT_EQ(json["correct"], true);
  EXPECT_TRUE(json["trace_hash"].is_null());
}

TEST(OnHost, RunsAnOperator) {
  for (const char* const op : {"all_gather_gemm", "gemm_reduce_scatter", "gemm_all_reduce"}) {
    const auto json = run_json(std::string(op) + " --backend host --pes 2 --shape 64x96x64");
    EXPECT_EQ(json["correct"], true) << op;
    EXPECT_EQ(json["shape"], "64x96x64");
  }
}

TEST(OnHost, RunsAsProcesses) {
  for (const char* const pes : {"2", "3", "4"}) {
    const auto ended = tandem(std::string("launch -n ") + pes + " '" + TANDEM_CLI_PATH +
                              "' run all_gather_gemm --backend host --shape 48x96x64 --json -");
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_THAT(ended.out, HasSubstr("\"correct\": true"));
  }
}

TEST(OnHost, Benches) {
  const auto collective = tandem("bench all_gather broadcast --backend host --pes 2 -b 1K -e 4K -f 4");
  EXPECT_EQ(collective.code, 0) << collective.err;
  EXPECT_THAT(collective.out, HasSubstr("times are measured"));
  EXPECT_THAT(collective.out, HasSubstr("# wrong elements: 0 OK"));
  const auto op = tandem("bench gemm_reduce_scatter --backend host --pes 2 --shape 64x64x64 -b 32");
  EXPECT_EQ(op.code, 0) << op.err;
}

TEST(OnHost, Tunes) {
  const TemporaryFolder folder;
  const std::string file = folder / "host.json";
  const auto ended = tandem("tune send_recv --backend host --pes 2 -b 1K -e 1K --iterations 1 --out '" + file + "'");
  EXPECT_EQ(ended.code, 0) << ended.err;
  const auto json = run_json("send_recv --backend host --pes 2 --selection '" + file + "'");
  EXPECT_EQ(json["correct"], true);
}

TEST(OnHost, RefusesWhatItHasNot) {
  const auto refused = [](const std::string& arguments, int code) {
    const auto ended = tandem(arguments);
    EXPECT_EQ(ended.code, code) << arguments;
    return ended.err;
  };
  for (const std::string command : {"run all_reduce", "bench all_reduce", "tune all_reduce --out x.json",
                                    "launch -n 1 '" TANDEM_CLI_PATH "' run all_reduce"})
    EXPECT_THAT(refused(command + " --backend tpu", 2), HasSubstr("'tpu' given, allowed are sim, cuda, host"));
  EXPECT_THAT(refused("launch -n 1025 true", 2), HasSubstr("-n: '1025' given, allowed are 1 to 1024"));
  EXPECT_THAT(refused("run all_reduce --backend host --machine h200x8", 2), HasSubstr("--machine: does not apply"));
  EXPECT_THAT(refused("run all_reduce --backend host --graph", 2), HasSubstr("--graph: does not apply"));
  EXPECT_THAT(refused("run all_reduce --backend host --phantom", 2), HasSubstr("--phantom: does not apply"));
  EXPECT_THAT(refused("run all_reduce --backend host --svg x.svg", 2), HasSubstr("records no timeline"));
  EXPECT_THAT(refused("run all_reduce --backend host --pes 257", 2),
              HasSubstr("pes: 257 given, allowed are 1 to 256 PEs of one process"));
  EXPECT_THAT(refused("run all_reduce --backend host --pes 0", 2), HasSubstr("--pes: 0 given"));
  EXPECT_THAT(refused("run all_reduce --backend host --bytes 4096G", 2), HasSubstr("this computer has"));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they open files of their own
TEST(OnHost, NamesTheLimitThatIsTooSmall) {
  const TemporaryFolder folder;
  const auto error_under = [&](const std::string& limit, const std::string& arguments) {
    const std::string run = "ulimit " + limit + "; '" TANDEM_CLI_PATH "' " + arguments + " >/dev/null 2>'";
    const int status = std::system((run + (folder / "err") + "'").c_str());
    EXPECT_EQ(WEXITSTATUS(status), 3) << arguments;
    return testing::read_file(folder / "err");
  };
  EXPECT_THAT(error_under("-n 20", "run all_reduce --backend host --pes 40 --bytes 1K"),
              HasSubstr("too many open files (ulimit -n)"));
  EXPECT_THAT(error_under("-n 16", "launch -n 20 true"), HasSubstr("too many open files (ulimit -n)"));
  EXPECT_THAT(error_under("-f 1000", "run all_reduce --backend host --pes 2 --bytes 64M"), HasSubstr("(ulimit -f)"));
}
#endif

}  // namespace
}  // namespace tandem::cli
