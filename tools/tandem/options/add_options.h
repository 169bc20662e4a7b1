#pragma once
/// The options of every command, as CLI11 knows them.

#include "tools/tandem/bench/bench_options.h"
#include "tools/tandem/calibrate/calibrate_options.h"
#include "tools/tandem/check/check_options.h"
#include "tools/tandem/doctor/doctor_options.h"
#include "tools/tandem/list/list_options.h"
#include "tools/tandem/run/run_options.h"
#include "tools/tandem/tune/tune_options.h"

namespace CLI {
class App;
}

namespace tandem::cli {

/// The options of all commands; the user chose at most one.
struct AllOptions {
  MachinesOptions machines;
  RunOptions run;
  BenchOptions bench;
  CheckArguments check;
  TuneOptions tune;
  CalibrateOptions calibrate;
  DoctorOptions doctor;
};

/// Adds the commands to `app`. Their options are read into `all`, which has to outlive the parsing.
void add_commands(CLI::App& app, AllOptions& all);

}  // namespace tandem::cli
