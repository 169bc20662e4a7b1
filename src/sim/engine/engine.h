#pragma once
/// The simulator's heart: a virtual clock, a queue of events in a total order, and the actors that they wake.
///
/// Time is in integer picoseconds. Events are ordered by (time, seeded tie-break, sequence number): the same seed gives
/// the same order, another seed another legal order among simultaneous events. One OS thread; nothing here locks.

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/fiber/fiber.h"
#include "sim/engine/event_queue.h"

namespace tandem::sim {

inline constexpr Time kNanosecond = 1'000;
inline constexpr Time kMicrosecond = 1'000'000;

inline Time from_us(double us) { return static_cast<Time>(us * 1e6 + 0.5); }
inline double to_us(Time t) { return static_cast<double>(t) * 1e-6; }

class Engine;

/// Something that runs and can wait: a host program, a thread block, a role of one. One fiber each.
class Actor {
 public:
  using Body = std::function<void()>;

  Actor(Engine& engine, std::uint32_t id, Body body) : engine_(engine), id_(id), body_(std::move(body)) {}
  Actor(const Actor&) = delete;
  Actor& operator=(const Actor&) = delete;

  std::uint32_t id() const { return id_; }
  Engine& engine() const { return engine_; }
  bool finished() const { return finished_; }

  /// Describes what the actor is, for reports ("PE 3 block 2 of AllReduceRing").
  std::function<std::string()> name;
  /// Describes what it waits for while it is blocked; empty where it is not waiting for anybody.
  std::function<std::string()> waits_for;
  /// Runs on the scheduler when the body has returned.
  std::function<void()> on_finish;

 private:
  friend class Engine;
  Engine& engine_;
  std::uint32_t id_;
  Body body_;
  Fiber fiber_;
  bool finished_ = false;
  bool waking_ = false;  // a wake-up is in the queue
};

class Engine {
 public:
  explicit Engine(std::uint64_t seed);
  ~Engine();

  Time now() const { return now_; }
  std::uint64_t seed() const { return seed_; }
  std::uint64_t events() const { return sequence_; }
  /// How many events are still to come.
  std::size_t pending() const { return queue_.size(); }

  /// Calls `function(argument)` at `time` (not before now).
  void at(Time time, void (*function)(void*), void* argument);

  /// Makes an actor that starts at `time`.
  Actor& spawn(Time time, Actor::Body body, bool is_host = false);

  /// The actor that is running, or null on the scheduler.
  Actor* current() const { return current_; }
  /// The current actor goes on at `time`; at once where it is being unwound, so that destructors may wait.
  void sleep_until(Time time);
  /// The current actor waits until somebody calls `wake`; likewise.
  void block(std::function<std::string()> waits_for);
  /// A blocked actor goes on at `time`.
  void wake(Actor& actor, Time time);
  /// A blocked actor goes on now, before every event of this time, in the order of such calls. This is no event: other
  /// events keep their numbers, and so their order.
  void wake_first(Actor& actor);

  /// Runs until no event is left. Rethrows the first exception that left an actor or an event; throws Deadlock where
  /// actors are still blocked, with the report of `describe_deadlock`.
  void run();
  std::function<std::string(const std::vector<const Actor*>&)> describe_deadlock;
  /// The run is over, and what is left on the actors' stacks will be destroyed.
  std::function<void()> before_unwinding;

  /// Stops the run with an error, from anywhere.
  void fail(std::exception_ptr error);
  /// The name of the actor that the first exception left; empty where none did.
  const std::string& failed_actor() const { return failed_actor_; }

  /// Adds to the hash over everything that happened, in order: who, what, how much, when.
  void trace(std::uint32_t who, std::uint32_t what, std::int64_t amount) {
    mix(static_cast<std::uint64_t>(now_));
    mix((static_cast<std::uint64_t>(who) << 32) ^ what);
    mix(static_cast<std::uint64_t>(amount));
  }
  std::uint64_t trace_hash() const { return hash_; }

 private:
  void mix(std::uint64_t value) { hash_ = (hash_ ^ value) * 0x9E3779B97F4A7C15ULL ^ (hash_ >> 29); }
  static void mark_woken(Actor& actor);
  void resume(Actor& actor);
  void unwind_all();
  /// Frees actors that have finished, from time to time: a long run has very many. Not while one of them runs.
  void forget_finished();
  static void run_body(void* argument);
  static void resume_event(void* argument);

  std::uint64_t seed_;
  Time now_ = 0;
  std::uint64_t sequence_ = 0;
  std::uint32_t woken_first_ = 0;
  std::uint64_t hash_ = 0x243F6A8885A308D3ULL;
  EventQueue queue_;
  StackPool stacks_;
  StackPool host_stacks_;
  std::vector<std::unique_ptr<Actor>> actors_;  // as spawned; those that have finished are still among them
  std::uint32_t spawned_ = 0;
  std::size_t finished_ = 0;  // of actors_
  Actor* current_ = nullptr;
  std::exception_ptr error_;
  std::string failed_actor_;
};

}  // namespace tandem::sim
