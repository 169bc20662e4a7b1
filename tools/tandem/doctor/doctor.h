#pragma once
/// `tandem doctor`: what a machine has, what is wrong with it, and what to do.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tandem::cli {

/// One thing that a person should know.
struct Finding {
  bool is_problem = false;  ///< something does not work here, or is slow; else a hint
  std::string what;
  std::string advice;  ///< empty: nothing to do
};

/// What the operating system says: limits, network adapters, libraries. Keys `driver`, `limits`, `nics`, `libraries`,
/// `multicast`. `root`: where /sys, /proc and /dev are looked for, so that tests can bring their own.
nlohmann::ordered_json inspect_system(const std::string& root, std::vector<Finding>& findings);

/// For each network adapter the GPU that is nearest in the tree of PCI devices, into its `nearest_gpu`. `gpus` has
/// `pci` of each.
void match_nics(const std::string& root, const nlohmann::ordered_json& gpus, nlohmann::ordered_json& nics);

}  // namespace tandem::cli
