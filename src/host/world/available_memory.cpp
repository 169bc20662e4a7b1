#include "host/world/available_memory.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <sstream>

#include "host/processors.h"

namespace tandem::host {

namespace {

std::optional<Size> number(const std::string& text) {
  Size value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end != text.data() ? std::optional(value) : std::nullopt;
}

/// Returns the number behind `key` at the start of a line.
std::optional<Size> field(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, value;
    if (words >> name >> value && name == key) return number(value);
  }
  return std::nullopt;
}

}  // namespace

AvailableMemory available_memory(const std::string& meminfo, const std::string& group_most,
                                 const std::string& group_used, const std::string& group_details) {
  AvailableMemory left{std::numeric_limits<Size>::max(), "of this computer"};
  if (const auto kib = field(meminfo, "MemAvailable:")) left.bytes = *kib * 1024;
  const auto most = number(group_most), used = number(group_used);  // "max" is no number
  if (!most || !used) return left;
  const Size reclaimable = field(group_details, "inactive_file").value_or(0);
  const Size in_group = std::max<Size>(0, *most - *used + reclaimable);
  return in_group < left.bytes ? AvailableMemory{in_group, "of this process's control group"} : left;
}

AvailableMemory available_memory() {
  return available_memory(contents("/proc/meminfo"), group_file("memory.max"), group_file("memory.current"),
                          group_file("memory.stat"));
}

}  // namespace tandem::host
