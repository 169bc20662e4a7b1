#pragma once
/// How PEs of several hosts know that the others live, and whether they wait.
///
/// A PE sends heartbeats along its rail: to the PE of its number on each other host. So their number grows with PEs
/// times hosts. PEs of a host share what they hear by pulses in memory. A PE whose pulse stands still is lost.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/serial.h"

namespace tandem::wire {

/// The signs of life of a PE, as one host knows them. The PE itself writes them, or for a PE of another host the PE of
/// its rail on this host.
struct Pulse {
  std::atomic<std::uint64_t> beats;  ///< grows while the PE lives
  std::atomic<std::uint64_t> look;   ///< of its last heartbeat
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "processes share it");

struct Heartbeat {
  int host_size = 1;        ///< PEs of a host
  Pulse* pulses = nullptr;  ///< of all PEs of the world, in memory that the PEs of this host share, at first zeros
  /// Returns a value that changes while a wait of this PE lasts.
  std::function<std::uint64_t()> look;
  /// Takes that value of a PE of another host.
  std::function<void(int pe, std::uint64_t look)> on_look;
  std::function<void(const std::vector<int>& pes)> on_silence;
  /// Returns at most so many bytes for a PE, which come with a heartbeat; empty: nothing new. May be null.
  std::function<Bytes(int pe, std::size_t most)> news = {};
  /// Takes the bytes of another PE.
  std::function<void(int pe, View news)> on_news = {};
};

/// The heartbeats of one PE. One thread uses it.
class Heartbeats {
 public:
  using Clock = std::chrono::steady_clock;

  /// A PE that was heard before, and then not for `silence_s`, is lost.
  Heartbeats(Heartbeat setup, double silence_s, int pes, int me);

  /// Notes that a message of a PE has arrived.
  void hear(int pe, Clock::time_point now);
  /// Takes the value that a PE of another host has sent.
  void take_look(int pe, std::uint64_t look);
  /// Returns the value to send where heartbeats are due.
  std::optional<std::uint64_t> due(Clock::time_point now);
  bool is_rail_peer(int pe) const { return pe != me_ && pe % setup_.host_size == me_ % setup_.host_size; }
  /// Reads what this host has heard, and reports PEs that are silent.
  void watch(Clock::time_point now);

 private:
  /// The state of another PE, as far as this one knows.
  struct Known {
    std::uint64_t beats = 0;
    std::uint64_t look = 0;
    Clock::time_point heard = {};  ///< 0: never
    bool is_lost = false;
  };

  bool is_on_this_host(int pe) const { return pe / setup_.host_size == me_ / setup_.host_size; }
  void read_pulses(Clock::time_point now);
  void report_silence(Clock::time_point now);
  Known& known(int pe) { return known_[static_cast<std::size_t>(pe)]; }

  const Heartbeat setup_;
  const std::chrono::duration<double> silence_;
  const int pes_;
  const int me_;
  std::vector<Known> known_;       // by PE
  Clock::time_point beaten_ = {};  // when the last heartbeat was due
  Clock::time_point looked_ = {};  // when the wait words were last read
  Clock::time_point read_ = {};    // when the pulses were last read
  std::uint64_t look_ = 0;         // value of the last heartbeat
};

}  // namespace tandem::wire
