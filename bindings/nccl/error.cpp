#include "bindings/nccl/error.h"

#include <fmt/format.h>

#include <cstdlib>
#include <mutex>
#include <new>
#include <string_view>

#include "base/log.h"

namespace tandem::nccl {

namespace {

/// These objects are never destroyed: at the process's end other threads may still be in a call.
std::mutex& last_mutex() {
  static auto& mutex = *new std::mutex;
  return mutex;
}

std::string& last_text() {
  static auto& text = *new std::string;
  return text;
}

std::string debug_level() {
  const char* const text = std::getenv("NCCL_DEBUG");
  return text != nullptr ? text : "";
}

const char* level_of(std::string_view debug) {
  if (debug.empty() || debug == "VERSION") return "off";
  if (debug == "INFO" || debug == "TRACE") return "info";
  return "warn";
}

Log& debug_log() {
  static Log& log = *new Log(level_of(debug_level()), std::getenv("NCCL_DEBUG_FILE"));
  return log;
}

}  // namespace

Problem problem_now() {
  try {
    throw;
  } catch (const Failed& error) {
    return {error.result(), error.what()};
  } catch (const InvalidArgument& error) {
    return {ncclInvalidArgument, error.what()};
  } catch (const CheckFailed& error) {
    return {ncclInvalidUsage, error.what()};
  } catch (const Unsupported& error) {
    return {ncclInvalidUsage, error.what()};
  } catch (const OutOfMemory& error) {
    return {ncclSystemError, error.what()};
  } catch (const std::bad_alloc&) {
    return {ncclSystemError, "out of memory on the host"};
  } catch (const std::exception& error) {
    return {ncclInternalError, error.what()};
  } catch (...) {
    return {ncclInternalError, "an error that is no std::exception"};
  }
}

ncclResult_t reported(const Problem& problem) {
  {
    const std::lock_guard lock(last_mutex());
    last_text() = problem.text;
  }
  warn(problem.text);
  return problem.result;
}

std::string last_problem() {
  const std::lock_guard lock(last_mutex());
  return last_text();
}

void warn(const std::string& text) {
  if (Log& log = debug_log(); log.writes(LogLevel::kWarn)) log.write(LogLevel::kWarn, text);
}

void inform(const std::string& text) {
  if (Log& log = debug_log(); log.writes(LogLevel::kInfo)) log.write(LogLevel::kInfo, text);
}

void announce(const std::string& text) {
  if (debug_log().writes(LogLevel::kWarn)) return warn(text);
  log_line(LogLevel::kWarn, [&] { return text; });
}

void introduce() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (!debug_level().empty()) debug_log().write(LogLevel::kWarn, tandem_nccl_identity());
  });
}

}  // namespace tandem::nccl
