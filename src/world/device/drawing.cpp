#include "world/device/drawing.h"

#include <utility>

#include "trace/timeline/buffer_name.h"

namespace tandem::world {

Drawing draw(trace::GpuProfile profile, const AddressBook& book, const std::vector<trace::GpuPart>& parts) {
  profile.place = book.place;
  profile.name = [&book](std::uint64_t address) { return trace::buffer_name(book.describe(address)); };
  Drawing drawing;
  ProfileInfo& info = drawing.info;
  for (const trace::GpuPart& part : parts) {
    const std::size_t first = profile.work.size();
    for (trace::GpuWork work : part.work) {
      for (std::size_t& before : work.after) before += first;
      profile.work.push_back(std::move(work));
    }
    info.lost_work += part.lost_work;
  }
  trace::GpuFindings findings;
  drawing.timeline = trace::to_timeline(profile, findings);
  info.operations = findings.records;
  info.lost_operations = findings.lost_records;
  info.lost_work += findings.unplaced;
  info.unmatched_waits = findings.unmatched;
  for (const trace::GpuRelease& release : findings.releases)
    info.releases.push_back({release.from, release.to, static_cast<double>(release.after) / 1e6});
  for (const trace::ClockMap& clock : profile.clocks)
    info.clocks.push_back({clock.offset(), clock.error(), clock.bound(), clock.drift_ppm()});
  return drawing;
}

}  // namespace tandem::world
