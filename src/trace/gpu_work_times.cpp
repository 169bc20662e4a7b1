#include "trace/gpu_work_times.h"

#include <algorithm>
#include <limits>

namespace tandem::trace {

namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

bool has_records(const GpuWork& work) {
  return std::any_of(work.blocks.begin(), work.blocks.end(), [](const auto& block) { return !block.empty(); });
}

GpuWorkTime of_blocks(const GpuWork& work) {
  GpuWorkTime time;
  time.begin = kNever;
  for (const auto& block : work.blocks) {
    if (block.empty()) continue;
    time.known = true;
    time.begin = std::min(time.begin, static_cast<std::int64_t>(block.front().begin));
    time.end = std::max(time.end, static_cast<std::int64_t>(block.front().begin) + block.front().duration);
  }
  return time;
}

}  // namespace

std::vector<GpuWorkTime> work_times(const std::vector<GpuWork>& work) {
  std::vector<GpuWorkTime> times(work.size());
  // Forwards: begins; backwards through `after`: ends.
  for (std::size_t i = 0; i < work.size(); ++i) {
    GpuWorkTime& own = times[i];
    own.part_of = i;
    if (has_records(work[i])) own = of_blocks(work[i]);
    own.part_of = i;
    own.bytes = work[i].bytes;
    if (own.known) {
      for (const std::size_t before : work[i].after) {
        GpuWorkTime& earlier = times[times[before].part_of];
        if (!has_records(work[times[before].part_of])) earlier.end = std::min(earlier.end, own.begin);
      }
      continue;
    }
    own.begin = 0;
    own.end = kNever;
    for (const std::size_t before : work[i].after) {
      const std::size_t earlier = times[before].part_of;
      if (has_records(work[earlier]))
        own.begin = std::max(own.begin, times[earlier].end);
      else
        own.part_of = earlier;
    }
    if (own.part_of == i) continue;
    times[own.part_of].bytes += own.bytes;
    ++times[own.part_of].parts;
  }
  for (std::size_t i = 0; i < work.size(); ++i)
    if (!has_records(work[i]))
      times[i].known = times[i].part_of == i && times[i].begin > 0 && times[i].end != kNever &&
                       times[i].end >= times[i].begin;
  return times;
}

}  // namespace tandem::trace
