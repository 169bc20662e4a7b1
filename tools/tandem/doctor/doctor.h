#pragma once
/// `tandem doctor`: the properties of a machine, its problems, and remedies.

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tandem/advanced/placement.h"

namespace tandem::cli {

/// A finding for the user.
struct Finding {
  bool is_problem = false;  ///< a defect or a slow setting; otherwise a hint
  std::string what;
  std::string advice;  ///< empty: no action
};

/// Returns what the operating system reports: limits, network adapters, libraries. Keys are `driver`, `limits`, `nics`,
/// `libraries`, `multicast`. `root` is the folder of /sys, /proc and /dev, so that tests can use their own.
nlohmann::ordered_json inspect_system(const std::string& root, std::vector<Finding>& findings);

/// Returns libfabric's `found`, `file` and `version`. Worlds of several hosts need the same on all of them.
nlohmann::ordered_json find_libfabric();

/// Returns for each process of a job its `host`, `node` (null), `address`, `interface`, `mtu`, `libfabric`, `provider`
/// and `seal`. They meet by `place`, which has the id of a later world afterwards. Collective.
nlohmann::ordered_json gather_hosts(Placement& place, double timeout_s);

/// Finds the hosts that differ in what they must have alike.
void compare_hosts(const nlohmann::ordered_json& pes, std::vector<Finding>& findings);

/// Compares the hosts of this process's job, and measures the links between the processes, by messages and by shared
/// memory of CPUs. Keys are `pes` (as `gather_hosts`, with `node`) and `pe_links`. Without a world there is a finding
/// and no link. Returns null in all processes but the first one.
nlohmann::ordered_json inspect_processes(std::vector<Finding>& findings);

/// Adds what is to be known of processes that share this host's GPUs, or that would have to.
void inspect_sharing(std::size_t gpus, std::vector<Finding>& findings);

/// Finds for each network adapter the GPU that is nearest in the tree of PCI devices, and stores it as `nearest_gpu`.
/// `gpus` has `pci` for each GPU.
void match_nics(const std::string& root, const nlohmann::ordered_json& gpus, nlohmann::ordered_json& nics);

}  // namespace tandem::cli
