#include "cuda/profile/profiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "cuda/device/signal_kernels.h"
#include "cuda/driver/error.h"
#include "cuda/profile/profiled_kernels.h"
#include "cuda/profile/profiled_signals.h"
#include "tandem/error.h"
#include "trace/gpu/gpu_spans.h"
#include "world/device/drawing.h"

namespace tandem::cuda {

struct Profiler::Work {
  trace::GpuWork drawn;
  RecordArea area;
  int blocks = 0;
};

struct Profiler::Pe {
  int device = 0;
  Record* records = nullptr;
  Size room = 0;  // records
  Size used = 0;
  mutable std::mutex mutex;
  bool on = true;
  std::vector<Work> work;
  Size lost_work = 0;
  /// The work for which the next work has to wait, of each stream and of each recorded event.
  std::map<cudaStream_t, std::vector<std::size_t>> ends;
  std::map<const detail::EventState*, std::vector<std::size_t>> events;

  ~Pe() { cudaFree(records); }
};

namespace {

std::vector<ClockPe> clock_pes(const std::vector<world::ClockPe>& given) {
  std::vector<ClockPe> pes;
  for (const world::ClockPe& pe : given) {
    auto* const stream = pe.stream == nullptr ? nullptr : static_cast<cudaStream_t>(pe.stream->native());
    pes.push_back({pe.device, pe.clock, stream, reinterpret_cast<Mail*>(pe.mail), pe.is_far});
  }
  return pes;
}

}  // namespace

Profiler::Profiler(const world::ProfilerSetup& setup)
    : operations_(setup.options.operations),
      time_copies_(setup.options.time_copies),
      machine_(setup.machine),
      book_(setup.book),
      clocks_(clock_pes(setup.pes), {setup.meet, setup.numbers, setup.compare_hosts}) {
  if (operations_ < 1)
    throw InvalidArgument(fmt::format("record.operations: {} given, at least 1 is needed", operations_));
  for (const world::ClockPe& clock : setup.pes) {
    if (clock.stream == nullptr) {
      pes_.push_back(nullptr);
      continue;
    }
    auto own = std::make_unique<Pe>();
    own->device = clock.device;
    own->room = setup.options.bytes / Size{sizeof(Record)};
    check(cudaSetDevice(clock.device), "cudaSetDevice");
    load_profiled_signals();
    for (const auto& [usual, recorded] : profiled_kernels()) recorded->load();
    void* memory = nullptr;
    const auto bytes = static_cast<std::size_t>(own->room) * sizeof(Record);
    if (cudaMalloc(&memory, bytes) != cudaSuccess)
      throw OutOfMemory(fmt::format("record.bytes: {} bytes asked on GPU {}", setup.options.bytes, clock.device));
    own->records = static_cast<Record*>(memory);
    check(cudaMemset(memory, 0, bytes), "cudaMemset");
    pes_.push_back(std::move(own));
  }
}

Profiler::~Profiler() = default;

bool Profiler::is_on(int number) const {
  const Pe& own = pe(number);
  const std::lock_guard lock(own.mutex);
  return own.on;
}

void Profiler::turn(int number, bool on) {
  Pe& own = pe(number);
  const std::lock_guard lock(own.mutex);
  own.on = on;
  own.ends.clear();  // work that is not recorded lies between
  own.events.clear();
}

RecordArea Profiler::take_area(Pe& own, int blocks, int stride) const {
  const std::lock_guard lock(own.mutex);
  const Size needed = Size{blocks} * stride;
  if (own.used + needed > own.room) {
    ++own.lost_work;
    return {};
  }
  const RecordArea area{own.records + own.used, stride};
  own.used += needed;
  return area;
}

void Profiler::add(const ProfiledStream& stream, trace::GpuWork work, const RecordArea& area, int blocks) {
  Pe& own = pe(stream.pe);
  const std::lock_guard lock(own.mutex);
  std::vector<std::size_t>& end = own.ends[stream.stream];
  work.pe = stream.pe;
  work.stream = stream.name;
  work.after = std::exchange(end, {own.work.size()});
  own.work.push_back({std::move(work), area, blocks});
}

void Profiler::launch(const ProfiledStream& stream, const detail::KernelLaunch& kernel, detail::DeviceLaunch launch) {
  const auto found = profiled_kernels().find(kernel.device);
  if (found == profiled_kernels().end()) {
    note_work(stream, kernel.name(), trace::SpanKind::kKernel, 0);
    return kernel.device->launch(launch);
  }
  const RecordArea area = note_kernel(stream, kernel.name(), kernel.team, kernel.grid.blocks);
  if (area.records == nullptr) return kernel.device->launch(launch);
  launch.records = &area;
  found->second->launch(launch);
}

RecordArea Profiler::note_kernel(const ProfiledStream& stream, const std::string& name, const Team& team, int blocks) {
  const RecordArea area = take_area(pe(stream.pe), blocks, operations_ + 1);
  if (area.records == nullptr) {
    note_work(stream, name, trace::SpanKind::kKernel, 0);
    return area;
  }
  trace::GpuWork work;
  work.name = name;
  work.team = team;
  add(stream, std::move(work), area, blocks);
  return area;
}

void Profiler::write_signal(const ProfiledStream& stream, Signal* word, Epoch value) {
  const RecordArea area = take_area(pe(stream.pe), 1, kSignalRecords);
  if (area.records == nullptr) return launch_write(stream.stream, word, value);
  trace::GpuWork work;
  work.name = "write_signal";
  add(stream, std::move(work), area, 1);
  launch_profiled_write(stream.stream, area, word, value);
}

void Profiler::wait_signal(const ProfiledStream& stream, const Context& context, const Signal* word, Epoch value) {
  const RecordArea area = take_area(pe(stream.pe), 1, kSignalRecords);
  if (area.records == nullptr) return launch_wait(stream.stream, context, word, value);
  trace::GpuWork work;
  work.name = "wait_signal";
  add(stream, std::move(work), area, 1);
  launch_profiled_wait(stream.stream, area, context, word, value);
}

void Profiler::stamp(const ProfiledStream& stream) {
  const RecordArea area = take_area(pe(stream.pe), 1, 1);
  if (area.records == nullptr) return;
  trace::GpuWork work;
  work.hidden = true;
  add(stream, std::move(work), area, 1);
  launch_stamp(stream.stream, area);
}

void Profiler::note_work(const ProfiledStream& stream, const std::string& name, trace::SpanKind kind, Size bytes) {
  trace::GpuWork work;
  work.name = name;
  work.kind = kind;
  work.bytes = bytes;
  note(stream, std::move(work));
}

void Profiler::note_copied_signal(const ProfiledStream& stream, const Signal* word) {
  trace::GpuWork work;
  work.name = "write_signal";
  work.kind = trace::SpanKind::kSignal;
  work.bytes = sizeof(Epoch);
  work.signal = reinterpret_cast<std::uint64_t>(word);
  note(stream, std::move(work));
}

void Profiler::note(const ProfiledStream& stream, trace::GpuWork work) {
  Pe& own = pe(stream.pe);
  bool first = false;
  {
    const std::lock_guard lock(own.mutex);
    first = own.ends[stream.stream].empty();
  }
  if (first || (time_copies_ && work.kind == trace::SpanKind::kCopy)) stamp(stream);
  add(stream, std::move(work), {}, 0);
}

void Profiler::note_copy_end(const ProfiledStream& stream) {
  if (time_copies_) stamp(stream);
}

/// Stamps the end of work that has no records of its own. It does so only before the host waits for the stream, since a
/// kernel behind a copy takes time.
void Profiler::note_synchronize(const ProfiledStream& stream) {
  Pe& own = pe(stream.pe);
  bool open = false;
  {
    const std::lock_guard lock(own.mutex);
    const std::vector<std::size_t>& end = own.ends[stream.stream];
    open = std::any_of(end.begin(), end.end(), [&](std::size_t i) { return own.work[i].blocks == 0; });
  }
  if (open) stamp(stream);
}

void Profiler::note_record(const ProfiledStream& stream, const detail::EventState* event) {
  Pe& own = pe(stream.pe);
  const std::lock_guard lock(own.mutex);
  own.events[event] = own.ends[stream.stream];
}

void Profiler::note_wait(const ProfiledStream& stream, const detail::EventState* event) {
  Pe& own = pe(stream.pe);
  const std::lock_guard lock(own.mutex);
  const std::vector<std::size_t>& before = own.events[event];
  std::vector<std::size_t>& end = own.ends[stream.stream];
  // A list without repeats stays short where no recorded work collapses it.
  for (const std::size_t i : before)
    if (std::find(end.begin(), end.end(), i) == end.end()) end.push_back(i);
}

void Profiler::align() {
  clocks_.align();
  converted_ = false;
}

void Profiler::collect(const Pe& own, trace::GpuPart& part) const {
  std::vector<Record> records(static_cast<std::size_t>(own.used));
  check(cudaSetDevice(own.device), "cudaSetDevice");
  check(cudaMemcpy(records.data(), own.records, records.size() * sizeof(Record), cudaMemcpyDeviceToHost), "recording");
  const std::size_t first = part.work.size();
  for (const Work& work : own.work) {
    trace::GpuWork drawn = work.drawn;
    for (std::size_t& before : drawn.after) before += first;
    for (int block = 0; block < work.blocks; ++block) {
      const auto* const begin = records.data() + (work.area.records - own.records) + Size{block} * work.area.stride;
      drawn.blocks.push_back(trace::records_of_block({begin, static_cast<std::size_t>(work.area.stride)}));
    }
    part.work.push_back(std::move(drawn));
  }
  part.lost_work += own.lost_work;
}

trace::GpuPart Profiler::part() const {
  trace::GpuPart part;
  for (const auto& own : pes_)
    if (own != nullptr) collect(*own, part);
  return part;
}

void Profiler::add(std::vector<trace::GpuPart> parts) {
  others_ = std::move(parts);
  converted_ = false;
}

void Profiler::convert() {
  converted_ = true;
  // PE 0's process has the records of all PEs.
  if (pes_.front() == nullptr) return;
  trace::GpuProfile profiler;
  profiler.machine = machine_;
  profiler.pes = static_cast<int>(pes_.size());
  profiler.clocks = clocks_.maps();
  profiler.host = clocks_.host();
  profiler.origin = clocks_.began();
  profiler.signal_ns = clocks_.least_delay();
  std::vector<trace::GpuPart> parts = others_;
  parts.insert(parts.begin(), part());
  world::Drawing drawing = world::draw(std::move(profiler), book_, parts);
  timeline_ = std::move(drawing.timeline);
  info_ = std::move(drawing.info);
}

const trace::Timeline& Profiler::timeline() {
  if (!converted_) convert();
  return timeline_;
}

const ProfileInfo& Profiler::info() {
  if (!converted_) convert();
  return info_;
}

}  // namespace tandem::cuda
