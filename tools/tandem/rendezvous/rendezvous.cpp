#include "tools/tandem/rendezvous/rendezvous.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "bootstrap/rendezvous/host.h"
#include "tandem/error.h"
#include "tools/tandem/main/commands.h"
#include "tools/tandem/main/console.h"

namespace tandem::cli {

namespace {

constexpr const char* kHelp =
    "Usage: tandem rendezvous [--address ADDRESS]\n"
    "\n"
    "Prints the id of a world, and lets the world's processes meet at ADDRESS, an address of this host that all hosts\n"
    "reach (default: 127.0.0.1). Each process has the id in TANDEM_UNIQUE_ID, its number in RANK, and the number of\n"
    "processes in WORLD_SIZE. The id holds the secret of the world. The command ends with the world.\n"
    "\n"
    "Example:\n"
    "  tandem rendezvous --address 10.0.0.1 > id &\n";

}  // namespace

std::optional<std::string> parse_rendezvous(const std::vector<std::string>& words) {
  std::string address = "127.0.0.1";
  for (std::size_t at = 0; at < words.size(); ++at) {
    if (words[at] == "-h" || words[at] == "--help") {
      fmt::print("{}", kHelp);
      return std::nullopt;
    }
    if (words[at] != "--address")
      throw InvalidArgument(fmt::format("rendezvous: no option '{}' (tandem rendezvous --help)", words[at]));
    if (++at == words.size()) throw InvalidArgument("--address: an address is missing (tandem rendezvous --help)");
    address = words[at];
  }
  return address;
}

int rendezvous(const std::string& address) {
  const bootstrap::Host host(bootstrap::random_key(), address);
  fmt::print("{}\n", bootstrap::id_of(host.contents()).text());
  flush_output();
  while (!host.is_over()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  return kRight;
}

}  // namespace tandem::cli
