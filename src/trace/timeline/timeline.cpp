#include "tandem/timeline.h"

#include <array>
#include <utility>

namespace tandem::trace {

std::string_view name(LaneKind kind) {
  static constexpr std::array<std::string_view, kLaneKinds> kNames{"host",     "stream",  "SM",      "copy engine",
                                                                   "link out", "link in", "NIC out", "NIC in"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view name(SpanKind kind) {
  static constexpr std::array<std::string_view, kSpanKinds> kNames{
      "kernel", "compute", "load", "store", "put", "get", "signal", "wait", "copy", "transfer", "launch"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::uint32_t Timeline::add_lane(int pe, LaneKind kind, std::string lane_name) {
  lanes.push_back({pe, kind, std::move(lane_name)});
  return static_cast<std::uint32_t>(lanes.size() - 1);
}

std::uint32_t Timeline::intern(std::string_view text) {
  if (const auto known = numbers_.find(text); known != numbers_.end()) return known->second;
  const auto number = static_cast<std::uint32_t>(labels_.size());
  labels_.emplace_back(text);
  numbers_.emplace(labels_.back(), number);
  return number;
}

Timeline Timeline::without_events() const {
  Timeline other;
  other.title = title;
  other.machine = machine;
  other.predicted = predicted;
  other.pes = pes;
  other.pes_per_node = pes_per_node;
  other.begin = begin;
  other.end = end;
  other.lanes = lanes;
  other.labels_ = labels_;
  other.numbers_ = numbers_;
  return other;
}

}  // namespace tandem::trace
