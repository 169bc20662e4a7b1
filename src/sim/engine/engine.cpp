#include "sim/engine/engine.h"

#include <algorithm>

#include "tandem/error.h"

namespace tandem::sim {

namespace {

/// Tie-break of the n-th event under a seed: splitmix64's finaliser (Steele, Lea and Flood 2014).
std::uint32_t tie_of(std::uint64_t seed, std::uint64_t n) {
  std::uint64_t z = seed * 0x9E3779B97F4A7C15ULL + n;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return static_cast<std::uint32_t>(z >> 32);
}

/// Host programs may call anything; kernels keep to what a GPU thread has.
constexpr Size kHostStackBytes = Size{1} << 20;

}  // namespace

Engine::Engine(std::uint64_t seed) : seed_(seed), host_stacks_(kHostStackBytes) {}
Engine::~Engine() { unwind_all(); }

void Engine::at(Time time, void (*function)(void*), void* argument) {
  const std::uint64_t n = sequence_++;
  // Ties go by the seed; the sequence makes the order total.
  const std::uint64_t order = (std::uint64_t{tie_of(seed_, n)} << 32) | (n & 0xFFFF'FFFF);
  queue_.push({std::max(time, now_), order, function, argument});
}

Actor& Engine::spawn(Time time, Actor::Body body, bool is_host) {
  actors_.push_back(std::make_unique<Actor>(*this, spawned_++, std::move(body)));
  Actor& actor = *actors_.back();
  actor.fiber_.start(is_host ? host_stacks_ : stacks_, &Engine::run_body, &actor);
  wake(actor, time);
  return actor;
}

void Engine::run_body(void* argument) { static_cast<Actor*>(argument)->body_(); }

void Engine::sleep_until(Time time) {
  // No other fiber acts before that time: the clock moves on without leaving the fiber.
  if (queue_.empty() || queue_.front().time > time || Fiber::unwinding()) {
    now_ = std::max(now_, time);
    return;
  }
  wake(*current_, time);
  Fiber::suspend();
}

void Engine::block(std::function<std::string()> waits_for) {
  if (Fiber::unwinding()) return;
  current_->waits_for = std::move(waits_for);
  Fiber::suspend();
  current_->waits_for = nullptr;
}

void Engine::mark_woken(Actor& actor) {
  if (actor.waking_) throw CheckFailed("internal: " + (actor.name ? actor.name() : "an actor") + " was woken twice");
  actor.waking_ = true;
}

void Engine::wake(Actor& actor, Time time) {
  mark_woken(actor);
  at(time, &Engine::resume_event, &actor);
}

void Engine::wake_first(Actor& actor) {
  mark_woken(actor);
  queue_.push({now_, woken_first_++, &Engine::resume_event, &actor});
}

void Engine::resume_event(void* argument) {
  Actor& actor = *static_cast<Actor*>(argument);
  actor.waking_ = false;
  actor.engine_.resume(actor);
}

void Engine::resume(Actor& actor) {
  Actor* const previous = current_;
  current_ = &actor;
  try {
    actor.fiber_.resume();
  } catch (...) {
    if (!error_ && actor.name) failed_actor_ = actor.name();
    fail(std::current_exception());
  }
  current_ = previous;
  if (actor.fiber_.finished()) {
    actor.finished_ = true;
    ++finished_;
    actor.body_ = nullptr;
    actor.name = nullptr;
    const auto on_finish = std::move(actor.on_finish);
    actor.on_finish = nullptr;
    if (on_finish && !error_) on_finish();
  }
}

void Engine::fail(std::exception_ptr error) {
  if (!error_) error_ = std::move(error);
}

void Engine::forget_finished() {
  constexpr std::size_t few = 1024;
  if (finished_ < few || finished_ < actors_.size() / 2) return;
  std::erase_if(actors_, [](const auto& actor) { return actor->finished_; });
  finished_ = 0;
}

void Engine::run() {
  while (!queue_.empty() && !error_) {
    forget_finished();
    const Event event = queue_.pop();
    now_ = event.time;
    try {
      event.function(event.argument);
    } catch (...) {  // on the scheduler itself: what a stream does next, a block that starts
      fail(std::current_exception());
    }
  }
  if (!error_) {
    std::vector<const Actor*> blocked;
    for (const auto& actor : actors_)
      if (!actor->finished_) blocked.push_back(actor.get());
    if (!blocked.empty())
      error_ = std::make_exception_ptr(Deadlock(
          describe_deadlock ? describe_deadlock(blocked) : "deadlock: actors are blocked and no event is left"));
  }
  if (error_) {
    unwind_all();
    std::rethrow_exception(error_);
  }
}

void Engine::unwind_all() {
  if (before_unwinding) before_unwinding();
  // The last one first: roles use what lies on their block's stack, and kernels what lies on their host program's.
  for (auto at = actors_.rbegin(); at != actors_.rend(); ++at) {
    Actor& actor = **at;
    if (actor.finished_) continue;
    current_ = &actor;
    try {
      actor.fiber_.unwind();
    } catch (...) {
      // The run has failed already with the error that is reported.
    }
    actor.finished_ = true;
  }
  current_ = nullptr;
}

}  // namespace tandem::sim
