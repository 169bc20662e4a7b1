#pragma once
/// `tandem launch`: a program as the PEs of one job on this host.

#include <optional>
#include <string>
#include <vector>

namespace tandem::cli {

struct LaunchArguments {
  int pes = 0;
  std::vector<std::string> program;  ///< with its arguments
};

/// The words after "launch". Throws InvalidArgument. Nothing where the user asked for help, which this prints.
std::optional<LaunchArguments> parse_launch(const std::vector<std::string>& words);

/// Runs the program once for each PE and returns when all have ended: 0, or the exit code of the PE that failed first
/// (128 + the signal's number where one ended it). The others are ended then. Every line that a PE writes comes out
/// behind its number.
int launch(const LaunchArguments& arguments);

}  // namespace tandem::cli
