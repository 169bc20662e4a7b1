#include "tools/tandem/run/job_place.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "bootstrap/local/environment.h"
#include "tandem/error.h"
#include "tools/tandem/main/console.h"

namespace tandem::cli {

namespace {

/// Returns the number in a launcher's variable: torchrun's and `tandem launch`'s, or else Slurm's.
std::optional<int> launched(const char* variable, const char* of_slurm) {
  for (const char* const name : {variable, of_slurm}) {
    const auto text = bootstrap::variable_of_process(name);
    if (!text) continue;
    int number = -1;
    const char* const end = text->data() + text->size();
    const auto [stop, error] = std::from_chars(text->data(), end, number);
    if (error != std::errc() || stop != end || number < 0)
      throw InvalidArgument(fmt::format("{}: '{}' given, allowed is a number from 0", name, *text));
    return number;
  }
  return std::nullopt;
}

}  // namespace

JobPlace place_of_job(const Arguments& a, int otherwise) {
  JobPlace place;
  const auto rank = launched("RANK", "SLURM_PROCID");
  const auto world = launched("WORLD_SIZE", "SLURM_NTASKS");
  place.by_processes = rank && world;
  place.speaks = rank.value_or(0) == 0 || !place.by_processes;
  if (place.by_processes && a.pes && *a.pes != *world)
    throw InvalidArgument(fmt::format("--pes: {} given, but the launcher started {} processes", *a.pes, *world));
  place.pes = place.by_processes ? *world : a.pes.value_or(otherwise);
  if (place.pes < 1) throw InvalidArgument(fmt::format("--pes: {} given, allowed is 1 or more", place.pes));
  return place;
}

void note_simulations_of_a_job() {
  const auto rank = launched("RANK", "SLURM_PROCID");
  const auto world = launched("WORLD_SIZE", "SLURM_NTASKS");
  if (rank != 0 || world.value_or(1) < 2) return;
  complain(
      fmt::format("each of the {} processes of this job simulates all PEs by itself; --backend host or --backend "
                  "cuda runs one PE in each",
                  *world));
}

}  // namespace tandem::cli
