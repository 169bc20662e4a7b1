#pragma once
/// The variables of launchers.

#include <functional>
#include <optional>
#include <string>

namespace tandem::bootstrap {

/// The value of a variable; nothing where it is not set or empty.
using Variables = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<std::string> variable_of_process(const std::string& name);

struct Places {
  int pe = 0, pes = 1, local_pe = 0, local_pes = 1;
  /// The same for the processes of one job, and for no others of this user at the same time.
  std::string job;
};

/// Throws InvalidArgument naming the variable.
Places read_places(const Variables& variables);

}  // namespace tandem::bootstrap
