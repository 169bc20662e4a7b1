// Dispatch of the commands, and the exit code of each error.
#include "tools/tandem/main/tool.h"

#include <csignal>
#include <exception>
#include <new>
#include <system_error>

#include "tandem/error.h"
#include "tools/tandem/launch/launch.h"
#include "tools/tandem/main/commands.h"
#include "tools/tandem/main/console.h"
#include "tools/tandem/options/usage_message.h"
#include "tools/tandem/rendezvous/rendezvous.h"
#include "trace/timeline/output_file.h"

namespace tandem::cli {
namespace {

int run_command(int argc, const char* const* argv) {
  const std::vector<std::string> words = with_help_as_option({argv + 1, argv + argc});
  // `launch` is parsed separately, because its rest is another program's command line.
  if (!words.empty() && words[0] == "launch") {
    const auto job = parse_launch({words.begin() + 1, words.end()});
    return job ? launch(*job) : kRight;
  }
  if (!words.empty() && words[0] == "rendezvous") {
    const auto arguments = parse_rendezvous({words.begin() + 1, words.end()});
    return arguments ? rendezvous(*arguments) : kRight;
  }
  const auto command = parse_command(words);
  return command ? std::visit([](const auto& options) { return execute(options); }, *command) : kRight;
}

int fail(int code, const char* message, Lines lines = Lines::kOne) {
  complain(printable(message, lines));
  return code;
}

int run_tool(int argc, const char* const* argv) {
  try {
    const int code = run_command(argc, argv);
    flush_output();
    return code;
  } catch (const InvalidArgument& error) {
    return fail(kUsage, with_option_name(argc > 1 ? argv[1] : "", error.what()).c_str());
  } catch (const Unsupported& error) {
    return fail(kUsage, error.what());
  } catch (const CheckFailed& error) {
    return fail(kWrong, error.what(), Lines::kSeveral);
  } catch (const Deadlock& error) {
    return fail(kFailure, error.what(), Lines::kSeveral);
  } catch (const std::bad_alloc&) {
    return fail(kFailure, "out of memory; a smaller size or --phantom needs less");
  } catch (const std::system_error& error) {
    // fmt::print throws it without the name of the output.
    const std::string lost = "writing to standard output failed: " + error.code().message();
    return fail(kFailure, output_is_lost() ? lost.c_str() : error.what());
  } catch (const std::exception& error) {
    return fail(kFailure, error.what(), Lines::kSeveral);
  }
}

extern "C" void end_by_signal(int number) {
  trace::remove_unfinished_files();
  std::raise(number);  // now with the default handler
}

/// Removes unfinished files if a signal ends the tool. Ignored signals stay ignored.
void remove_files_at_signals() {
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGXCPU, SIGXFSZ}) {
    struct sigaction action {};
    if (::sigaction(number, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    action.sa_handler = end_by_signal;
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
    ::sigaction(number, &action, nullptr);
  }
}

}  // namespace

int run(int argc, char** argv) {
  open_standard_streams();
  remove_files_at_signals();
  return run_tool(argc, argv);
}

}  // namespace tandem::cli
