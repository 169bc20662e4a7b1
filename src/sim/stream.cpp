#include "sim/stream.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/gemm_kernel.h"
#include "sim/kernel.h"
#include "tandem/error.h"

namespace tandem::sim {

namespace {
constexpr const char* kEventName = "event";
/// Those that wait for room take memory: more than any machine has by far.
constexpr int kMostBlocks = 1 << 20;
}  // namespace

SimStream::SimStream(Simulator& simulator, int pe, std::string name)
    : sim_(simulator),
      pe_(pe),
      name_(std::move(name)),
      thread_(sim_.seams.monitor == nullptr ? kNoThread : sim_.seams.monitor->add_stream(pe, name_)) {
  sim_.streams.push_back([this] { return describe(); });
}

Team SimStream::world_team() const { return sim_.world_team(pe_); }

std::string SimStream::describe() const {
  if (work_.empty()) return {};
  return fmt::format("PE {} stream {}: {} {}", pe_, name_, work_.front().name,
                     waiting_ ? sim_.signals.describe(wait_) : "is not finished");
}

void SimStream::enqueue(std::string name, std::function<void()> start) {
  if (sim_.engine.current() == nullptr)
    throw InvalidArgument(fmt::format("stream {}: {} given, allowed within a host program's run alone", name_, name));
  if (sim_.seams.monitor != nullptr) sim_.seams.monitor->enqueue(thread_);
  used_ = used_ || name != kEventName;
  work_.push_back({std::move(name), std::move(start)});
  if (work_.size() == 1) start_next();
}

void SimStream::start_next() {
  // Work that is done at once finishes within its own start: a loop, so that a long queue does not nest.
  starting_ = true;
  while (!work_.empty()) {
    const std::size_t left = work_.size();
    if (sim_.seams.monitor != nullptr) sim_.seams.monitor->begin_work(thread_);
    work_.front().start();
    if (work_.size() == left) break;
  }
  starting_ = false;
  if (!work_.empty()) return;
  for (Actor* actor : std::exchange(synchronizing_, {})) sim_.engine.wake(*actor, sim_.engine.now());
}

std::function<void(Lane)> SimStream::finish_kernel() {
  return [this](Lane lane) { finish({pe_, lane, sim_.engine.now()}); };
}

void SimStream::finish(const Cause& cause) {
  last_ = cause;
  work_.pop_front();
  if (!starting_) start_next();
}

void SimStream::after(Time delay, std::function<void()> then) {
  Actor& actor =
      sim_.engine.spawn(sim_.engine.now() + delay + sim_.late(Schedule::Point::kLaunch, pe_), std::move(then));
  actor.name = [this] { return fmt::format("PE {} stream {}", pe_, name_); };
}

void check_launch(const Machine& machine, const tandem::detail::KernelLaunch& kernel) {
  const auto& limits = machine.gpu;
  if (kernel.grid.blocks < 1)
    throw InvalidArgument(
        fmt::format("launch of {}: {} blocks given, at least 1 is needed", kernel.name, kernel.grid.blocks));
  if (kernel.grid.blocks > kMostBlocks)
    throw InvalidArgument(fmt::format("launch of {}: {} blocks given, the simulator takes at most {}", kernel.name,
                                      kernel.grid.blocks, kMostBlocks));
  if (kernel.grid.threads < 32 || kernel.grid.threads > std::min(1024, limits.max_threads_per_sm) ||
      kernel.grid.threads % 32 != 0)
    throw InvalidArgument(
        fmt::format("launch of {}: {} threads a block given, allowed are multiples of 32 from 32 to {}", kernel.name,
                    kernel.grid.threads, std::min(1024, limits.max_threads_per_sm)));
}

void SimStream::launch(tandem::detail::KernelLaunch kernel) {
  check_launch(sim_.machine, kernel);
  const Team& team = kernel.team;
  if (team.me < 0)
    throw InvalidArgument(fmt::format("launch of {}: PE {} is not a member of the team", kernel.name, pe_));
  if (team.world_pe(team.me) != pe_)
    throw InvalidArgument(fmt::format("launch of {}: a team seen from PE {} given to a stream of PE {}", kernel.name,
                                      team.world_pe(team.me), pe_));
  const Time gap = sim_.graph ? sim_.costs.graph_gap : sim_.costs.kernel_gap;
  std::string name = kernel.name;
  enqueue(std::move(name), [this, gap, kernel = std::move(kernel)] {
    after(gap, [this, kernel] {
      run_kernel(sim_, {.name = kernel.name,
                        .pe = pe_,
                        .team = kernel.team,
                        .blocks = kernel.grid.blocks,
                        .threads = kernel.grid.threads,
                        .stream = thread_,
                        .body =
                            [simulate = kernel.simulate](Role& role) {
                              Block block{BlockCore(role)};
                              simulate(block);
                            },
                        .cause = last_,
                        .on_finish = finish_kernel()});
    });
  });
}

void SimStream::gemm(const Gemm& gemm, const Team& team) {
  check_gemm(sim_, gemm);
  const Time gap = sim_.graph ? sim_.costs.graph_gap : sim_.costs.kernel_gap;
  enqueue("gemm", [this, gap, gemm, team] {
    after(gap, [this, gemm, team] { run_gemm(sim_, pe_, gemm, team, last_, thread_, finish_kernel()); });
  });
}

void SimStream::write_signal(Signal* word, const Epoch* from, Epoch value) {
  if (!sim_.memory.owns(word)) throw InvalidArgument("write_signal: the word must be memory of a PE");
  const int target = sim_.memory.pe_of(word);
  if (!sim_.topology.reachable(pe_, target))
    throw InvalidArgument(
        fmt::format("write_signal on PE {}: {} cannot be reached by stores", pe_, sim_.memory.describe(word)));
  enqueue("write_signal", [this, word, from, value, target, at = site] {
    const SignalUpdate update{word, from != nullptr ? *from : value, SignalOp::kSet};
    const Fault fault = sim_.fault(SyncOperation::kStreamSignal, at);
    if (fault == Fault::kDropped) return finish(last_);
    Delivery delivery = signal_delivery(update, {pe_, last_.lane, sim_.engine.now()});
    if (Monitor* const monitor = sim_.seams.monitor; monitor != nullptr) {
      if (from != nullptr) monitor->access(thread_, {AccessKind::kCopyEngineLoad, from, sizeof(Epoch)}, at);
      const Order order = fault == Fault::kRelaxed ? Order::kRelaxed : Order::kRelease;
      delivery.message = monitor->signal(thread_, update, order, target, true, at);
    }
    sim_.engine.trace(static_cast<std::uint32_t>(pe_), 101, static_cast<std::int64_t>(update.value));
    const Time flag = target == pe_ ? sim_.costs.local_flag : sim_.costs.flag;
    sim_.deliver(sim_.engine.now() + flag + sim_.late(Schedule::Point::kSignal, pe_), std::move(delivery));
    finish(last_);
  });
}

void SimStream::wait_signal(const Signal* word, Epoch value) {
  if (!sim_.memory.owns(word)) throw InvalidArgument("wait_signal: the word must be memory of a PE");
  enqueue("wait_signal", [this, word, value, at = site] {
    if (sim_.fault(SyncOperation::kStreamWait, at) == Fault::kDropped) return finish(last_);
    wait_ = {};
    wait_site_ = at;
    if (sim_.seams.monitor != nullptr) sim_.seams.monitor->begin_wait(thread_, word, 1, 1, Cmp::kGe, value, at);
    wait_.words = word;
    wait_.value = value;
    wait_.pe = pe_;
    if (wait_.advance()) {
      end_wait();
      return finish(last_);
    }
    waiting_ = true;
    wait_.argument = this;
    wait_.ready = [](void* argument) {
      auto* const stream = static_cast<SimStream*>(argument);
      stream->waiting_ = false;
      stream->end_wait();
      stream->finish(stream->wait_.released_by);
    };
    sim_.signals.add(wait_);
  });
}

void SimStream::end_wait() {
  if (sim_.seams.monitor == nullptr) return;
  sim_.seams.monitor->end_wait(thread_, wait_.words, 1, 1, wait_.cmp, wait_.value, Order::kAcquire, true, wait_site_);
}

std::shared_ptr<tandem::detail::EventState> SimStream::record() {
  auto event = std::make_shared<SimEvent>();
  event->of = &sim_;
  event->after_work = used_;
  enqueue(kEventName, [this, event] {
    event->done = true;
    event->cause = last_;
    if (sim_.seams.monitor != nullptr) sim_.seams.monitor->record_event(thread_, event.get());
    for (const auto& go_on : std::exchange(event->waiting, {})) go_on();
    finish(last_);
  });
  return event;
}

void SimStream::wait(const std::shared_ptr<tandem::detail::EventState>& state) {
  if (state == nullptr) throw InvalidArgument("wait: the event was never recorded");
  const auto event = std::dynamic_pointer_cast<SimEvent>(state);
  if (event == nullptr || event->of != &sim_)
    throw InvalidArgument("wait: an event of another simulation, or of GPUs, given");
  if (event->after_work && sim_.fault(SyncOperation::kEventWait, site) == Fault::kDropped) return;
  enqueue("wait for an event", [this, event] {
    // By address: whoever records the event keeps it. One that held itself would stay behind where a run fails.
    const auto pass = [this, at = event.get()](const Cause& cause) {
      if (sim_.seams.monitor != nullptr) sim_.seams.monitor->wait_event(thread_, at);
      finish(cause);
    };
    if (event->done) return pass(last_.time < event->cause.time ? event->cause : last_);
    event->waiting.push_back([pass, at = event.get()] { pass(at->cause); });
  });
}

void SimStream::synchronize() {
  if (!work_.empty()) {
    synchronizing_.push_back(sim_.engine.current());
    sim_.engine.block([this] { return fmt::format("waits for stream {}", name_); });
  }
  if (sim_.seams.monitor != nullptr) sim_.seams.monitor->synchronize(thread_);
}

}  // namespace tandem::sim
