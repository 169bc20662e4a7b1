// The tool's runs on CPUs.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "bootstrap/processes.h"
#include "cli/tool.h"

namespace tandem::cli {
namespace {

using ::testing::AllOf;
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

bool has_libfabric() { return ::dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL) != nullptr; }

TEST(OnHost, RunsBetweenHosts) {
  if (!has_libfabric()) GTEST_SKIP() << "libfabric1 is not installed";
  const auto ended = tandem(std::string("launch -n 2 sh -c 'TANDEM_HOST=$RANK exec ") + TANDEM_CLI_PATH +
                            " run all_gather_gemm --backend host --shape 512x1024x256 --dtype f16 --json -'");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("\"correct\": true"), HasSubstr(" CPUs, 2 nodes\"")));
}

/// `tandem bench` between hosts prints its table once.
TEST(OnHost, BenchesBetweenHosts) {
  if (!has_libfabric()) GTEST_SKIP() << "libfabric1 is not installed";
  const auto ended = tandem(std::string("launch -n 2 sh -c 'TANDEM_HOST=$RANK exec ") + TANDEM_CLI_PATH +
                            " bench all_to_all --backend host --algo two_level -b 64 -e 2K -f 32'");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("# all_to_all on 2 PEs of host"), HasSubstr("# wrong elements: 0 OK")));
  EXPECT_EQ(std::count(ended.out.begin(), ended.out.end(), '\n'), 4 + 2 + 1) << ended.out;
}

/// Two processes of a job without a launcher meet at the tool's rendezvous, which ends with their world.
TEST(OnHost, RunsByARendezvous) {
  if (!has_libfabric()) GTEST_SKIP() << "libfabric1 is not installed";
  using bootstrap::testing::Process;
  Process meeting(TANDEM_CLI_PATH, {"rendezvous"});
  meeting.wait_for_output();
  std::string id;
  for (char letter = 0; ::read(meeting.output(), &letter, 1) == 1 && letter != '\n';) id += letter;
  std::vector<Process> all;
  for (const char* const rank : {"0", "1"})
    all.emplace_back(
        TANDEM_CLI_PATH,
        std::vector<std::string>{"run", "all_reduce", "--backend", "host", "--bytes", "64K", "--json", "-"},
        std::vector<std::string>{"TANDEM_UNIQUE_ID=" + id, std::string("RANK=") + rank, "WORLD_SIZE=2",
                                 std::string("TANDEM_HOST=") + rank});
  for (Process& process : all) {
    const auto ended = process.wait();
    EXPECT_EQ(ended.code, 0) << ended.output;
    if (&process == &all[0]) {
      EXPECT_THAT(ended.output, HasSubstr("\"correct\": true"));
    }
  }
  EXPECT_EQ(meeting.wait().code, 0);
}

TEST(OnHost, RefusesARendezvousElsewhere) {
  EXPECT_THAT(tandem("rendezvous --host 5").err, HasSubstr("rendezvous: no option '--host'"));
  EXPECT_THAT(tandem("rendezvous --address").err, HasSubstr("--address: its value is missing"));
  EXPECT_THAT(tandem("rendezvous --port 70000").err, HasSubstr("--port: '70000' given, allowed are 0 to 65535"));
  EXPECT_EQ(tandem("rendezvous --address 203.0.113.7").code, 2);
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

/// Returns how many complete events of each PE a trace has, by PE and category.
std::map<std::pair<int, std::string>, int> events_of(const std::string& file) {
  std::map<std::pair<int, std::string>, int> counts;
  std::ifstream text(file);
  const auto trace = nlohmann::json::parse(text);
  for (const auto& event : trace["traceEvents"])
    if (event["ph"] == "X") ++counts[{event["pid"].get<int>(), event["cat"].get<std::string>()}];
  return counts;
}

TEST(OnHost, DrawsTheTimelineOfACall) {
  const TemporaryFolder folder;
  const std::string file = folder / "trace.json";
  const std::string run = "run all_gather --algo push --bytes 4K --backend host --iterations 2 --trace '" + file + "'";
  for (const char* const node_size : {"2", "1"}) {
    ::setenv("TANDEM_NODE_SIZE", node_size, 1);
    for (const std::string& command : {run + " --pes 2", "launch -n 2 '" TANDEM_CLI_PATH "' " + run}) {
      const auto ended = tandem(command);
      ASSERT_EQ(ended.code, 0) << ended.err;
      const auto events = events_of(file);
      for (const int pe : {0, 1})
        for (const char* const category : {"kernel", "wait", "signal"})
          EXPECT_EQ((events.count({pe, category})), 1U) << command << ", nodes of " << node_size;
    }
  }
  ::unsetenv("TANDEM_NODE_SIZE");
  const auto ended =
      tandem("run all_gather_gemm --shape 256x256x128 --pes 2 --backend host --svg '" + (folder / "x.svg") + "'");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(std::filesystem::exists(folder / "x.svg"));
  const auto between = tandem("launch -n 2 sh -c 'TANDEM_HOST=$RANK exec " TANDEM_CLI_PATH
                              " run all_reduce --backend host --bytes 1K --svg " +
                              (folder / "hosts.svg") + "'");
  EXPECT_EQ(between.code, 0) << between.err;
  EXPECT_TRUE(std::filesystem::exists(folder / "hosts.svg"));
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
