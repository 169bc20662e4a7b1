#include "base/log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace tandem {

namespace {

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

/// Replaces every occurrence of `field` in `text`.
std::string replaced(std::string text, std::string_view field, const std::string& value) {
  for (std::size_t at = 0; (at = text.find(field, at)) != std::string::npos; at += value.size())
    text.replace(at, field.size(), value);
  return text;
}

/// Opens the file of TANDEM_LOG_FILE to append to it, and makes its folder. Returns -1 and sets errno on failure.
int open_file(const char* pattern, const std::string& host) {
  const std::string path = replaced(replaced(pattern, "%h", host), "%p", std::to_string(getpid()));
  std::error_code ignored;  // the file then does not open
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
}

bool parse(std::string_view text, LogLevel& level) {
  if (text == "off") return level = LogLevel::kOff, true;
  if (text == "warn") return level = LogLevel::kWarn, true;
  if (text == "info") return level = LogLevel::kInfo, true;
  if (text == "trace") return level = LogLevel::kTrace, true;
  return false;
}

const char* name_of(LogLevel level) {
  return level == LogLevel::kTrace ? "trace" : level == LogLevel::kInfo ? "info" : "warning";
}

}  // namespace

Log::Log(const char* level, const char* file) : host_(host_name()), file_(STDERR_FILENO) {
  if (level != nullptr && *level != '\0' && !parse(level, level_))
    write(LogLevel::kWarn, fmt::format("TANDEM_LOG: '{}' given, allowed are off, warn, info and trace", level));
  if (file == nullptr || *file == '\0' || level_ == LogLevel::kOff) return;
  if (const int opened = open_file(file, host_); opened >= 0)
    file_ = opened;
  else
    write(LogLevel::kWarn,
          fmt::format("TANDEM_LOG_FILE: '{}' cannot be written: {}", file, std::generic_category().message(errno)));
}

Log::~Log() {
  if (file_ != STDERR_FILENO) ::close(file_);
}

void Log::write(LogLevel level, const std::string& text) noexcept {
  try {
    std::string line = fmt::format("{}:{} tandem {} {}", host_, getpid(), name_of(level), text);
    for (char& c : line)
      if (std::iscntrl(static_cast<unsigned char>(c)) != 0) c = ' ';
    line += '\n';
    // One call, so that lines of several threads and processes do not mix. A line that is lost fails nothing.
    while (::write(file_, line.data(), line.size()) < 0 && errno == EINTR) continue;
  } catch (...) {  // a failing log does not fail the program
  }
}

Log& process_log() {
  // Never destroyed: destructors of static objects may still log.
  static Log& log = *new Log(std::getenv("TANDEM_LOG"), std::getenv("TANDEM_LOG_FILE"));
  return log;
}

}  // namespace tandem
