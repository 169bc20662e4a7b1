#include "host/worker.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "host/bell.h"
#include "host/processors.h"

namespace tandem::host {

namespace {

/// Polls before a thread sleeps. It does not yield its processor in between: on a busy machine each yield may cost a
/// time slice. A thread that a futex wakes runs soon (bench/host_engine), but an idle processor takes some 50 us.
constexpr int kLeastSpins = 100;
constexpr int kMostSpins = 1000;
/// Passes of a busy thread after which it checks its waits for aborts and timeouts.
constexpr int kPassesBetweenWatches = 1024;

StackPool& stacks() {
  thread_local StackPool pool;
  return pool;
}

/// The number of polls of a thread's next wait. A long poll is wasted if the awaited PE needs this processor. If most
/// of them are, few waits try one.
class Spins {
 public:
  int next() {
    if (short_ones_ == 0) return kMostSpins;
    --short_ones_;
    return kLeastSpins;
  }
  void note_long_poll(bool is_answered) {
    constexpr int kMostUnanswered = 7;
    unanswered_ = std::clamp(unanswered_ + (is_answered ? -1 : 1), 0, kMostUnanswered);
    short_ones_ = unanswered_ > 1 ? 1 << unanswered_ : 0;
  }

 private:
  int unanswered_ = 0;  // long polls that were wasted, less those that were answered
  int short_ones_ = 0;  // waits until the next long poll
};

Spins& spins() {
  thread_local Spins spins;
  return spins;
}

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

void Strand::suspend() {
  Fiber::suspend();
  wait_ = nullptr;
  looks_ = false;
  if (is_over_) throw WaitIsOver{};
}

void Strand::await(Wait& wait) {
  if (wait.is_answered() || Fiber::unwinding()) return acted();
  wait_ = &wait;
  suspend();
  acted();
}

void Strand::look_again(const Awaited& looked_at) {
  if (Fiber::unwinding()) return;
  looks_ = true;
  looked_at_ = looked_at;
  suspend();
}

void Strand::run(void* strand) {
  try {
    auto& self = *static_cast<Strand*>(strand);
    self.body_(self);
  } catch (const WaitIsOver&) {
  }
}

Worker::Worker(const cuda::Context& context, const std::atomic<bool>* stop)
    : context_(context), stop_(stop), has_processors_(context.world_pes <= processors()) {}

Worker::~Worker() { unwind_all(); }

void Worker::add(std::function<void(Strand&)> body) {
  strands_.push_back(std::make_unique<Strand>(*this, std::move(body)));
}

void Worker::run() {
  int idle = 0;
  for (int passes = 1; !strands_.empty() && !is_stopped(); ++passes) {
    const bool has_moved = pass();
    if (has_moved && idle > kLeastSpins && idle <= most_spins_) spins().note_long_poll(true);
    idle = has_moved ? 0 : idle + 1;
    if (passes % kPassesBetweenWatches == 0) watch();
    if (idle > 0 && pause(idle)) idle = 0;  // a strand that polls several words needs as many passes
  }
}

bool Worker::pass() {
  bool has_moved = false;
  bool has_ended = false;
  for (std::size_t i = 0; i < strands_.size(); ++i) {  // those that are added meanwhile too
    Strand& strand = *strands_[i];
    if (strand.wait_ != nullptr && !strand.is_over_ && !strand.wait_->is_answered()) continue;
    has_moved |= !strand.looks_ || strand.is_over_;
    resume(strand);
    has_ended |= strand.has_ended_;
  }
  if (has_ended) std::erase_if(strands_, [](const auto& strand) { return strand->has_ended_; });
  return has_moved;
}

void Worker::resume(Strand& strand) {
  if (!strand.has_begun_) {
    strand.has_begun_ = true;
    strand.fiber_.start(stacks(), &Strand::run, &strand);
  }
  strand.fiber_.resume();
  strand.has_ended_ = strand.fiber_.finished();
}

bool Worker::has_answer() const {
  return std::any_of(strands_.begin(), strands_.end(),
                     [](const auto& strand) { return strand->wait_ != nullptr && strand->wait_->is_answered(); });
}

bool Worker::pause(int times) {
  if (times == 1) most_spins_ = has_processors_ ? spins().next() : kLeastSpins;
  if (times <= most_spins_) {
    relax();
    return false;
  }
  if (times == kMostSpins + 1 && most_spins_ == kMostSpins) spins().note_long_poll(false);
  watch();
  set_bell(context_);
  return has_answer() || who_aborted(context_) != 0 || sleep_until_rung(context_);
}

void Worker::watch() {
  const std::uint64_t now = now_ns();
  for (const auto& strand : strands_) {
    if (strand->wait_ == nullptr && !strand->looks_) continue;
    const Awaited awaited = strand->awaited();
    if (awaited.word == nullptr) continue;
    if (strand->lasts_since_ == 0) strand->lasts_since_ = now;
    if (is_wait_over(context_, strand->lasts_since_, now, awaited)) strand->is_over_ = true;
  }
}

void Worker::unwind_all() {
  // The last one first: roles use what lies on their block's stack.
  for (auto at = strands_.rbegin(); at != strands_.rend(); ++at) {
    try {
      (*at)->fiber_.unwind();
    } catch (...) {
      // The grid has failed already with the error that is reported.
    }
  }
  strands_.clear();
}

void run_blocks(const cuda::Context& context, int blocks, const GridThreads& threads,
                const std::function<void(Strand&, int)>& body) {
  std::atomic<bool> has_failed{false};
  std::exception_ptr error;
  const auto run_part = [&](int part, int parts) {
    try {
      Worker worker(context, &has_failed);
      for (int i = part; i < blocks; i += parts) worker.add([&, i](Strand& strand) { body(strand, i); });
      worker.run();
    } catch (...) {
      if (!has_failed.exchange(true)) error = std::current_exception();
    }
  };
  const int most = std::min(threads.most, blocks);
  if (threads.crew == nullptr || most <= 1)
    run_part(0, 1);
  else
    threads.crew->run(most, run_part);
  if (error) std::rethrow_exception(error);
}

}  // namespace tandem::host
