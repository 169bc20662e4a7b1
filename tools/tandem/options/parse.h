#pragma once
/// The command line, from words to one command's options.

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tools/tandem/bench/bench_options.h"
#include "tools/tandem/calibrate/calibrate_options.h"
#include "tools/tandem/check/check_options.h"
#include "tools/tandem/doctor/doctor_options.h"
#include "tools/tandem/list/list_options.h"
#include "tools/tandem/run/run_options.h"
#include "tools/tandem/tune/tune_options.h"

namespace tandem::cli {

using CommandOptions = std::variant<ListOptions, MachinesOptions, RunOptions, BenchOptions, CheckArguments, TuneOptions,
                                    CalibrateOptions, DoctorOptions>;

/// Converts the words after "tandem": "help run" becomes "run --help". Throws InvalidArgument for "help" of several.
std::vector<std::string> with_help_as_option(std::vector<std::string> words);

/// Throws InvalidArgument with one line for an invalid command line. Returns nothing if the user asked for help, which
/// is printed.
std::optional<CommandOptions> parse_command(const std::vector<std::string>& words);

}  // namespace tandem::cli
