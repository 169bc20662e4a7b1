#include "tools/tandem/rendezvous/rendezvous.h"

#include <fmt/format.h>

#include <chrono>
#include <list>
#include <memory>
#include <thread>

#include "bootstrap/rendezvous/job_port.h"
#include "tandem/error.h"
#include "tools/tandem/main/commands.h"
#include "tools/tandem/main/console.h"
#include "tools/tandem/options/options.h"

namespace tandem::cli {

namespace {

constexpr const char* kHelp =
    "Usage: tandem rendezvous [--address ADDRESS] [--port PORT] [--worlds N]\n"
    "\n"
    "Prints the id of a job, and lets the job's processes meet at ADDRESS, an address of this host that all hosts\n"
    "reach (default: 127.0.0.1). PORT is a free port by default. Each process has the id in TANDEM_UNIQUE_ID, its\n"
    "number in RANK, and the number of processes in WORLD_SIZE. The id holds the secret of the job. The command ends\n"
    "with the N-th world of the processes (default: 1). With --worlds 0 it serves worlds until it is ended.\n"
    "\n"
    "Example:\n"
    "  (umask 077; tandem rendezvous --address 10.0.0.1 > id) &\n";

int number(const std::string& option, const std::string& text, int most) {
  const std::optional<int> value = whole_number(text);
  if (!value || *value < 0 || *value > most)
    throw InvalidArgument(fmt::format("{}: '{}' given, allowed are 0 to {}", option, text, most));
  return *value;
}

}  // namespace

std::optional<RendezvousArguments> parse_rendezvous(const std::vector<std::string>& words) {
  RendezvousArguments arguments;
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string& option = words[at];
    if (option == "-h" || option == "--help") {
      fmt::print("{}", kHelp);
      return std::nullopt;
    }
    if (option != "--address" && option != "--port" && option != "--worlds")
      throw InvalidArgument(fmt::format("rendezvous: no option '{}' (tandem rendezvous --help)", option));
    if (++at == words.size())
      throw InvalidArgument(fmt::format("{}: its value is missing (tandem rendezvous --help)", option));
    if (option == "--address")
      arguments.address = words[at];
    else if (option == "--port")
      arguments.port = number(option, words[at], 65535);
    else
      arguments.worlds = number(option, words[at], 1 << 30);
  }
  return arguments;
}

int rendezvous(const RendezvousArguments& arguments) {
  bootstrap::JobPort port(arguments.address, static_cast<std::uint16_t>(arguments.port), bootstrap::random_key());
  fmt::print("{}\n", bootstrap::id_of(port.contents()).text());
  flush_output();
  std::list<std::unique_ptr<bootstrap::Host>> hosts;
  const auto is_over = [](const auto& host) { return host->is_over(); };
  for (int made = 0; arguments.worlds == 0 || made < arguments.worlds || !hosts.empty();) {
    hosts.remove_if(is_over);
    if (port.is_free() && (arguments.worlds == 0 || made < arguments.worlds)) {
      hosts.push_back(port.next(bootstrap::Deadline(0)));
      ++made;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return kRight;
}

}  // namespace tandem::cli
