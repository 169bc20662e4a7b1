#pragma once
/// Timelines in the shape of AllGather+GEMM, made up for tests: lengths are of the right order and nothing more.

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "tandem/timeline.h"

namespace tandem::trace::testing {

struct Shape {
  int pes = 4;
  int sms = 132;
  int tiles_per_sm = 12;
  int splits = 2;
  bool overlapped = true;
};

/// The copy engines push every PE's rows to its peers; the SMs' tiles begin with the own rows and wait for the others.
class SyntheticGemm {
 public:
  explicit SyntheticGemm(const Shape& shape) : shape_(shape) {
    timeline_.title = shape.overlapped ? "overlapped" : "sequential";
    timeline_.machine = "synthetic";
    timeline_.pes = shape.pes;
    for (int pe = 0; pe < shape.pes; ++pe) add_lanes(pe);
    for (int pe = 0; pe < shape.pes; ++pe) add_copies(pe);
    for (int pe = 0; pe < shape.pes; ++pe) add_gemm(pe);
    for (const Span& span : timeline_.spans) timeline_.end = std::max(timeline_.end, span.end);
  }

  Timeline take() { return std::move(timeline_); }

 private:
  static constexpr Time kTile = 21 * kMicrosecond;
  static constexpr Time kCopy = 46 * kMicrosecond;
  static constexpr Time kLaunch = 3 * kMicrosecond;
  static constexpr Size kCopyBytes = 8 << 20;

  struct Lanes {
    std::uint32_t host, engine, out, in;
    std::vector<std::uint32_t> sms;
  };
  struct Arrival {
    Time at;
    std::uint32_t lane;
  };

  void add_lanes(int pe) {
    Lanes lanes{};
    lanes.host = timeline_.add_lane(pe, LaneKind::kHost, "host");
    for (int sm = 0; sm < shape_.sms; ++sm) {
      lanes.sms.push_back(timeline_.add_lane(pe, LaneKind::kSm, "sm " + std::to_string(sm)));
    }
    lanes.engine = timeline_.add_lane(pe, LaneKind::kCopyEngine, "copy engine 0");
    lanes.out = timeline_.add_lane(pe, LaneKind::kLinkOut, "link out");
    lanes.in = timeline_.add_lane(pe, LaneKind::kLinkIn, "link in");
    lanes_.push_back(lanes);
    arrivals_.emplace_back(static_cast<std::size_t>(shape_.pes * shape_.splits), Arrival{0, 0});
  }

  void span(std::uint32_t lane, SpanKind kind, Time begin, Time end, const std::string& label, Size bytes = 0) {
    timeline_.add(Span{lane, kind, timeline_.intern(label), begin, end, bytes});
  }
  void arrow(std::uint32_t from_lane, Time from, std::uint32_t to_lane, Time to, const std::string& label) {
    timeline_.add(Arrow{from_lane, to_lane, timeline_.intern(label), from, to});
  }

  void add_copies(int pe) {
    const Lanes& my = lanes_[static_cast<std::size_t>(pe)];
    span(my.host, SpanKind::kLaunch, 0, kLaunch, "launch copies");
    arrow(my.host, kLaunch, my.engine, kLaunch + kMicrosecond, "launch");
    Time now = kLaunch + kMicrosecond;
    for (int distance = 1; distance < shape_.pes; ++distance) {
      const int peer = (pe + shape_.pes - distance) % shape_.pes;
      const Lanes& theirs = lanes_[static_cast<std::size_t>(peer)];
      for (int part = 0; part < shape_.splits; ++part) {
        const std::string label =
            "rows " + std::to_string(pe) + "." + std::to_string(part) + " to PE " + std::to_string(peer);
        span(my.engine, SpanKind::kCopy, now, now + kCopy, label, kCopyBytes);
        span(my.out, SpanKind::kTransfer, now + 800, now + kCopy, label, kCopyBytes);
        span(theirs.in, SpanKind::kTransfer, now + 900'000, now + kCopy + 900'000, label, kCopyBytes);
        arrow(my.engine, now + kNanosecond, theirs.in, now + 900'000, "data");
        arrivals_[static_cast<std::size_t>(peer)][static_cast<std::size_t>(pe * shape_.splits + part)] = {
            now + kCopy + 900'000, theirs.in};
        now += kCopy + 300'000;
      }
    }
  }

  void add_gemm(int pe) {
    const Lanes& my = lanes_[static_cast<std::size_t>(pe)];
    Time start = 2 * kLaunch;
    if (!shape_.overlapped) {
      Arrival last{0, my.in};
      for (const Arrival& arrival : arrivals_[static_cast<std::size_t>(pe)]) {
        if (arrival.at > last.at) last = arrival;
      }
      start = last.at + kMicrosecond + kLaunch;
      span(my.host, SpanKind::kWait, kLaunch, last.at + kMicrosecond, "wait for the copies");
      arrow(last.lane, last.at, my.host, last.at + kMicrosecond, "copies done");
    }
    span(my.host, SpanKind::kLaunch, start - kLaunch, start, "launch gemm");
    for (std::size_t sm = 0; sm < my.sms.size(); ++sm) add_block(pe, sm, start + kMicrosecond);
  }

  void add_block(int pe, std::size_t sm, Time begin) {
    const Lanes& my = lanes_[static_cast<std::size_t>(pe)];
    const std::uint32_t lane = my.sms[sm];
    arrow(my.host, begin - kMicrosecond, lane, begin, "launch");
    const int parts = shape_.pes * shape_.splits;
    Time now = begin + static_cast<Time>(sm % 7) * 20'000;
    for (int tile = 0; tile < shape_.tiles_per_sm; ++tile) {
      const int order = tile * parts / shape_.tiles_per_sm;
      const int part = (pe * shape_.splits + order) % parts;
      const Arrival ready = arrivals_[static_cast<std::size_t>(pe)][static_cast<std::size_t>(part)];
      const std::string rows =
          "rows " + std::to_string(part / shape_.splits) + "." + std::to_string(part % shape_.splits);
      if (shape_.overlapped && ready.at > now) {
        span(lane, SpanKind::kWait, now, ready.at + 1'200'000, "wait " + rows);
        arrow(ready.lane, ready.at, lane, ready.at + 1'200'000, "ready " + rows);
        now = ready.at + 1'200'000;
      }
      const Time length = kTile + static_cast<Time>((sm * 37 + static_cast<std::size_t>(tile) * 11) % 50) * 30'000;
      span(lane, SpanKind::kLoad, now, now + 600'000, "load " + rows, 131072);
      span(lane, SpanKind::kCompute, now + 600'000, now + length, "tile " + rows);
      span(lane, SpanKind::kStore, now + length, now + length + 500'000, "store", 65536);
      now += length + 500'000;
    }
    span(lane, SpanKind::kKernel, begin, now, "gemm");
  }

  Shape shape_;
  Timeline timeline_;
  std::vector<Lanes> lanes_;
  std::vector<std::vector<Arrival>> arrivals_;  // by PE, then by part: when the rows were there and on which lane
};

inline Timeline synthetic_gemm(const Shape& shape) { return SyntheticGemm(shape).take(); }

inline Report synthetic_report(Shape shape) {
  Report report;
  report.title = "all_gather_gemm (synthetic)";
  report.summary = {{"PEs", std::to_string(shape.pes)}, {"SMs", std::to_string(shape.sms)}};
  for (const bool overlapped : {false, true}) {
    shape.overlapped = overlapped;
    report.timelines.push_back(synthetic_gemm(shape));
  }
  return report;
}

}  // namespace tandem::trace::testing
