#pragma once
/// The options of `tandem check`.

#include <cstdint>
#include <string>
#include <vector>

#include "tools/tandem/options/arguments.h"

namespace tandem::cli {

struct CheckArguments : OutputOptions {
  std::string subject;  ///< OP, or "all"
  int schedules = 20;
  bool schedules_given = false;
  std::string strategy = "random";
  std::vector<int> pes;
  std::string algorithm, one_case;
  std::string broken;  ///< a mutant to check instead of the program, named as by --mutants
  bool mutants = false;
  bool list = false;  ///< only lists the configurations
  std::uint64_t seed = 1;
  std::string report;  ///< the timeline of the first finding; empty: none
};

/// Parses "2,3,4". Throws InvalidArgument with the name --pes.
std::vector<int> parse_pes(const std::string& text);
/// Throws InvalidArgument for invalid values.
void validate(const CheckArguments&);

}  // namespace tandem::cli
