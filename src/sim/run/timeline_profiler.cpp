#include "sim/run/timeline_profiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tandem/error.h"
#include "trace/timeline/buffer_name.h"

namespace tandem::sim {

namespace {

trace::LaneKind drawn(LaneKind kind) {
  switch (kind) {
    case LaneKind::kSm:
      return trace::LaneKind::kSm;
    case LaneKind::kCopyEngine:
      return trace::LaneKind::kCopyEngine;
    case LaneKind::kLinkOut:
      return trace::LaneKind::kLinkOut;
    case LaneKind::kLinkIn:
      return trace::LaneKind::kLinkIn;
    case LaneKind::kNicOut:
      return trace::LaneKind::kNicOut;
    case LaneKind::kNicIn:
      return trace::LaneKind::kNicIn;
  }
  return trace::LaneKind::kSm;
}

struct Drawn {
  trace::SpanKind kind;
  const char* label;
};

Drawn drawn(OperationKind kind) {
  switch (kind) {
    case OperationKind::kLoad:
      return {trace::SpanKind::kLoad, "load"};
    case OperationKind::kStore:
      return {trace::SpanKind::kStore, "store"};
    case OperationKind::kCopy:
      return {trace::SpanKind::kCopy, "copy"};
    case OperationKind::kPut:
      return {trace::SpanKind::kPut, "put"};
    case OperationKind::kGet:
      return {trace::SpanKind::kGet, "get"};
    case OperationKind::kSignal:
      return {trace::SpanKind::kSignal, "signal"};
    case OperationKind::kWait:
      return {trace::SpanKind::kWait, "wait"};
    case OperationKind::kTest:
      return {trace::SpanKind::kWait, "test"};
    case OperationKind::kFence:
      return {trace::SpanKind::kWait, "fence"};
    case OperationKind::kQuiet:
      return {trace::SpanKind::kWait, "quiet"};
    case OperationKind::kAtomic:
      return {trace::SpanKind::kSignal, "atomic"};
    case OperationKind::kSync:
      return {trace::SpanKind::kWait, "sync"};
    case OperationKind::kCompute:
      return {trace::SpanKind::kCompute, "tile"};
    case OperationKind::kMemory:
      return {trace::SpanKind::kLoad, "local memory"};
    case OperationKind::kTransfer:
      return {trace::SpanKind::kTransfer, "transfer"};
    case OperationKind::kCopyEngine:
      return {trace::SpanKind::kCopy, "copy"};
  }
  return {trace::SpanKind::kCompute, ""};
}

}  // namespace

Lane TimelineProfiler::add_lane(int pe, LaneKind kind, const std::string& name) {
  const auto [at, is_new] = lanes_.try_emplace({pe, name}, 0);
  if (is_new) at->second = timeline.add_lane(pe, drawn(kind), name);
  return at->second;
}

/// Returns "load x" like the timelines of GPUs, or "tile [0, 128) x [256, 512)".
std::uint32_t TimelineProfiler::label_of(const Operation& operation, const char* what) {
  if (operation.kind == OperationKind::kCompute && !operation.rows.empty())
    return timeline.intern(fmt::format("{} [{}, {}) x [{}, {})", what, operation.rows.begin, operation.rows.end,
                                       operation.columns.begin, operation.columns.end));
  const void* const place = operation.target != nullptr ? operation.target : operation.address;
  if (place == nullptr || !describe) return timeline.intern(what);
  const std::string name = trace::buffer_name(describe(place));
  return timeline.intern(name.empty() ? what : what + (" " + name));
}

bool TimelineProfiler::has_room() {
  if (timeline.spans.size() + timeline.arrows.size() < most_events) return true;
  if (std::exchange(was_full_, true)) return false;
  throw OutOfMemory(fmt::format(
      "the timeline: more than {} spans and arrows, allowed are runs of fewer PEs, bytes or calls", most_events));
}

void TimelineProfiler::on_operation(const Operation& operation) {
  if (operation.lane == kNoLane || !has_room()) return;
  timeline.end = std::max(timeline.end, operation.end);
  // Operations without duration are not drawn, except signals, where arrows start, and messages from a NIC's queue.
  const bool queued = operation.kind == OperationKind::kTransfer && operation.released_at < operation.begin;
  if (operation.begin == operation.end && operation.kind != OperationKind::kSignal && !queued) return;
  const Drawn how = drawn(operation.kind);
  trace::Span span{operation.lane,  how.kind,      label_of(operation, how.label),
                   operation.begin, operation.end, operation.bytes};
  if (operation.kind == OperationKind::kTransfer && operation.released_by != kNoLane) {
    span.by = operation.released_by;
    span.asked = operation.released_at;
  }
  timeline.add(span);
  if (operation.kind == OperationKind::kWait && operation.released_by != kNoLane)
    timeline.add(trace::Arrow{operation.released_by, operation.lane, timeline.intern(how.label), operation.released_at,
                              operation.end});
}

void TimelineProfiler::on_start(Lane from, Time at, Lane to, Time begin) {
  if (from == kNoLane || to == kNoLane || !has_room()) return;
  timeline.add(trace::Arrow{from, to, timeline.intern("start"), at, begin});
}

void TimelineProfiler::on_kernel(Lane lane, const std::string& name, Time begin, Time end) {
  if (lane == kNoLane || !has_room()) return;
  timeline.end = std::max(timeline.end, end);
  timeline.add(trace::Span{lane, trace::SpanKind::kKernel, timeline.intern(name), begin, end, 0});
}

}  // namespace tandem::sim
