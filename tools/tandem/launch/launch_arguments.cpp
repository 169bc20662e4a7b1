#include <fmt/format.h>

#include "tandem/error.h"
#include "tools/tandem/launch/launch.h"
#include "tools/tandem/options/options.h"

namespace tandem::cli {

namespace {

constexpr int kMostPes = 1024;

constexpr const char* kHelp =
    "Usage: tandem launch -n PES [--nccl] [--] PROGRAM [ARGUMENTS...]\n"
    "\n"
    "Runs PROGRAM once for each of PES PEs on this host. The environment of each has RANK, LOCAL_RANK, WORLD_SIZE,\n"
    "LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as torchrun sets them. Each line of output starts with the PE's\n"
    "number. When one PE fails, the others are ended. The exit code is that of the first PE that failed (128 + "
    "signal).\n"
    "All processes that the PEs started end with them.\n"
    "With --nccl the programs run on Tandem in place of NCCL: it sets LD_PRELOAD, VLLM_NCCL_SO_PATH and\n"
    "SGLANG_NCCL_SO_PATH.\n"
    "\n"
    "Example:\n"
    "  tandem launch -n 4 tandem bench all_reduce --backend cuda --graph\n";

int parse_pes(const std::string& text) {
  const std::optional<int> pes = whole_number(text);
  if (!pes || *pes < 1 || *pes > kMostPes)
    throw InvalidArgument(fmt::format("-n: '{}' given, allowed are 1 to {}", text, kMostPes));
  return *pes;
}

}  // namespace

std::optional<LaunchArguments> parse_launch(const std::vector<std::string>& words) {
  LaunchArguments arguments;
  std::size_t at = 0;
  for (; at < words.size(); ++at) {
    const std::string& word = words[at];
    if (word == "-h" || word == "--help") {
      fmt::print("{}", kHelp);
      return std::nullopt;
    }
    if (word == "-n") {
      if (++at == words.size()) throw InvalidArgument("-n: a number of PEs is missing (tandem launch --help)");
      arguments.pes = parse_pes(words[at]);
      continue;
    }
    if (word == "--nccl") {
      arguments.with_nccl = true;
      continue;
    }
    if (word == "--")
      ++at;
    else if (!word.empty() && word[0] == '-')
      throw InvalidArgument(fmt::format("launch: no option '{}' (tandem launch --help)", word));
    break;
  }
  if (arguments.pes == 0) throw InvalidArgument("launch: -n PES is missing (tandem launch --help)");
  for (; at < words.size(); ++at) arguments.program.push_back(words[at]);
  if (arguments.program.empty()) throw InvalidArgument("launch: PROGRAM is missing (tandem launch --help)");
  return arguments;
}

}  // namespace tandem::cli
