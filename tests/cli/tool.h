#pragma once
/// Runs the command-line tool as a user does.

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "trace/temporary_folder.h"

namespace tandem::cli::testing {

using trace::testing::read_file;
using trace::testing::TemporaryFolder;

struct Outcome {
  int code = -1;
  std::string out;
  std::string err;

  nlohmann::json json() const { return nlohmann::json::parse(out); }
};

/// `arguments` are shell words. Standard input and the working folder are the test's.
inline Outcome tandem(const std::string& arguments) {
  const TemporaryFolder folder;
  const std::string command = std::string("'") + TANDEM_CLI_PATH + "' " + arguments + " </dev/null >'" +
                              folder / "out" + "' 2>'" + folder / "err" + "'";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(folder / "out"), read_file(folder / "err")};
}

/// The JSON of a run that has to be right.
inline nlohmann::json run_json(const std::string& arguments) {
  const Outcome outcome = tandem("run " + arguments + " --json -");
  EXPECT_EQ(outcome.code, 0) << arguments << '\n' << outcome.err;
  EXPECT_EQ(outcome.err, "") << arguments;
  return outcome.code == 0 ? outcome.json() : nlohmann::json();
}

}  // namespace tandem::cli::testing
