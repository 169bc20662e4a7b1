#include "tools/tandem/launch/descendants.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace tandem::cli {
namespace {

/// Returns the parent of a process, or 0 if the process is gone.
pid_t parent_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  const auto end_of_name = line.rfind(')');  // the name may hold anything
  if (end_of_name == std::string::npos) return 0;
  std::istringstream rest(line.substr(end_of_name + 1));
  char state = 0;
  pid_t parent = 0;
  return rest >> state >> parent ? parent : 0;
}

std::vector<pid_t> children() {
  std::vector<pid_t> all;
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    pid_t pid = 0;
    const auto [last, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (bad == std::errc{} && last == name.data() + name.size() && parent_of(pid) == ::getpid()) all.push_back(pid);
  }
  return all;
}

}  // namespace

void adopt_descendants() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

void end_descendants() {
  // A child that ends hands over its own children, so there may be new ones.
  while (true) {
    const std::vector<pid_t> all = children();
    for (const pid_t pid : all) ::kill(pid, SIGKILL);
    for (const pid_t pid : all)
      while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
      }
    if (all.empty()) return;
  }
}

}  // namespace tandem::cli
