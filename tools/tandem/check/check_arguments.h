#pragma once
/// The options of `tandem check`.

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tandem::cli {

struct CheckArguments {
  std::string subject;  ///< OP, or "all"
  int schedules = 20;
  bool schedules_given = false;
  std::string strategy = "random";
  std::string pes_text;  ///< "2,3,4"
  std::vector<int> pes;
  std::string algorithm, one_case;
  std::string broken;  ///< a mutant to check instead of the program, named as by --mutants
  bool mutants = false;
  bool list = false;  ///< only lists the configurations
};

/// Adds the subcommand. `seed`, `json` and `report` belong to the tool.
void add_check(CLI::App& app, CheckArguments& arguments, std::string& seed, std::string& json, std::string& report);
/// Throws InvalidArgument for invalid values.
void validate(const CheckArguments& arguments);

}  // namespace tandem::cli
