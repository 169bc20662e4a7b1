#pragma once
/// The engine: a virtual clock, a queue of events in a total order, and the actors that they wake.
///
/// Time is in integer picoseconds. Events are ordered by (time, seeded tie-break, sequence number). The same seed gives
/// the same order; another seed gives another legal order of simultaneous events. One OS thread runs it, without locks.

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

/// A host program, a thread block or a role of one, which runs on its own fiber and can wait.
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
  /// Returns the number of pending events.
  std::size_t pending() const { return queue_.size(); }

  /// Calls `function(argument)` at `time` (not before now).
  void at(Time time, void (*function)(void*), void* argument);

  /// Makes an actor that starts at `time`.
  Actor& spawn(Time time, Actor::Body body, bool is_host = false);

  /// Returns the running actor, or null on the scheduler.
  Actor* current() const { return current_; }
  /// Blocks the current actor until `time`. Returns at once while it is being unwound, so that destructors may wait.
  void sleep_until(Time time);
  /// Blocks the current actor until `wake` is called for it. Returns at once while it is being unwound.
  void block(std::function<std::string()> waits_for);
  /// Resumes a blocked actor at `time`.
  void wake(Actor& actor, Time time);
  /// Resumes a blocked actor now, before every event of this time, in the order of such calls. It counts as no event,
  /// so other events keep their numbers and their order.
  void wake_first(Actor& actor);

  /// Runs until no event is left. Rethrows the first exception that an actor or an event threw. If actors are still
  /// blocked, throws Deadlock with the report of `describe_deadlock`.
  void run();
  std::function<std::string(const std::vector<const Actor*>&)> describe_deadlock;
  /// Called when the run is over, before the objects on the actors' stacks are destroyed.
  std::function<void()> before_unwinding;

  /// Stops the run with an error, from anywhere.
  void fail(std::exception_ptr error);
  /// Returns the name of the actor that threw the first exception; empty if none did.
  const std::string& failed_actor() const { return failed_actor_; }

  /// Adds an operation to the trace hash, which covers in order the actor, kind, amount and time of each one.
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
  /// Frees finished actors from time to time, since a long run has very many. Must not be called while an actor runs.
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
  std::vector<std::unique_ptr<Actor>> actors_;  // in spawn order, with the finished ones
  std::uint32_t spawned_ = 0;
  std::size_t finished_ = 0;  // of actors_
  Actor* current_ = nullptr;
  std::exception_ptr error_;
  std::string failed_actor_;
};

}  // namespace tandem::sim
