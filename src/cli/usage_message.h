#pragma once
/// What the user reads about a command line that is refused.

#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace tandem::cli {

/// "; did you mean all_reduce?" where one of `names` differs from `text` by a slip of the fingers; else empty.
std::string did_you_mean(const std::string& text, const std::vector<std::string>& names);

/// Throws InvalidArgument where `word` is no subcommand of `app`.
void check_subcommand(const CLI::App& app, const std::string& word);

/// CLI11's error in one line: what was given, and what is allowed.
std::string message_of(const CLI::App& app, const CLI::ParseError& error);

}  // namespace tandem::cli
