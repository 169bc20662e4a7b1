#include "host/processors.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <thread>

namespace tandem::host {

std::string contents(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string group_file(const std::string& name) {
  std::istringstream lines(contents("/proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("0::")) return contents("/sys/fs/cgroup" + line.substr(3) + "/" + name);
  return "";
}

int processors_of_affinity() {
  cpu_set_t allowed;
  // The call fails if the system has more processors than the set.
  return sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed)
                                                             : static_cast<int>(std::thread::hardware_concurrency());
}

int processors() {
  static const int all = processors(processors_of_affinity(), group_file("cpu.max"));
  return all;
}

int processors(int of_affinity, const std::string& cpu_max) {
  std::istringstream words(cpu_max);
  double quota = 0, period = 0;  // "max" is no number: there is no limit
  if (words >> quota >> period && quota > 0 && period > 0)
    of_affinity = static_cast<int>(std::min<double>(of_affinity, std::ceil(quota / period)));
  return std::max(1, of_affinity);
}

}  // namespace tandem::host
