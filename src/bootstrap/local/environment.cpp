#include "bootstrap/local/environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "tandem/error.h"

namespace tandem::bootstrap {

namespace {

/// The variables in which two jobs of a user differ.
constexpr const char* kJob[] = {"MASTER_ADDR",  "MASTER_PORT",   "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT",
                                "SLURM_JOB_ID", "SLURM_STEP_ID", "TANDEM_RUN_ID"};

int number_of(const std::string& name, const std::string& text, int least, int most) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most)
    throw InvalidArgument(fmt::format("{}: '{}' given, allowed are {} to {}", name, text, least, most));
  return value;
}

constexpr int kMost = 1 << 20;

int needed(const Variables& variables, const std::string& name, int least, int most) {
  const auto text = variables(name);
  if (!text)
    throw InvalidArgument(fmt::format("{}: not set in the environment; tandem launch and torchrun set it", name));
  return number_of(name, *text, least, most);
}

int optional(const Variables& variables, const std::string& name, int least, int most, int otherwise) {
  const auto text = variables(name);
  return text ? number_of(name, *text, least, most) : otherwise;
}

Places of_torchrun(const Variables& variables) {
  Places places;
  places.pes = needed(variables, "WORLD_SIZE", 1, kMost);
  places.pe = needed(variables, "RANK", 0, places.pes - 1);
  places.local_pes = optional(variables, "LOCAL_WORLD_SIZE", 1, places.pes, places.pes);
  places.local_pe = optional(variables, "LOCAL_RANK", 0, places.local_pes - 1, places.pe % places.local_pes);
  places.has_hosts = places.local_pes < places.pes;
  return places;
}

Places of_slurm(const Variables& variables) {
  Places places;
  places.pes = needed(variables, "SLURM_NTASKS", 1, kMost);
  places.pe = needed(variables, "SLURM_PROCID", 0, places.pes - 1);
  // The variable holds the request of the job. This step may have fewer tasks, or more on a node.
  const int asked = std::min(optional(variables, "SLURM_NTASKS_PER_NODE", 1, kMost, places.pes), places.pes);
  places.local_pe = optional(variables, "SLURM_LOCALID", 0, places.pes - 1, places.pe % asked);
  places.local_pes = std::max(asked, places.local_pe + 1);
  const char* const hosts = variables("SLURM_STEP_NUM_NODES") ? "SLURM_STEP_NUM_NODES" : "SLURM_NNODES";
  places.has_hosts = optional(variables, hosts, 1, kMost, 1) > 1;
  return places;
}

/// Returns the first host of a list of Slurm: "gpu01" of "gpu[01-04,9],login".
std::string first_host(const std::string& list) {
  std::string host;
  bool is_skipping = false;
  bool is_in_brackets = false;
  for (const char letter : list) {
    if (letter == ',' && !is_in_brackets) break;
    if (letter == '[' || letter == ']') {
      is_in_brackets = letter == '[';
      is_skipping = false;
      continue;
    }
    is_skipping = is_skipping || (is_in_brackets && (letter == '-' || letter == ','));
    if (!is_skipping) host += letter;
  }
  return host;
}

/// Returns the number of a variable of Slurm; steps have names, too.
unsigned long number_in(const Variables& variables, const char* name) {
  return std::strtoul(variables(name).value_or("0").c_str(), nullptr, 10);
}

}  // namespace

std::optional<std::string> variable_of_process(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::string name_of_host() {
  std::array<char, 256> name{};
  std::string chosen = variable_of_process("TANDEM_HOST").value_or("").substr(0, name.size() - 1);
  if (!chosen.empty() || ::gethostname(name.data(), name.size() - 1) != 0) return chosen;
  return name.data();
}

double seconds_of(double given, const char* option, const char* variable) {
  constexpr double kMostSeconds = 1e6;
  const char* const text = std::getenv(variable);
  if (text == nullptr || *text == '\0') {
    if (!(given > 0 && given <= kMostSeconds))
      throw InvalidArgument(fmt::format("{}: {} given, allowed are seconds up to {}", option, given, kMostSeconds));
    return given;
  }
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);
  if (*end != '\0' || !(seconds > 0 && seconds <= kMostSeconds))
    throw InvalidArgument(fmt::format("{}: '{}' given, allowed are seconds up to {}", variable, text, kMostSeconds));
  return seconds;
}

std::chrono::microseconds microseconds_of(std::chrono::microseconds given, const char* variable) {
  constexpr long most = 1'000'000;
  const char* const text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return given;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (*end != '\0' || value < 0 || value > most)
    throw InvalidArgument(fmt::format("{}: '{}' given, allowed are microseconds from 0 to {}", variable, text, most));
  return std::chrono::microseconds(value);
}

bool may_share_gpus() {
  const std::optional<std::string> value = variable_of_process(kShareGpu);
  if (!value || *value == "0") return false;
  if (*value != "1") throw InvalidArgument(fmt::format("{}: '{}' given, allowed are 0 and 1", kShareGpu, *value));
  return true;
}

double slow_wait_s() { return seconds_of(60, "slow wait", "TANDEM_SLOW_WAIT_S"); }

Places read_places(const Variables& variables) {
  const bool slurm = !variables("RANK") && variables("SLURM_PROCID");
  Places places = slurm ? of_slurm(variables) : of_torchrun(variables);
  if (!slurm && !variables("TANDEM_UNIQUE_ID") && !variables("TANDEM_SECRET"))
    for (const char* const name : {"MASTER_ADDR", "MASTER_PORT"})
      if (!variables(name))
        throw InvalidArgument(fmt::format("{}: not set in the environment; tandem launch and torchrun set it", name));
  for (const char* const name : kJob) places.job += fmt::format("{}={};", name, variables(name).value_or(""));
  return places;
}

MeetingPoint read_meeting_point(const Variables& variables) {
  constexpr int most_port = 65535;
  MeetingPoint point;
  if (const auto address = variables("MASTER_ADDR"))
    point.address = *address;
  else if (const auto hosts = variables(variables("SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST" : "SLURM_NODELIST"))
    point.address = first_host(*hosts);
  if (point.address.empty())
    throw InvalidArgument(
        "MASTER_ADDR: not set in the environment; with TANDEM_SECRET it is the address of PE 0's host");
  if (variables("TANDEM_PORT"))
    point.port = static_cast<std::uint16_t>(needed(variables, "TANDEM_PORT", 1, most_port));
  else if (variables("MASTER_PORT"))
    point.port = static_cast<std::uint16_t>(needed(variables, "MASTER_PORT", 1, most_port - 1) + 1);
  else if (variables("SLURM_JOB_ID"))
    point.port = static_cast<std::uint16_t>(
        20000 + (10 * number_in(variables, "SLURM_JOB_ID") + number_in(variables, "SLURM_STEP_ID")) % 10000);
  else
    throw InvalidArgument("MASTER_PORT, TANDEM_PORT: not set in the environment; with TANDEM_SECRET one is needed");
  return point;
}

}  // namespace tandem::bootstrap
