#pragma once
/// Messages for invalid command lines.

#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace tandem::cli {

/// Returns "; did you mean all_reduce?" if one of `names` is similar to `text`, else "".
std::string did_you_mean(const std::string& text, const std::vector<std::string>& names);

/// Returns "OP: 'all_redcue' given; did you mean all_reduce? Allowed is one of ..." for a `text` that is not one of
/// `names`.
std::string not_one_of(const std::string& argument, const std::string& text, const std::vector<std::string>& names);

/// Throws InvalidArgument if `word` is not a subcommand of `app`.
void check_subcommand(const CLI::App& app, const std::string& word);

/// Returns CLI11's error in one line, with the given and the allowed values.
std::string message_of(const CLI::App& app, const CLI::ParseError& error);

/// Returns a message of the library, such as "top_k: 0 given", with "--top-k" in front if `subcommand` has that option.
std::string with_option_name(const std::string& subcommand, const std::string& message);

}  // namespace tandem::cli
