#include "tools/tandem/options/parse.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "base/version.h"
#include "tandem/error.h"
#include "tools/tandem/main/console.h"
#include "tools/tandem/main/gpu.h"
#include "tools/tandem/options/add_options.h"
#include "tools/tandem/options/options.h"
#include "tools/tandem/options/usage_message.h"

namespace tandem::cli {
namespace {

/// Returns the options of the chosen command.
CommandOptions chosen(const CLI::App& app, AllOptions& all, const std::string& command_line) {
  all.calibrate.command_line = command_line;
  for (Arguments* const a :
       {static_cast<Arguments*>(&all.run), static_cast<Arguments*>(&all.bench), static_cast<Arguments*>(&all.tune)})
    a->command_line = command_line;
  if (app.got_subcommand("machines")) return all.machines;
  if (app.got_subcommand("run")) return all.run;
  if (app.got_subcommand("bench")) return all.bench;
  if (app.got_subcommand("check")) return all.check;
  if (app.got_subcommand("tune")) return all.tune;
  if (app.got_subcommand("doctor")) return all.doctor;
  if (app.got_subcommand("calibrate")) return all.calibrate;
  return ListOptions{};
}

}  // namespace

std::vector<std::string> with_help_as_option(std::vector<std::string> words) {
  if (words.empty() || words[0] != "help") return words;
  if (words.size() > 2)
    throw InvalidArgument(fmt::format("help: '{}' given, one subcommand is allowed (tandem help run)", words[2]));
  words.erase(words.begin());
  words.emplace_back("--help");
  return words;
}

std::optional<CommandOptions> parse_command(const std::vector<std::string>& words) {
  AllOptions all;
  CLI::App app("Communication and computation programmed together: on GPUs, on CPUs and in a simulator.", "tandem");
  app.require_subcommand(0, 1);
  app.set_version_flag("--version", fmt::format("tandem {}, {}", version(), cuda_build()));
  add_commands(app, all);
  for (std::size_t i = 0; i < words.size(); ++i)
    if (words[i].empty())
      throw InvalidArgument(
          fmt::format("{}: '' given; leave the option out to get its default", i > 0 ? words[i - 1] : "argument"));
  if (!words.empty() && words[0][0] != '-') check_subcommand(app, words[0]);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11 takes them from the back
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) throw InvalidArgument(message_of(app, error));
    app.exit(error, std::cout, std::cerr);
    return std::nullopt;
  }
  if (app.get_subcommands().empty())
    throw InvalidArgument("a subcommand is missing; `tandem help` names them all (tandem --help)");
  CommandOptions options = chosen(app, all, printable(fmt::format("tandem {}", fmt::join(words, " "))));
  std::visit(
      [](const auto& one) {
        if constexpr (requires { validate(one); }) validate(one);
      },
      options);
  return options;
}

}  // namespace tandem::cli
