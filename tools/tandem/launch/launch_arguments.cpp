#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "bootstrap/rendezvous/id_contents.h"
#include "tandem/error.h"
#include "tools/tandem/launch/launch.h"
#include "tools/tandem/options/options.h"

namespace tandem::cli {

namespace {

constexpr int kMostPes = 1024;

constexpr int kMostNodes = 1024;

constexpr const char* kHelp =
    "Usage: tandem launch -n PES [--nccl] [--] PROGRAM [ARGUMENTS...]\n"
    "       tandem launch -n PES --nodes N --node-rank R (--address ADDRESS [--port PORT] | --id FILE) [--] PROGRAM "
    "...\n"
    "\n"
    "Runs PROGRAM once for each of PES PEs on this host. The environment of each has RANK, LOCAL_RANK, WORLD_SIZE,\n"
    "LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as torchrun sets them. Each line of output starts with the PE's\n"
    "number. When one PE fails, the others are ended. The exit code is that of the first PE that failed (128 + "
    "signal).\n"
    "All processes that the PEs started end with them.\n"
    "With --nccl the programs run on Tandem in place of NCCL: it sets LD_PRELOAD, VLLM_NCCL_SO_PATH and\n"
    "SGLANG_NCCL_SO_PATH.\n"
    "With TANDEM_SHARE_GPU=1 processes may share a GPU, for tests; LOCAL_RANK is then a number of a GPU of this host.\n"
    "\n"
    "A job on N hosts is started by one launch on each host, R from 0 to N - 1. Each runs PES / N of the PEs. ADDRESS\n"
    "is the address of host 0, as all hosts reach it. PORT (default: 29500) and PORT + 1 are free there. "
    "TANDEM_SECRET\n"
    "is the same random text in the environment of each launch. Instead of an address, FILE may hold the id that\n"
    "`tandem rendezvous` printed, or TANDEM_UNIQUE_ID may be the id. The id and the secret are no options, because\n"
    "other users can read command lines.\n"
    "\n"
    "Examples:\n"
    "  tandem launch -n 4 tandem bench all_reduce --backend cuda --graph\n"
    "  export TANDEM_SECRET=$(openssl rand -hex 32)   # the same on both hosts\n"
    "  tandem launch -n 4 --nodes 2 --node-rank 0 --address 10.0.0.1 PROGRAM ...\n"
    "  tandem launch -n 4 --nodes 2 --node-rank 1 --address 10.0.0.1 PROGRAM ...\n";

int parse_number(const std::string& option, const std::string& text, int least, int most) {
  const std::optional<int> number = whole_number(text);
  if (!number || *number < least || *number > most)
    throw InvalidArgument(fmt::format("{}: '{}' given, allowed are {} to {}", option, text, least, most));
  return *number;
}

/// Takes an option with a value.
void take_value(LaunchArguments& arguments, const std::string& option, const std::string& value) {
  if (option == "-n")
    arguments.pes = parse_number(option, value, 1, kMostPes);
  else if (option == "--nodes")
    arguments.nodes = parse_number(option, value, 1, kMostNodes);
  else if (option == "--node-rank")
    arguments.node_rank = parse_number(option, value, 0, kMostNodes - 1);
  else if (option == "--id")
    arguments.id_file = value;
  else if (option == "--address")
    arguments.address = value;
  else if (option == "--port")
    arguments.port = parse_number(option, value, 1, 65534);
}

bool has_value(const std::string& option) {
  const auto all = {"-n", "--nodes", "--node-rank", "--id", "--address", "--port"};
  return std::find(all.begin(), all.end(), option) != all.end();
}

bool is_set(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

void check_hosts(const LaunchArguments& arguments) {
  if (arguments.pes % arguments.nodes != 0)
    throw InvalidArgument(fmt::format("-n: {} PEs on {} nodes given, allowed are multiples of the nodes", arguments.pes,
                                      arguments.nodes));
  if (arguments.node_rank >= arguments.nodes)
    throw InvalidArgument(
        fmt::format("--node-rank: {} given, allowed are 0 to {}", arguments.node_rank, arguments.nodes - 1));
  const bool has_id = !arguments.id_file.empty() || is_set("TANDEM_UNIQUE_ID");
  if (arguments.nodes == 1 && (!arguments.id_file.empty() || !arguments.address.empty()))
    throw InvalidArgument("--id, --address: one node given, they are for --nodes 2 and more");
  if (arguments.nodes > 1 && has_id == !arguments.address.empty())
    throw InvalidArgument("launch: several nodes need either --address and TANDEM_SECRET, or --id or TANDEM_UNIQUE_ID");
  if (arguments.nodes > 1 && !has_id && !is_set("TANDEM_SECRET"))
    throw InvalidArgument(
        "TANDEM_SECRET: not set in the environment; it is a random text, the same on all hosts (openssl rand -hex 32)");
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
    if (has_value(word)) {
      if (++at == words.size())
        throw InvalidArgument(fmt::format("{}: its value is missing (tandem launch --help)", word));
      take_value(arguments, word, words[at]);
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
  check_hosts(arguments);
  return arguments;
}

std::vector<std::string> variables_of_hosts(const LaunchArguments& arguments) {
  std::vector<std::string> variables{fmt::format("MASTER_PORT={}", arguments.port)};
  if (!arguments.address.empty()) {
    variables.push_back("MASTER_ADDR=" + arguments.address);
    return variables;
  }
  std::string id;
  if (arguments.id_file.empty())
    id = std::getenv("TANDEM_UNIQUE_ID");
  else if (!(std::ifstream(arguments.id_file) >> id))
    throw InvalidArgument(fmt::format("--id: '{}' is no file with an id (tandem rendezvous)", arguments.id_file));
  variables.push_back("MASTER_ADDR=" + bootstrap::contents_of(UniqueId::from_text(id)).address);
  variables.push_back("TANDEM_UNIQUE_ID=" + id);
  return variables;
}

}  // namespace tandem::cli
