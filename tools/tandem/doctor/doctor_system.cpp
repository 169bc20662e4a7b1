// Properties of a machine that the operating system reports.
#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "tools/tandem/doctor/doctor.h"

namespace tandem::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr double kMiB = 1 << 20;

/// Returns the first line of a small file, or "" if there is none.
std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> all;
  std::error_code ignored;
  for (fs::directory_iterator it(folder, ignored), end; !ignored && it != end; it.increment(ignored))
    all.push_back(it->path());
  std::sort(all.begin(), all.end());
  return all;
}

Json limit(int which, double unit) {
  rlimit limits{};
  if (getrlimit(static_cast<__rlimit_resource_t>(which), &limits) != 0) return nullptr;
  return limits.rlim_cur == RLIM_INFINITY ? Json("unlimited") : Json(static_cast<double>(limits.rlim_cur) / unit);
}

bool is_below(const Json& value, double least) { return value.is_number() && value.get<double>() < least; }

/// `has_fabric`: a network adapter can read and write memory by itself.
Json inspect_limits(const std::string& root, bool has_fabric, std::vector<Finding>& findings) {
  Json limits;
  limits["memlock_mib"] = limit(RLIMIT_MEMLOCK, kMiB);
  limits["open_files"] = limit(RLIMIT_NOFILE, 1);
  struct statvfs shm {};
  limits["shm_mib"] = statvfs((root + "/dev/shm").c_str(), &shm) == 0
                          ? Json(static_cast<double>(shm.f_blocks) * static_cast<double>(shm.f_frsize) / kMiB)
                          : Json(nullptr);
  const std::string memory = first_line(root + "/sys/fs/cgroup/memory.max");
  limits["memory_max"] = memory.empty() ? Json(nullptr) : Json(memory);
  if (is_below(limits["memlock_mib"], 64))
    findings.push_back({has_fabric,
                        fmt::format("only {:.1f} MiB of memory may be locked; InfiniBand adapters need more, GPUs of "
                                    "one node do not",
                                    limits["memlock_mib"].get<double>()),
                        "ulimit -l unlimited, or `docker run --ulimit memlock=-1`"});
  if (is_below(limits["open_files"], 1024))
    findings.push_back({true, "fewer than 1024 files may be open; memory is shared by file descriptors",
                        "ulimit -n 65536, or `docker run --ulimit nofile=65536`"});
  if (limits["shm_mib"].is_null() || is_below(limits["shm_mib"], 64))
    findings.push_back({false,
                        "/dev/shm is missing or smaller than 64 MiB, which NCCL and PyTorch need (Tandem does not)",
                        "`docker run --shm-size=1g`, or --ipc=host"});
  return limits;
}

/// Returns the rate in Gb/s for "400 Gb/sec (4X NDR)".
Json rate_of(const std::string& text) {
  char* end = nullptr;
  const double rate = std::strtod(text.c_str(), &end);
  return end != text.c_str() && rate > 0 ? Json(rate) : Json(nullptr);
}

Json inspect_nics(const std::string& root) {
  Json nics = Json::array();
  for (const fs::path& device : entries(root + "/sys/class/infiniband"))
    for (const fs::path& port : entries(device / "ports")) {
      Json nic;
      nic["name"] = device.filename().string() + ":" + port.filename().string();
      nic["kind"] = first_line(port / "link_layer");
      nic["state"] = first_line(port / "state");
      nic["gbps"] = rate_of(first_line(port / "rate"));
      nic["device"] = (device / "device").string();
      nics.push_back(nic);
    }
  for (const fs::path& device : entries(root + "/sys/class/net")) {
    std::error_code ignored;
    if (!fs::exists(device / "device", ignored)) continue;  // no hardware: lo, bridges
    const Json megabits = rate_of(first_line(device / "speed"));
    Json nic;
    nic["name"] = device.filename().string();
    nic["kind"] = "Ethernet";
    nic["state"] = first_line(device / "operstate");
    nic["gbps"] = megabits.is_null() ? Json(nullptr) : Json(megabits.get<double>() / 1000);
    nic["device"] = (device / "device").string();
    nics.push_back(nic);
  }
  return nics;
}

Json find_library(const char* variable, const char* name, const char* version_function) {
  const char* const file = variable != nullptr ? std::getenv(variable) : nullptr;
  Json library;
  library["file"] = file != nullptr ? file : name;
  void* const handle = dlopen(file != nullptr ? file : name, RTLD_LAZY | RTLD_LOCAL);
  library["found"] = handle != nullptr;
  library["version"] = nullptr;
  if (handle == nullptr || version_function == nullptr) return library;
  int number = 0;
  auto* const version = reinterpret_cast<int (*)(int*)>(dlsym(handle, version_function));
  if (auto* const identity = reinterpret_cast<const char* (*)()>(dlsym(handle, "tandem_nccl_identity")))
    library["version"] = identity();
  else if (version != nullptr && version(&number) == 0)
    library["version"] = fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
  return library;
}

/// Returns the folders from the root of the PCI tree down to a device.
std::vector<std::string> branch(const fs::path& device) {
  std::error_code error;
  const fs::path real = fs::canonical(device, error);
  std::vector<std::string> parts;
  if (!error)
    for (const fs::path& part : real) parts.push_back(part.string());
  return parts;
}

std::size_t common(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::size_t n = 0;
  while (n < a.size() && n < b.size() && a[n] == b[n]) ++n;
  return n;
}

}  // namespace

Json find_libfabric() {
  Json library = find_library("TANDEM_FABRIC_LIBRARY", "libfabric.so.1", nullptr);
  if (!library["found"].get<bool>()) return library;
  void* const handle = dlopen(library["file"].get<std::string>().c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (auto* const version = reinterpret_cast<unsigned (*)()>(dlsym(handle, "fi_version")))
    library["version"] = fmt::format("{}.{}", version() >> 16, version() & 0xFFFF);
  return library;
}

Json inspect_system(const std::string& root, std::vector<Finding>& findings) {
  Json system;
  const std::string driver = first_line(root + "/proc/driver/nvidia/version");
  system["driver"] = driver.empty() ? Json(nullptr) : Json(driver);
  if (driver.empty())
    findings.push_back({true, "no NVIDIA driver is loaded here",
                        "install the driver; in a container: the NVIDIA container toolkit and `--gpus all`"});
  system["nics"] = inspect_nics(root);
  const bool has_fabric = std::any_of(system["nics"].begin(), system["nics"].end(),
                                      [](const Json& nic) { return nic["kind"] == "InfiniBand"; });
  system["limits"] = inspect_limits(root, has_fabric, findings);
  system["libraries"]["nccl"] = find_library("TANDEM_NCCL_LIBRARY", "libnccl.so.2", "ncclGetVersion");
  system["libraries"]["nvshmem"] = find_library(nullptr, "libnvshmem_host.so.3", nullptr);
  system["libraries"]["libfabric"] = find_libfabric();
  if (!system["libraries"]["libfabric"]["found"].get<bool>())
    findings.push_back({false, "libfabric was not found; only worlds of several hosts need it",
                        "install libfabric (Debian and Ubuntu: libfabric1)"});
  if (!system["libraries"]["nccl"]["found"].get<bool>())
    findings.push_back({false, "NCCL was not found; only comparisons need it",
                        "set TANDEM_NCCL_LIBRARY to libnccl.so.2, for example of PyTorch's nvidia-nccl package"});
  system["multicast"] = "not used";  // on GPUs; their lines say whether the hardware has it
  return system;
}

void match_nics(const std::string& root, const Json& gpus, Json& nics) {
  for (Json& nic : nics) {
    const auto own = branch(nic["device"].get<std::string>());
    std::size_t best = 0;
    nic["nearest_gpu"] = nullptr;
    for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) {
      const std::size_t shared =
          common(own, branch(root + "/sys/bus/pci/devices/" + gpus[gpu]["pci"].get<std::string>()));
      if (shared <= best) continue;
      best = shared;
      nic["nearest_gpu"] = gpu;
    }
    nic.erase("device");
  }
}

}  // namespace tandem::cli
