#pragma once
/// Messages about command lines that are refused.

#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace tandem::cli {

/// Returns "; did you mean all_reduce?" where one of `names` differs from `text` by few characters, else nothing.
std::string did_you_mean(const std::string& text, const std::vector<std::string>& names);

/// Throws InvalidArgument where `word` is no subcommand of `app`.
void check_subcommand(const CLI::App& app, const std::string& word);

/// Returns CLI11's error in one line, with the given and the allowed values.
std::string message_of(const CLI::App& app, const CLI::ParseError& error);

}  // namespace tandem::cli
