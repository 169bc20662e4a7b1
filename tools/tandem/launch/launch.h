#pragma once
/// `tandem launch`: runs a program as the PEs of one job on this host.

#include <optional>
#include <string>
#include <vector>

namespace tandem::cli {

struct LaunchArguments {
  int pes = 0;
  bool with_nccl = false;            ///< programs find Tandem's NCCL interface in place of NCCL
  std::vector<std::string> program;  ///< program and arguments
};

/// Parses the words after "launch". Throws InvalidArgument. Returns nothing if the user asked for help, which is
/// printed.
std::optional<LaunchArguments> parse_launch(const std::vector<std::string>& words);

/// Runs the program once for each PE and returns when all have ended. Returns 0, or the exit code of the PE that failed
/// first (128 + the number of the signal that ended it); the others are then ended. Every line of a PE is printed after
/// its number.
int launch(const LaunchArguments& arguments);

}  // namespace tandem::cli
