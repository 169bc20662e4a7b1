#pragma once
/// Vector clocks: how much of every thread, and of all asynchronous work, happens before a point.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tandem::checker {

using Slot = std::uint32_t;
using Tick = std::uint32_t;

/// One point of one component, which FastTrack (Flanagan and Freund 2009) calls an epoch.
struct Stamp {
  Slot slot = 0;
  Tick tick = 0;
};

class Clock {
 public:
  Tick of(Slot slot) const { return slot < ticks_.size() ? ticks_[slot] : 0; }
  bool covers(Stamp stamp) const { return of(stamp.slot) >= stamp.tick; }
  void set(Slot slot, Tick tick) {
    if (slot >= ticks_.size()) ticks_.resize(slot + 1, 0);
    ticks_[slot] = tick;
  }
  void raise(Stamp stamp) {
    if (!covers(stamp)) set(stamp.slot, stamp.tick);
  }
  void join(const Clock& other) {
    if (other.ticks_.size() > ticks_.size()) ticks_.resize(other.ticks_.size(), 0);
    // Compilers turn steps of a fixed length into vector code.
    constexpr std::size_t kStep = 8;
    Tick* const mine = ticks_.data();
    const Tick* const theirs = other.ticks_.data();
    std::size_t i = 0;
    for (; i + kStep <= other.ticks_.size(); i += kStep)
      for (std::size_t k = i; k < i + kStep; ++k) mine[k] = std::max(mine[k], theirs[k]);
    for (; i < other.ticks_.size(); ++i) mine[i] = std::max(mine[i], theirs[i]);
  }
  /// Keeps the part that both clocks cover.
  void meet(const Clock& other) {
    for (std::size_t i = 0; i < ticks_.size(); ++i) ticks_[i] = std::min(ticks_[i], other.of(static_cast<Slot>(i)));
  }
  bool empty() const { return ticks_.empty(); }

 private:
  std::vector<Tick> ticks_;
};

}  // namespace tandem::checker
