/// The command-line tool: dispatch, and what each error becomes. docs/cli.md describes it to its users.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <string_view>

#include "cli/commands.h"
#include "cli/launch.h"
#include "tandem/error.h"

namespace tandem::cli {
namespace {

int dispatch_command(const Arguments& arguments) {
  switch (arguments.command) {
    case Command::kList:
      return list();
    case Command::kMachines:
      return machines(arguments);
    case Command::kRun:
      return run(arguments);
    case Command::kBench:
      return bench(arguments);
    case Command::kCheck:
      return check(arguments);
    case Command::kTune:
      return tune(arguments);
    case Command::kDoctor:
      return doctor(arguments);
    case Command::kCalibrate:
      return calibrate(arguments);
  }
  return kUsage;
}

int complain(int code, const char* what) {
  fmt::print(stderr, "tandem: {}\n", what);
  return code;
}

int run_tool(int argc, const char* const* argv) {
  try {
    // By itself: what follows is another program's command line.
    if (argc > 1 && std::string_view(argv[1]) == "launch") {
      const auto job = parse_launch({argv + 2, argv + argc});
      return job ? launch(*job) : kRight;
    }
    const auto arguments = parse_arguments(argc, argv);
    const int code = arguments ? dispatch_command(*arguments) : kRight;
    std::cout.flush();
    if (!std::cout || std::fflush(stdout) != 0) throw RuntimeFailure("writing to standard output failed");
    return code;
  } catch (const InvalidArgument& error) {
    return complain(kUsage, error.what());
  } catch (const Unsupported& error) {
    return complain(kUsage, error.what());
  } catch (const CheckFailed& error) {
    return complain(kWrong, error.what());
  } catch (const std::bad_alloc&) {
    return complain(kFailure, "out of memory; a smaller size or --phantom needs less");
  } catch (const std::exception& error) {
    return complain(kFailure, error.what());
  }
}

}  // namespace
}  // namespace tandem::cli

int main(int argc, char** argv) { return tandem::cli::run_tool(argc, argv); }
