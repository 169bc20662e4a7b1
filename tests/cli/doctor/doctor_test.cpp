#include "tools/tandem/doctor/doctor_sharing.cpp"
#include "tools/tandem/doctor/doctor_system.cpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>

#include "cli/tool.h"
#include "world/two_hosts.h"

namespace tandem::cli {
namespace {

using ::testing::HasSubstr;
using testing::tandem;
using testing::TemporaryFolder;

TEST(Doctor, ReportsOnAnyMachineWithOrWithoutGpus) {
  const auto outcome = tandem("doctor --json -");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto report = outcome.json();
  for (const char* const key :
       {"build", "driver", "cuda_driver", "gpus", "links", "limits", "nics", "libraries", "multicast", "findings"})
    EXPECT_TRUE(report.contains(key)) << key;
  EXPECT_EQ(report["links"].size(), report["gpus"].size() * (report["gpus"].empty() ? 0 : report["gpus"].size() - 1));
  for (const auto& finding : report["findings"]) {
    EXPECT_FALSE(finding["what"].get<std::string>().empty());
    EXPECT_TRUE(finding["problem"] == false || !finding["advice"].get<std::string>().empty()) << finding["what"];
  }
  if (report["gpus"].empty()) {
    const auto text = tandem("doctor");
    EXPECT_EQ(text.code, 0);
    EXPECT_THAT(text.out, HasSubstr("--backend cuda does not"));
    EXPECT_LT(text.out.find("  problem: "), text.out.find("  hint: "));
    EXPECT_THAT(text.out, HasSubstr("multicast\n  not used on GPUs"));
  }
}

TEST(Doctor, MeasuresTheLinksOfAJob) {
  const TemporaryFolder folder;
  const auto outcome = tandem("launch -n 3 '" TANDEM_CLI_PATH "' doctor --json '" + folder / "report" + "'");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("PE 2 on host "));
  const auto report = nlohmann::json::parse(testing::read_file(folder / "report"));
  EXPECT_EQ(report["pes"].size(), 3);
  ASSERT_EQ(report["pe_links"].size(), 6);
  for (const auto& link : report["pe_links"]) {
    EXPECT_GT(link["gbps"], 0);
    EXPECT_GT(link["us"], 0);
  }
}

/// Returns the texts of the problems that a report has found.
std::string problems_of(const nlohmann::json& report) {
  std::string all;
  for (const auto& finding : report["findings"])
    if (finding["problem"] == true) all += finding["what"].get<std::string>() + '\n';
  return all;
}

/// Hosts that do not make a world are compared all the same.
TEST(Doctor, SaysHowHostsDiffer) {
  const TemporaryFolder folder;
  const auto outcome =
      tandem("launch -n 2 sh -c 'test $RANK = 0 && export TANDEM_SEAL=all; TANDEM_HOST=host$RANK exec " TANDEM_CLI_PATH
             " doctor --json " +
             folder / "report" + "'");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("PE 1 on host host1, node unknown, 127.0.0.1 (lo, MTU "));
  const auto report = nlohmann::json::parse(testing::read_file(folder / "report"));
  EXPECT_EQ(report["pe_links"].size(), 0);
  EXPECT_THAT(problems_of(report), HasSubstr("TANDEM_SEAL differs: all on host host0, headers on host host1\n"));
  EXPECT_THAT(problems_of(report), HasSubstr("the processes make no world: "));
}

TEST(Doctor, ComparesTheInterfacesOfTwoHosts) {
  const test::TwoHosts hosts;
  if (!hosts.are_made()) GTEST_SKIP() << "network name spaces need root, unshare, nsenter and ip";
  ASSERT_TRUE(hosts.set_mtu(1, 1400));
  const TemporaryFolder folder;
  std::vector<bootstrap::testing::Process> all;
  for (int host = 0; host < 2; ++host)
    all.push_back(hosts.start(host, TANDEM_CLI_PATH, {"doctor", "--json", folder / "report"},
                              {fmt::format("RANK={}", host), "WORLD_SIZE=2", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=1",
                               "MASTER_ADDR=" + test::TwoHosts::address(0), "MASTER_PORT=29500",
                               std::string("TANDEM_HOST=") + (host == 0 ? "a" : "b"), "TANDEM_HEARTBEAT_S=600",
                               "TANDEM_SECRET=0123456789abcdef0123456789abcdef"}));
  for (auto& process : all) {
    const auto ended = process.wait();
    ASSERT_EQ(ended.code, 0) << ended.output;
  }
  const auto report = nlohmann::json::parse(testing::read_file(folder / "report"));
  for (std::size_t host = 0; host < 2; ++host) {
    const auto& pe = report["pes"][host];
    EXPECT_EQ(pe["address"], test::TwoHosts::address(static_cast<int>(host)));
    EXPECT_EQ(pe["interface"], host == 0 ? "link_a" : "link_b");
    EXPECT_EQ(pe["mtu"], host == 0 ? 1500 : 1400);
    EXPECT_EQ(pe["provider"], "tcp");
    EXPECT_EQ(pe["libfabric"], report["libraries"]["libfabric"]["version"]);
  }
  EXPECT_THAT(problems_of(report), HasSubstr("the MTU differs: 1500 on host a, 1400 on host b\n"));
  EXPECT_EQ(report["pe_links"].size(), report["pes"][0]["libfabric"].is_null() ? 0 : 2);
}

/// Returns the finding about two processes of a host with so many GPUs.
std::string finding_about_sharing(const char* share_gpu, std::size_t gpus) {
  ::setenv("TANDEM_SHARE_GPU", share_gpu, 1);
  ::setenv("LOCAL_WORLD_SIZE", "2", 1);
  std::vector<Finding> findings;
  inspect_sharing(gpus, findings);
  ::unsetenv("TANDEM_SHARE_GPU");
  ::unsetenv("LOCAL_WORLD_SIZE");
  return findings.empty() ? "" : (findings[0].is_problem ? "problem: " : "") + findings[0].what;
}

TEST(Doctor, SaysWhetherProcessesMayShareAGpu) {
  EXPECT_EQ(finding_about_sharing("", 2), "");
  EXPECT_EQ(finding_about_sharing("0", 0), "") << "they are CPUs";
  EXPECT_THAT(finding_about_sharing("", 1), HasSubstr("2 processes and 1 GPUs, on which no world of them is made"));
  EXPECT_THAT(finding_about_sharing("1", 1), HasSubstr("take turns by time slices, and times mean nothing"));
  EXPECT_EQ(finding_about_sharing("yes", 1), "problem: TANDEM_SHARE_GPU: 'yes' given, allowed are 0 and 1");
}

TEST(Doctor, SaysThatLibncclIsTandem) {
  const auto folder = std::filesystem::path(TANDEM_CLI_PATH).parent_path().parent_path();
  const std::string file = folder / "lib/tandem/nccl/libnccl.so.2";
  ASSERT_EQ(::setenv("TANDEM_NCCL_LIBRARY", file.c_str(), 1), 0);
  const auto library = tandem("doctor --json -").json()["libraries"]["nccl"];
  ::unsetenv("TANDEM_NCCL_LIBRARY");
  EXPECT_EQ(library["file"], file);
  EXPECT_THAT(library["version"].get<std::string>(), HasSubstr("Tandem "));
}

/// A machine with one driver, one GPU beside a fast adapter, another GPU elsewhere.
class PretendMachine {
 public:
  PretendMachine() {
    write("proc/driver/nvidia/version", "NVRM version: 580");
    const std::string switch0 = "sys/devices/pci0000:00/0000:01:00.0/",
                      switch1 = "sys/devices/pci0000:80/0000:81:00.0/";
    device("0000:02:00.0", switch0 + "0000:02:00.0");
    device("0000:82:00.0", switch1 + "0000:82:00.0");
    std::filesystem::create_directories(folder_ / (switch1 + "0000:83:00.0"));
    write("sys/class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)");
    write("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE");
    write("sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand");
    std::filesystem::create_symlink(folder_ / (switch1 + "0000:83:00.0"),
                                    folder_ / "sys/class/infiniband/mlx5_0/device");
    write("sys/class/net/lo/operstate", "unknown");
  }
  std::string root() const { return folder_.path().string(); }

 private:
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = folder_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << '\n';
  }
  void device(const std::string& name, const std::string& path) const {
    std::filesystem::create_directories(folder_ / path);
    std::filesystem::create_directories(folder_ / "sys/bus/pci/devices");
    std::filesystem::create_symlink(folder_ / path, folder_ / ("sys/bus/pci/devices/" + name));
  }

  TemporaryFolder folder_;
};

TEST(Doctor, FindsAdaptersWithTheirRateAndTheNearestGpu) {
  const PretendMachine machine;
  std::vector<Finding> findings;
  nlohmann::ordered_json report = inspect_system(machine.root(), findings);
  EXPECT_EQ(report["driver"], "NVRM version: 580");
  ASSERT_EQ(report["nics"].size(), 1) << "the loopback is no adapter";
  match_nics(machine.root(), {{{"pci", "0000:02:00.0"}}, {{"pci", "0000:82:00.0"}}}, report["nics"]);
  const auto& nic = report["nics"][0];
  EXPECT_EQ(nic["name"], "mlx5_0:1");
  EXPECT_EQ(nic["gbps"], 400);
  EXPECT_EQ(nic["state"], "4: ACTIVE");
  EXPECT_EQ(nic["nearest_gpu"], 1);
}

/// Little locked memory hinders adapters that read memory by themselves, and nothing else.
TEST(Doctor, TellsProblemsFromHints) {
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &usual), 0);
  const rlimit small{std::min<rlim_t>(usual.rlim_max, 1 << 20), usual.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &small), 0);
  const auto is_problem = [](const std::string& root) {
    std::vector<Finding> findings;
    inspect_system(root, findings);
    const auto found = std::find_if(findings.begin(), findings.end(), [](const Finding& finding) {
      return finding.what.find("may be locked") != std::string::npos;
    });
    return found != findings.end() && found->is_problem;
  };
  const TemporaryFolder without_adapter;
  const PretendMachine with_infiniband;
  EXPECT_FALSE(is_problem(without_adapter.path().string()));
  EXPECT_TRUE(is_problem(with_infiniband.root()));
  ::setrlimit(RLIMIT_MEMLOCK, &usual);
}

TEST(Doctor, SaysWhatIsMissing) {
  const TemporaryFolder empty;
  std::vector<Finding> findings;
  const nlohmann::ordered_json report = inspect_system(empty.path().string(), findings);
  EXPECT_TRUE(report["driver"].is_null());
  EXPECT_TRUE(report["nics"].empty());
  std::string all;
  for (const Finding& finding : findings) all += finding.what + '\n';
  EXPECT_THAT(all, HasSubstr("no NVIDIA driver"));
  EXPECT_THAT(all, HasSubstr("/dev/shm"));
}

}  // namespace
}  // namespace tandem::cli
