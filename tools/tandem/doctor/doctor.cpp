// `tandem doctor`: the report, for people and as JSON.
#include "tools/tandem/doctor/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "tandem/error.h"
#include "tools/tandem/doctor/nccl_process.h"
#include "tools/tandem/launch/nccl_variables.h"
#include "tools/tandem/main/commands.h"
#include "tools/tandem/main/gpu.h"
#include "tools/tandem/options/json_file.h"

namespace tandem::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& value) {
  if (value.is_null()) return "unknown";
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_number_float()) return value.dump();
  const auto number = value.get<double>();
  return fmt::format("{:.{}f}", number, number == std::floor(number) ? 0 : 1);
}

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  return std::filesystem::equivalent(a, b, error) && !error;
}

void print_matrix(const char* title, const Json& links, std::size_t gpus, const char* key) {
  fmt::print("  {}\n{:>10}", title, "to");
  for (std::size_t to = 0; to < gpus; ++to) fmt::print("{:>9}", to);
  for (std::size_t from = 0; from < gpus; ++from) {
    fmt::print("\n  from {:<3}", from);
    for (std::size_t to = 0; to < gpus; ++to) {
      std::string cell = "-";
      for (const Json& link : links)
        if (link["from"] == from && link["to"] == to)
          cell = link[key].is_null() ? "none" : fmt::format("{:.2f}", link[key].get<double>());
      fmt::print("{:>9}", cell);
    }
  }
  fmt::print("\n");
}

void print_gpus(const Json& report) {
  const Json& gpus = report["gpus"];
  fmt::print("GPUs ({}; CUDA of the driver: {})\n", report["build"].get<std::string>(), text_of(report["cuda_driver"]));
  if (gpus.empty()) fmt::print("  none\n");
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const Json& gpu = gpus[i];
    fmt::print("  {} {} {} sm_{}, {} SMs, {:.0f} GiB, handles: {}, multicast hardware: {}\n", i, text_of(gpu["name"]),
               text_of(gpu["pci"]), text_of(gpu["compute_capability"]), text_of(gpu["sms"]),
               gpu["memory_gib"].get<double>(), fmt::join(gpu["handle_types"].get<std::vector<std::string>>(), ", "),
               gpu["multicast"].get<bool>() ? "yes" : "no");
  }
  if (report["links"].empty()) return;
  fmt::print("links\n");
  print_matrix("copy engine, GB/s", report["links"], gpus.size(), "copy_gbps");
  print_matrix("a signal one way, us", report["links"], gpus.size(), "signal_us");
}

void print_system(const Json& report) {
  const Json& limits = report["limits"];
  fmt::print("driver\n  {}\n", text_of(report["driver"]));
  fmt::print("limits\n  locked memory {} MiB, open files {}, /dev/shm {} MiB, memory of the control group {}\n",
             text_of(limits["memlock_mib"]), text_of(limits["open_files"]), text_of(limits["shm_mib"]),
             text_of(limits["memory_max"]));
  fmt::print("network adapters\n");
  if (report["nics"].empty()) fmt::print("  none\n");
  for (const Json& nic : report["nics"])
    fmt::print("  {} {} {} Gb/s, {}, nearest GPU {}\n", text_of(nic["name"]), text_of(nic["kind"]),
               text_of(nic["gbps"]), text_of(nic["state"]),
               nic["nearest_gpu"].is_null() ? "none" : text_of(nic["nearest_gpu"]));
  fmt::print("libraries\n");
  for (const auto& [name, library] : report["libraries"].items())
    fmt::print("  {} {}\n", name,
               library["found"].get<bool>()
                   ? fmt::format("{} ({})", text_of(library["version"]), text_of(library["file"]))
                   : "not found");
  fmt::print("multicast\n  {} on GPUs by this version\n", text_of(report["multicast"]));
}

/// Reports on a running process.
int execute_for_process(const DoctorOptions& arguments) {
  std::string library;
  try {
    library = nccl_library();
  } catch (const Unsupported&) {
    fmt::print(stderr, "Tandem's NCCL library is not beside this program; missing names are not reported\n");
  }
  Json report{{"process", arguments.process}, {"nccl", inspect_nccl_of(arguments.process, library)}};
  write_json(arguments, report);
  if (arguments.json_to_stdout()) return kRight;
  fmt::print("NCCL of process {}\n", arguments.process);
  if (report["nccl"].empty()) fmt::print("  no library of it imports NCCL's functions\n");
  for (const Json& one : report["nccl"]) {
    fmt::print("  {} imports {} functions, {} not called yet\n", text_of(one["file"]), text_of(one["imports"]),
               text_of(one["unbound"]));
    for (const Json& bound : one["bound"])
      fmt::print("    bound to {}{}\n", text_of(bound), is_same_file(text_of(bound), library) ? " (Tandem)" : "");
    for (const Json& name : one["missing"]) fmt::print("    Tandem's library has no {}\n", text_of(name));
  }
  return kRight;
}

void print_processes(const Json& report) {
  if (!report.contains("pes")) return;
  const Json& pes = report["pes"];
  fmt::print("processes\n");
  for (std::size_t pe = 0; pe < pes.size(); ++pe)
    fmt::print("  PE {} on host {}, node {}, {} ({}, MTU {}), libfabric {} {}, sealed {}\n", pe,
               text_of(pes[pe]["host"]), text_of(pes[pe]["node"]), text_of(pes[pe]["address"]),
               text_of(pes[pe]["interface"]), text_of(pes[pe]["mtu"]), text_of(pes[pe]["libfabric"]),
               text_of(pes[pe]["provider"]), text_of(pes[pe]["seal"]));
  if (report["pe_links"].empty()) return;
  print_matrix("writes of 8 MiB, GB/s", report["pe_links"], pes.size(), "gbps");
  print_matrix("a write of 4 bytes and its answer, us", report["pe_links"], pes.size(), "us");
}

/// Returns whether a launcher has started this process as one of several.
bool is_launched() { return std::getenv("RANK") != nullptr || std::getenv("SLURM_PROCID") != nullptr; }

}  // namespace

int execute(const DoctorOptions& arguments) {
  check_json_file(arguments);
  if (arguments.process != 0) return execute_for_process(arguments);
  std::vector<Finding> findings;
  Json processes = Json::object();
  if (is_launched()) processes = inspect_processes(findings);
  if (processes.is_null()) return kRight;  // the first process reports
  Json report = inspect_system("", findings);
  report.update(processes);
  report.update(inspect_gpus(findings));
  inspect_sharing(report["gpus"].size(), findings);
  match_nics("", report["gpus"], report["nics"]);
  std::ranges::stable_sort(findings, std::greater<>(), &Finding::is_problem);  // the problems first
  report["findings"] = Json::array();
  for (const Finding& finding : findings)
    report["findings"].push_back({{"problem", finding.is_problem}, {"what", finding.what}, {"advice", finding.advice}});
  write_json(arguments, report);
  if (arguments.json_to_stdout()) return kRight;
  print_gpus(report);
  print_system(report);
  print_processes(report);
  fmt::print("findings\n");
  if (findings.empty()) fmt::print("  nothing is wrong\n");
  for (const Finding& finding : findings) {
    fmt::print("  {}: {}\n", finding.is_problem ? "problem" : "hint", finding.what);
    if (!finding.advice.empty()) fmt::print("    {}\n", finding.advice);
  }
  return kRight;
}

}  // namespace tandem::cli
