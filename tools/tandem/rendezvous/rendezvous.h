#pragma once
/// `tandem rendezvous`: the place where the processes of a job on several hosts meet.

#include <optional>
#include <string>
#include <vector>

namespace tandem::cli {

struct RendezvousArguments {
  std::string address = "127.0.0.1";
  int port = 0;    ///< 0: one that the system chooses
  int worlds = 1;  ///< 0: until the command is ended
};

/// Parses the words after "rendezvous". Throws InvalidArgument. Returns nothing if the user asked for help, which is
/// printed.
std::optional<RendezvousArguments> parse_rendezvous(const std::vector<std::string>& words);

/// Prints an id and serves its worlds. Returns when all processes of the last world have left.
int rendezvous(const RendezvousArguments& arguments);

}  // namespace tandem::cli
