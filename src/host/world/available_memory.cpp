#include "host/world/available_memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

namespace tandem::host {

namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

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

/// The folder of this process's control group, in version 2 of them; empty: there is none.
std::string group_folder() {
  std::istringstream lines(contents("/proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("0::")) return "/sys/fs/cgroup" + line.substr(3) + "/";
  return "";
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
  const std::string group = group_folder();
  return available_memory(contents("/proc/meminfo"), contents(group + "memory.max"), contents(group + "memory.current"),
                          contents(group + "memory.stat"));
}

}  // namespace tandem::host
