#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "tandem/signal.h"
#include "trace/gpu/gpu_profile.h"
#include "trace/gpu/gpu_spans.h"
#include "trace/gpu/gpu_work_times.h"
#include "trace/gpu/signal_match.h"

namespace tandem::trace {

namespace {

using cuda::Record;
using cuda::RecordKind;

/// The life of a block, or an item of work without blocks. Each gets a row.
struct Life {
  std::size_t work = 0;
  std::size_t block = 0;  ///< of `blocks`; kNone: none
  LaneKind kind = LaneKind::kSm;
  int place = 0;  ///< SM, or number of the stream's name
  Time begin = 0;
  Time end = 0;
  int row = 0;
  std::uint32_t lane = 0;
};
constexpr std::size_t kNone = ~std::size_t{0};

class Conversion {
 public:
  Conversion(const GpuProfile& profile, GpuFindings& findings)
      : profile_(profile), findings_(findings), times_(work_times(profile)) {
    timeline_.machine = profile.machine;
    timeline_.pes = profile.pes;
  }

  Timeline run() {
    find_lives();
    find_rows();
    add_lanes();
    for (const Life& life : lives_) draw(life);
    match_.sort();
    for (const Wait& wait : waits_) draw_release(wait);
    draw_order();
    set_ends();
    return std::move(timeline_);
  }

 private:
  struct Wait {
    Awaited awaited;
    bool packets;
    std::uint32_t lane;
    std::uint32_t label;
  };

  Time time(int pe, std::uint64_t ns) const { return profile_.time(pe, ns); }

  void find_lives() {
    std::map<std::string, int> streams;
    for (std::size_t i = 0; i < profile_.work.size(); ++i) {
      const GpuWork& work = profile_.work[i];
      if (work.hidden) continue;
      for (std::size_t b = 0; b < work.blocks.size(); ++b) {
        if (work.blocks[b].empty()) continue;
        const Record& block = work.blocks[b].front();
        // A copy on CPUs is timed like a block.
        const LaneKind kind = work.kind == SpanKind::kCopy ? LaneKind::kCopyEngine : LaneKind::kSm;
        lives_.push_back({i, b, kind, static_cast<int>(block.address), time(work.pe, block.begin),
                          time(work.pe, block.begin + block.duration)});
      }
      if (!work.blocks.empty()) continue;
      findings_.unplaced += times_[i].known ? 0 : 1;
      if (!times_[i].known) continue;
      const bool is_copy = work.kind == SpanKind::kCopy || work.signal != 0;
      const int stream = streams.try_emplace(work.stream, static_cast<int>(streams.size())).first->second;
      lives_.push_back({i, kNone, is_copy ? LaneKind::kCopyEngine : LaneKind::kStream, is_copy ? 0 : stream,
                        times_[i].begin, times_[i].end});
    }
  }

  /// Overlapping items at one place get different rows: each takes the first that is free.
  void find_rows() {
    std::stable_sort(lives_.begin(), lives_.end(), [](const Life& a, const Life& b) { return a.begin < b.begin; });
    std::map<std::tuple<int, LaneKind, int>, std::vector<Time>> ends;
    for (Life& life : lives_) {
      std::vector<Time>& rows = ends[{pe_of(life), life.kind, life.place}];
      const auto free = std::find_if(rows.begin(), rows.end(), [&](Time end) { return end <= life.begin; });
      life.row = static_cast<int>(free - rows.begin());
      if (free == rows.end()) rows.push_back(0);
      rows[static_cast<std::size_t>(life.row)] = life.end;
    }
  }

  int pe_of(const Life& life) const { return profile_.work[life.work].pe; }

  std::string lane_name(const Life& life) const {
    if (life.kind == LaneKind::kCopyEngine) return fmt::format("copy engine {}", life.row);
    const std::string name =
        life.kind == LaneKind::kSm ? fmt::format("sm {}", life.place) : profile_.work[life.work].stream;
    return life.row == 0 ? name : fmt::format("{}.{}", name, life.row);
  }

  /// Sorted by PE, kind, place and row. The rows of roles follow their SM's.
  void add_lanes() {
    std::map<std::tuple<int, LaneKind, int, int>, std::vector<Life*>> rows;
    for (Life& life : lives_) rows[{pe_of(life), life.kind, life.place, life.row}].push_back(&life);
    for (const auto& [key, members] : rows) {
      const std::string name = lane_name(*members.front());
      const std::uint32_t lane = timeline_.add_lane(std::get<0>(key), std::get<1>(key), name);
      std::map<int, std::uint32_t> roles;
      for (Life* const life : members) {
        life->lane = lane;
        for (const Record& record : operations(*life))
          if (record.role > 0) roles.try_emplace(record.role, 0);
      }
      for (auto& [role, role_lane] : roles)
        role_lane = timeline_.add_lane(std::get<0>(key), std::get<1>(key), fmt::format("{} / role {}", name, role));
      role_lanes_[lane] = std::move(roles);
    }
  }

  std::vector<Record> operations(const Life& life) const {
    if (life.block == kNone) return {};
    return operations_of(profile_.work[life.work].blocks[life.block]);
  }

  void draw(const Life& life) {
    const GpuWork& work = profile_.work[life.work];
    timeline_.add(Span{life.lane, work.kind, timeline_.intern(work.name), life.begin, life.end,
                       life.block == kNone || work.kind == SpanKind::kCopy ? work.bytes : 0});
    // The value is unknown, but every change of a word that a copy writes belongs to its next wait.
    if (work.signal != 0)
      match_.add_signal({profile_.place(work.signal), 0, SignalOp::kAdd, 0, life.lane, life.end, false});
    auto& [ended, lane] = work_ends_.try_emplace(life.work, life.end, life.lane).first->second;
    if (life.end > ended) std::tie(ended, lane) = std::pair(life.end, life.lane);
    if (life.block == kNone) return;
    const std::vector<Record>& records = work.blocks[life.block];
    const auto kept = static_cast<Size>(operations(life).size());
    findings_.records += kept;
    findings_.lost_records += static_cast<Size>(records.front().payload) - kept;
    for (const Record& record : operations(life)) {
      const auto& roles = role_lanes_[life.lane];
      draw(work, record, record.role == 0 ? life.lane : roles.at(record.role));
    }
  }

  void draw(const GpuWork& work, const Record& record, std::uint32_t lane) {
    const Time begin = time(work.pe, record.begin);
    const Time end = time(work.pe, record.begin + record.duration);
    const Drawn how = drawn(record.kind);
    const std::string name = record.address == 0 ? std::string() : profile_.name(record.address);
    const std::uint32_t label = timeline_.intern(name.empty() ? how.label : how.label + (" " + name));
    // As in the simulator, operations without duration are not drawn. Signals are, because arrows start at them.
    if (end > begin || how.kind == SpanKind::kSignal)
      timeline_.add(Span{lane, how.kind, label, begin, end, bytes_of(record)});
    if (record.address == 0) return;
    note_sent(work, record, lane, end);
    note_awaited(record, lane, label, begin, end);
  }

  void note_sent(const GpuWork& work, const Record& record, std::uint32_t lane, Time end) {
    Sent sent{profile_.place(record.address), record.payload, static_cast<SignalOp>(record.detail), 0, lane, end};
    if (record.kind == RecordKind::kSignal) {
      match_.add_signal(sent);
    } else if (record.kind == RecordKind::kSignalAll) {
      for (int member = 0; member < work.team.size; ++member) {
        sent.at.pe = work.team.world_pe(member);
        match_.add_signal(sent);
      }
    } else if (record.kind == RecordKind::kPacketPut) {
      sent.value = record.payload >> 32;
      sent.bytes = packet_bytes(record);
      match_.add_packets(sent);
    }
  }

  void note_awaited(const Record& record, std::uint32_t lane, std::uint32_t label, Time begin, Time end) {
    const bool packets = record.kind == RecordKind::kPacketGet;
    if (!packets && record.kind != RecordKind::kWait) return;
    Awaited wait{
        profile_.place(record.address), record.count, record.payload, static_cast<Cmp>(record.detail), 0, begin, end};
    if (packets) {
      wait.value = record.payload >> 32;
      wait.bytes = packet_bytes(record);
    }
    waits_.push_back({wait, packets, lane, label});
  }

  void draw_release(const Wait& wait) {
    const auto sent = wait.packets ? match_.brought_by(wait.awaited) : match_.released_by(wait.awaited);
    const Time under_way = profile_.signal_ns * kNanosecond;
    if (!sent) {
      findings_.unmatched += wait.awaited.end - wait.awaited.begin > 2 * under_way ? 1 : 0;
      return;
    }
    const Time before = wait.awaited.end - sent->time;  // negative: the error of the clocks
    if (sent->is_recorded)
      findings_.releases.push_back({timeline_.lanes[sent->lane].pe, timeline_.lanes[wait.lane].pe, before});
    if (sent->time + under_way <= wait.awaited.begin) return;
    timeline_.add(Arrow{sent->lane, wait.lane, wait.label, std::min(sent->time, wait.awaited.end), wait.awaited.end});
  }

  /// Draws an arrow from each predecessor's end to its successor's begin, if the times of this run allow it. A replayed
  /// graph has other times than its predecessors from before the capture.
  void draw_order() {
    const std::uint32_t label = timeline_.intern("start");
    for (const Life& life : lives_)
      for (const std::size_t before : drawn_before(life.work)) {
        const auto& [ended, lane] = work_ends_.at(before);
        if (ended <= life.begin) timeline_.add(Arrow{lane, life.lane, label, ended, life.begin});
      }
  }

  /// Returns the predecessors of an item of work, with items that are not drawn replaced by theirs.
  std::vector<std::size_t> drawn_before(std::size_t work) const {
    std::vector<std::size_t> found;
    std::vector<std::size_t> open = profile_.work[work].after;
    while (!open.empty()) {
      const std::size_t before = open.back();
      open.pop_back();
      if (profile_.work[before].hidden)
        open.insert(open.end(), profile_.work[before].after.begin(), profile_.work[before].after.end());
      else if (work_ends_.contains(before))
        found.push_back(before);
    }
    return found;
  }

  void set_ends() {
    if (lives_.empty()) return;
    timeline_.begin = lives_.front().begin;
    timeline_.end = timeline_.begin;
    for (const Span& span : timeline_.spans) timeline_.end = std::max(timeline_.end, span.end);
  }

  const GpuProfile& profile_;
  GpuFindings& findings_;
  const std::vector<GpuWorkTime> times_;
  Timeline timeline_;
  std::vector<Life> lives_;
  std::map<std::uint32_t, std::map<int, std::uint32_t>> role_lanes_;  // by the block's lane
  std::map<std::size_t, std::pair<Time, std::uint32_t>> work_ends_;   // by item of work: its end and its lane
  SignalMatch match_;
  std::vector<Wait> waits_;
};

}  // namespace

Timeline to_timeline(const GpuProfile& profile, GpuFindings& findings) { return Conversion(profile, findings).run(); }

}  // namespace tandem::trace
