#pragma once
/// The queue of pending events, earliest first.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tandem::sim {

using Time = std::int64_t;

struct Event {
  Time time;
  std::uint64_t order;  ///< among events of the same time; unique
  void (*function)(void*);
  void* argument;

  bool before(const Event& other) const { return time != other.time ? time < other.time : order < other.order; }
};

/// A heap of four children a node: half the levels of a binary one, and the children lie in two cache lines.
class EventQueue {
 public:
  bool empty() const { return events_.empty(); }
  std::size_t size() const { return events_.size(); }
  const Event& front() const { return events_.front(); }

  void push(const Event& event) {
    std::size_t hole = events_.size();
    events_.push_back(event);
    for (; hole > 0; hole = parent(hole)) {
      if (!event.before(events_[parent(hole)])) break;
      events_[hole] = events_[parent(hole)];
    }
    events_[hole] = event;
  }

  Event pop() {
    const Event first = events_.front();
    const Event last = events_.back();
    events_.pop_back();
    const std::size_t size = events_.size();
    if (size == 0) return first;
    std::size_t hole = 0;
    for (std::size_t child = 1; child < size; child = 4 * hole + 1) {
      std::size_t least = child;
      const std::size_t end = child + 4 < size ? child + 4 : size;
      for (std::size_t other = child + 1; other < end; ++other)
        if (events_[other].before(events_[least])) least = other;
      if (!events_[least].before(last)) break;
      events_[hole] = events_[least];
      hole = least;
    }
    events_[hole] = last;
    return first;
  }

 private:
  static std::size_t parent(std::size_t i) { return (i - 1) / 4; }

  std::vector<Event> events_;
};

}  // namespace tandem::sim
