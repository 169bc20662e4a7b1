#include "base/fiber/fiber.h"

#include <cxxabi.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "tandem/error.h"

namespace tandem {
namespace {

thread_local Fiber* running = nullptr;
std::terminate_handler other_handler = nullptr;

}  // namespace

Fiber* Fiber::current() { return running; }

bool Fiber::unwinding() { return running != nullptr && running->unwinding_; }

void Fiber::start(StackPool& pool, Entry entry, void* argument) {
  abandon();
  stack_ = pool.take();
  pool_ = &pool;
  entry_ = entry;
  argument_ = argument;
  unwinding_ = false;
  other_record_ = {};
  switch_.prepare(stack_, &Fiber::main, this);
  state_ = State::kReady;
}

void Fiber::main(void* fiber) {
  auto& self = *static_cast<Fiber*>(fiber);
  try {
    self.entry_(self.argument_);
  } catch (const ForcedUnwind&) {
  } catch (...) {
    self.error_ = std::current_exception();
  }
  self.state_ = State::kFinished;
  self.switch_.leave_for_good();
}

void Fiber::switch_in() {
  // The address is a property of the thread; asking each time costs as much as the switch itself.
  thread_local auto* const thread_record = reinterpret_cast<ExceptionRecord*>(abi::__cxa_get_globals());
  ExceptionRecord& record = *thread_record;
  Fiber* const outer = std::exchange(running, this);
  state_ = State::kRunning;
  std::swap(record, other_record_);
  switch_.enter();
  std::swap(record, other_record_);
  running = outer;
}

void Fiber::resume() {
  if (state_ != State::kReady && state_ != State::kSuspended) {
    throw CheckFailed(state_ == State::kRunning ? "a fiber that is running was resumed"
                                                : "a fiber that is finished or was never started was resumed");
  }
  switch_in();
  if (!StackPool::intact(stack_)) {
    pool_->mark_damaged();
    stack_ = {};  // it may not be used again
    state_ = State::kFinished;
    error_ = nullptr;
    throw CheckFailed("stack overflow of fiber: more than its " + std::to_string(pool_->stack_bytes()) +
                      " bytes were used; keep large objects off the stack or make the stacks larger");
  }
  if (state_ == State::kFinished) {
    abandon();
    if (error_ != nullptr) std::rethrow_exception(std::exchange(error_, nullptr));
  }
}

void Fiber::suspend() {
  Fiber& self = *running;
  self.state_ = State::kSuspended;
  self.switch_.leave();
  if (self.unwinding_) throw ForcedUnwind{};
}

void Fiber::on_terminate() {
  if (unwinding() && std::current_exception() != nullptr) {
    abi::__cxa_end_catch();  // what nothing may pass: the fiber is abandoned there
    running->state_ = State::kFinished;
    running->switch_.leave_for_good();
  }
  if (other_handler != nullptr) other_handler();
  std::abort();
}

void Fiber::unwind() {
  // A fiber may have been suspended by a destructor, which no exception leaves.
  static const bool installed = (other_handler = std::set_terminate(&Fiber::on_terminate), true);
  static_cast<void>(installed);
  unwinding_ = true;
  const bool trusted = !(stack_.canary && pool_->damaged());
  // Code that swallowed ForcedUnwind may suspend again: it gets another one.
  while (state_ == State::kSuspended && trusted) resume();
  abandon();
}

void Fiber::abandon() noexcept {
  if (stack_.low != nullptr) pool_->give_back(stack_);
  stack_ = {};
  state_ = State::kFinished;
}

}  // namespace tandem
