#pragma once
/// The value of each option of a plan, with the source that chose it.
///
///   for (const OptionChoice& choice : plan->choices())
///     std::cout << choice.option << " = " << choice.value << ", " << name(choice.source) << '\n';

#include <string>

namespace tandem {

/// The sources of an option's value. An earlier source takes precedence over a later one.
enum class OptionSource {
  kCaller,  ///< the options that the caller passed
  kCache,   ///< the cache file of the operators' tuner
  kTable,   ///< a table of choices, measured on machines of this family or predicted for them
  kRule,    ///< a rule or a default of the library
};
/// Returns "caller", "cache", "table" or "rule".
const char* name(OptionSource source);

/// An option of a plan, with its value and its source.
struct OptionChoice {
  std::string option;                         ///< its name on the command line
  std::string value;                          ///< its value as text
  OptionSource source = OptionSource::kRule;  ///< who chose the value
  std::string reason;                         ///< the file, the entry or the rule in one line; may be empty
};

}  // namespace tandem
