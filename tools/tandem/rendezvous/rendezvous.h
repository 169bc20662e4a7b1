#pragma once
/// `tandem rendezvous`: the place where the processes of a job on several hosts meet.

#include <optional>
#include <string>
#include <vector>

namespace tandem::cli {

/// Parses the words after "rendezvous", and returns the address. Throws InvalidArgument. Returns nothing if the user
/// asked for help, which is printed.
std::optional<std::string> parse_rendezvous(const std::vector<std::string>& words);

/// Prints an id and serves its world. Returns when all processes of the world have left.
int rendezvous(const std::string& address);

}  // namespace tandem::cli
