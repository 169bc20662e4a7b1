#include "tools/tandem/options/usage_message.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>

#include "tandem/error.h"
#include "tools/tandem/options/add_options.h"

namespace tandem::cli {
namespace {

std::string in_lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// The Levenshtein distance: insertions, deletions and replacements of a character.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

std::vector<std::string> names_of(const std::vector<const CLI::App*>& apps) {
  std::vector<std::string> names;
  names.reserve(apps.size());
  for (const CLI::App* const app : apps) names.push_back(app->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* const option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

/// The names that other tools use for an option.
std::string suggestion(const std::string& option, const std::vector<std::string>& names) {
  constexpr std::pair<const char*, const char*> others[] = {
      {"--size", "--bytes"},       {"--ranks", "--pes"}, {"--gpus", "--pes"}, {"--algorithm", "--algo"},
      {"--iters", "--iterations"}, {"-b", "--bytes"},    {"--bytes", "-b"},   {"--size", "-b"}};
  for (const auto& [other, ours] : others)
    if (option == other && std::find(names.begin(), names.end(), ours) != names.end())
      return fmt::format("; did you mean {}?", ours);
  return did_you_mean(option, names);
}

/// Returns the first word that no option and no argument takes.
std::string unexpected(const CLI::App& command) {
  const std::vector<std::string> words = command.remaining();
  const std::string word = words.empty() ? "" : words.front();
  if (word.empty() || word[0] != '-') return fmt::format("'{}': not expected here", word);
  const std::string option = word.substr(0, word.find('='));
  return fmt::format("{}: no such option{}", option, suggestion(option, option_names(command)));
}

}  // namespace

std::string did_you_mean(const std::string& text, const std::vector<std::string>& names) {
  constexpr std::size_t longest = 64;  // longest word that is typed by hand
  if (text.size() > longest) return "";
  std::size_t least = (text.size() + 2) / 3 + 1;
  std::string best;
  for (const std::string& name : names) {
    const std::size_t changes = distance(in_lower_case(text), in_lower_case(name));
    if (changes >= least) continue;
    least = changes;
    best = name;
  }
  return best.empty() ? "" : fmt::format("; did you mean {}?", best);
}

std::string not_one_of(const std::string& argument, const std::string& text, const std::vector<std::string>& names) {
  const std::string similar = did_you_mean(text, names);
  return fmt::format("{}: '{}' given{} one of {}", argument, text,
                     similar.empty() ? ", allowed is" : similar + " Allowed is", fmt::join(names, ", "));
}

void check_subcommand(const CLI::App& app, const std::string& word) {
  const std::vector<std::string> names = names_of(app.get_subcommands([](const CLI::App*) { return true; }));
  if (std::find(names.begin(), names.end(), word) != names.end()) return;
  throw InvalidArgument(fmt::format("'{}' given; a subcommand is one of {}{} (tandem --help)", word,
                                    fmt::join(names, ", "), did_you_mean(word, names)));
}

std::string message_of(const CLI::App& app, const CLI::ParseError& error) {
  std::string text = error.what();
  std::replace(text.begin(), text.end(), '\n', ' ');
  while (!text.empty() && text.back() == ' ') text.pop_back();
  const auto chosen = app.get_subcommands();
  const CLI::App& command = chosen.empty() ? app : *chosen.front();
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) text = unexpected(command);
  // "phantom was given a disallowed flag override"
  if (error.get_name() == "ArgumentMismatch" && text.ends_with("disallowed flag override"))
    text = fmt::format("--{}: a value given, it takes none", text.substr(0, text.find(' ')));
  // "--bytes: At Most 1 required but received 2"
  if (const std::size_t at = text.find(": At Most "); error.get_name() == "ArgumentMismatch" && at != std::string::npos)
    text = fmt::format("{}: given more than once, allowed is once", text.substr(0, at));
  // "OP is required"
  if (error.get_name() == "RequiredError" && text.starts_with("OP "))
    text += ", for example all_reduce; `tandem list` has all";
  return fmt::format("{} (tandem {}--help)", text, chosen.empty() ? "" : command.get_name() + " ");
}

std::string with_option_name(const std::string& subcommand, const std::string& message) {
  constexpr std::pair<const char*, const char*> others[] = {{"algorithm", "algo"}, {"reduce-op", "op"}};
  std::string name = message.substr(0, message.find(": "));
  std::replace(name.begin(), name.end(), '_', '-');
  for (const auto& [field, option] : others)
    if (name == field) name = option;
  AllOptions all;
  CLI::App app;
  add_commands(app, all);
  const auto commands = app.get_subcommands([&](const CLI::App* one) { return one->get_name() == subcommand; });
  if (commands.empty() || commands.front()->get_option_no_throw("--" + name) == nullptr) return message;
  return fmt::format("--{}{}", name, message.substr(message.find(": ")));
}

}  // namespace tandem::cli
