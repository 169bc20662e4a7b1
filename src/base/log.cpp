#include "base/log.h"

#include <fmt/format.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cstdlib>
#include <string_view>

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

std::string expanded(const char* pattern) {
  return replaced(replaced(pattern, "%h", host_name()), "%p", std::to_string(getpid()));
}

bool parse(std::string_view text, LogLevel& level) {
  if (text == "off") return level = LogLevel::kOff, true;
  if (text == "warn") return level = LogLevel::kWarn, true;
  if (text == "info") return level = LogLevel::kInfo, true;
  if (text == "trace") return level = LogLevel::kTrace, true;
  return false;
}

spdlog::level::level_enum of_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace:
      return spdlog::level::trace;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    default:
      return spdlog::level::off;
  }
}

std::shared_ptr<spdlog::logger> logger_of(spdlog::sink_ptr sink) {
  auto logger = std::make_shared<spdlog::logger>("tandem", std::move(sink));
  logger->set_pattern(fmt::format("{}:%P tandem %l %v", host_name()));
  logger->set_level(spdlog::level::trace);  // Log::writes decides
  logger->flush_on(spdlog::level::trace);   // a killed process keeps the lines it wrote
  logger->set_error_handler([](const std::string&) {});
  return logger;
}

}  // namespace

Log::Log(const char* level, const char* file) : logger_(logger_of(std::make_shared<spdlog::sinks::stderr_sink_mt>())) {
  if (level != nullptr && *level != '\0' && !parse(level, level_))
    write(LogLevel::kWarn, fmt::format("TANDEM_LOG: '{}' given, allowed are off, warn, info and trace", level));
  if (file == nullptr || *file == '\0' || level_ == LogLevel::kOff) return;
  try {
    logger_ = logger_of(std::make_shared<spdlog::sinks::basic_file_sink_mt>(expanded(file)));
  } catch (const spdlog::spdlog_ex& error) {
    write(LogLevel::kWarn, fmt::format("TANDEM_LOG_FILE: '{}' cannot be written: {}", file, error.what()));
  }
}

Log::~Log() = default;

void Log::write(LogLevel level, const std::string& text) noexcept {
  try {
    std::string line = text;
    for (char& c : line)
      if (std::iscntrl(static_cast<unsigned char>(c)) != 0) c = ' ';
    logger_->log(of_spdlog(level), line);
  } catch (...) {  // a failing log does not fail the program
  }
}

Log& process_log() {
  // Never destroyed: destructors of static objects may still log.
  static Log& log = *new Log(std::getenv("TANDEM_LOG"), std::getenv("TANDEM_LOG_FILE"));
  return log;
}

}  // namespace tandem
