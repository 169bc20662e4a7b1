#include "host/world/profiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "host/watchdog.h"
#include "tandem/error.h"
#include "world/device/drawing.h"

namespace tandem::host {

HostProfiler::HostProfiler(const world::ProfilerSetup& setup)
    : operations_(setup.options.operations),
      room_(setup.options.bytes / Size{sizeof(cuda::Record)}),
      machine_(setup.machine),
      book_(setup.book),
      numbers_(setup.numbers),
      compare_hosts_(setup.compare_hosts) {
  if (operations_ < 1)
    throw InvalidArgument(fmt::format("record.operations: {} given, at least 1 is needed", operations_));
  for (const world::ClockPe& own : setup.pes) pes_.push_back(own.stream == nullptr ? nullptr : std::make_unique<Pe>());
}

RecordedWork* HostProfiler::note(int number, const void* stream, trace::GpuWork work, int blocks) {
  Pe& own = pe(number);
  const std::lock_guard lock(own.mutex);
  if (!own.is_on) return nullptr;
  const Size needed = Size{blocks} * (Size{operations_} + 1);
  if (own.used + needed > room_) {
    ++own.lost_work;
    return nullptr;
  }
  own.used += needed;
  work.pe = number;
  work.after = std::exchange(own.ends[stream], {own.work.size()});
  GridRecords records{operations_, std::vector<std::vector<cuda::Record>>(static_cast<std::size_t>(blocks))};
  return &own.work.emplace_back(RecordedWork{std::move(work), std::move(records)});
}

void HostProfiler::note_record(int number, const void* stream, const detail::EventState* event) {
  Pe& own = pe(number);
  const std::lock_guard lock(own.mutex);
  own.events[event] = own.ends[stream];
}

void HostProfiler::note_wait(int number, const void* stream, const detail::EventState* event) {
  Pe& own = pe(number);
  const std::lock_guard lock(own.mutex);
  const std::vector<std::size_t>& before = own.events[event];
  std::vector<std::size_t>& end = own.ends[stream];
  // A list without repeats stays short where no recorded work collapses it.
  for (const std::size_t i : before)
    if (std::find(end.begin(), end.end(), i) == end.end()) end.push_back(i);
}

void HostProfiler::turn(int number, bool on) {
  Pe& own = pe(number);
  const std::lock_guard lock(own.mutex);
  own.is_on = on;
  own.ends.clear();  // work that is not recorded lies between
  own.events.clear();
}

void HostProfiler::align() {
  is_converted_ = false;
  if (compare_hosts_) last_offsets_ = compare_hosts_();
  if (began_ != 0) return;
  first_offsets_ = last_offsets_;
  for (std::size_t pe = 0; pe < first_offsets_.size(); ++pe)
    if (pes_[pe] != nullptr) ahead_ns_ = first_offsets_[pe].offset;
  const std::uint64_t now = now_ns();
  began_ = numbers_ ? numbers_(now).front() : now;
}

trace::GpuPart HostProfiler::part() const {
  trace::GpuPart part;
  for (const auto& own : pes_) {
    if (own == nullptr) continue;
    const std::size_t first = part.work.size();
    for (const RecordedWork& one : own->work) {
      trace::GpuWork drawn = one.drawn;
      for (std::size_t& before : drawn.after) before += first;
      drawn.blocks = one.records.blocks;
      part.work.push_back(std::move(drawn));
    }
    part.lost_work += own->lost_work;
  }
  return part;
}

void HostProfiler::add(std::vector<trace::GpuPart> parts) {
  others_ = std::move(parts);
  is_converted_ = false;
}

void HostProfiler::convert() {
  is_converted_ = true;
  // PE 0's process has the records of all PEs.
  if (pes_.front() == nullptr) return;
  std::vector<trace::GpuPart> parts = others_;
  parts.insert(parts.begin(), part());
  trace::GpuProfile profile;
  profile.machine = machine_;
  profile.pes = static_cast<int>(pes_.size());
  profile.clocks.resize(pes_.size());
  for (std::size_t pe = 0; pe < first_offsets_.size(); ++pe)
    profile.clocks[pe] = trace::ClockMap(first_offsets_[pe], last_offsets_[pe]);
  profile.origin = static_cast<std::int64_t>(began_);
  world::Drawing drawing = world::draw(std::move(profile), book_, parts);
  timeline_ = std::move(drawing.timeline);
  info_ = std::move(drawing.info);
  // A block has no SM here. Its number stands in that place.
  for (trace::Lane& lane : timeline_.lanes)
    if (lane.kind == trace::LaneKind::kSm) lane.name.replace(0, std::string_view("sm").size(), "block");
}

const trace::Timeline& HostProfiler::timeline() {
  if (!is_converted_) convert();
  return timeline_;
}

const ProfileInfo& HostProfiler::info() {
  if (!is_converted_) convert();
  return info_;
}

double HostProfiler::time_us() const {
  return static_cast<double>(static_cast<std::int64_t>(now_ns() - began_) - ahead_ns_) / 1e3;
}

}  // namespace tandem::host
