#pragma once
/// The command-line tool as a function. docs/reference/cli.md describes it to its users.

namespace tandem::cli {

/// Runs the command of a command line and returns the process's exit code. Throws nothing. It takes over standard
/// streams and signals, so a process calls it once.
int run(int argc, char** argv);

}  // namespace tandem::cli
