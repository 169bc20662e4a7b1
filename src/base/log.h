#pragma once
/// The library's log: one line for each choice, world, cache hit and failure. The environment controls it:
///
///   TANDEM_LOG=off|warn|info|trace   the least severe lines that are written; default: warn
///   TANDEM_LOG_FILE=PATH             file instead of standard error; %h stands for the host, %p for the process
///
/// A line has the form "HOST:PROCESS tandem LEVEL TEXT". Logging never throws and never ends the program.

#include <memory>
#include <string>

namespace spdlog {
class logger;
}

namespace tandem {

enum class LogLevel { kTrace, kInfo, kWarn, kOff };

/// A log with a level and a destination. Threads may share it.
class Log {
 public:
  /// `level`: a value of TANDEM_LOG, null or empty for the default. `file`: a value of TANDEM_LOG_FILE, null or empty
  /// for standard error. An unknown level and a file that cannot be written are reported as a warning on standard
  /// error, and the default takes their place.
  Log(const char* level, const char* file);
  ~Log();

  bool writes(LogLevel level) const { return level >= level_; }
  /// Writes one line. Control characters in `text` are replaced, so that a line stays a line.
  void write(LogLevel level, const std::string& text) noexcept;

 private:
  LogLevel level_ = LogLevel::kWarn;
  std::shared_ptr<spdlog::logger> logger_;
};

/// Returns the log of this process, made from the environment at the first call.
Log& process_log();

/// Writes a line of that level. `text` is a function that returns it, called only if the line is written.
template <class Text>
void log_line(LogLevel level, const Text& text) {
  if (Log& log = process_log(); log.writes(level)) log.write(level, text());
}

}  // namespace tandem
