#pragma once
/// `tandem launch`: runs a program as the PEs of one job on this host, or this host's PEs of a job on several hosts.

#include <optional>
#include <string>
#include <vector>

namespace tandem::cli {

struct LaunchArguments {
  int pes = 0;  ///< of the whole job
  int nodes = 1;
  int node_rank = 0;
  std::string id_file;  ///< holds the id of a rendezvous; empty: none
  std::string address;  ///< of the host of node 0; empty with an id
  int port = 29500;
  bool with_nccl = false;            ///< programs find Tandem's NCCL interface in place of NCCL
  std::vector<std::string> program;  ///< program and arguments
};

/// Parses the words after "launch". Throws InvalidArgument. Returns nothing if the user asked for help, which is
/// printed.
std::optional<LaunchArguments> parse_launch(const std::vector<std::string>& words);

/// Returns the variables of the PEs of several hosts as NAME=VALUE. Throws InvalidArgument if the PEs could not meet.
std::vector<std::string> variables_of_hosts(const LaunchArguments& arguments);

/// Runs the program once for each PE of this host and returns when all have ended. Returns 0, or the exit code of the
/// PE that failed first (128 + the number of the signal that ended it); the others are then ended. Every line of a PE
/// is printed after its number.
int launch(const LaunchArguments& arguments);

}  // namespace tandem::cli
