#include "sim/transfer/stream.h"

#include <fmt/format.h>

#include <algorithm>

#include "gemm/contract/skinny.h"
#include "sim/device/block_core.h"
#include "sim/device/gemm_kernel.h"
#include "sim/device/kernel.h"
#include "tandem/error.h"

namespace tandem::sim {

namespace {
constexpr const char* kEventName = "event";
/// The most blocks of a grid, far more than any machine runs at once. Waiting blocks take memory, so there is a limit.
constexpr int kMostBlocks = 1 << 20;
/// The most registers that a thread can have (255), by the 32 that each has where threads fill an SM.
constexpr int kMostRegisters = 8;
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
  const char* const other = begin_     ? "may not start: kernels of a PE run one at a time"
                            : running_ ? "is not finished"
                                       : "may not start: streams share a hardware queue";
  std::string text = fmt::format("PE {} stream {}: {} {}", pe_, name_, work_.front().name,
                                 waiting_ ? sim_.signals.describe(wait_) : other);
  for (const Work& work : work_)
    if (work.kernel != nullptr && work.kernel->holds_places())
      text += fmt::format("; {} behind it has taken its places (programmatic dependent launch)", work.name);
  return text;
}

void SimStream::enqueue(std::string name, std::function<void()> start, std::shared_ptr<Kernel> kernel) {
  if (sim_.engine.current() == nullptr)
    throw InvalidArgument(fmt::format("stream {}: {} given, allowed within a host program's run alone", name_, name));
  if (Fiber::unwinding()) return;  // nothing is run any more
  if (sim_.seams.monitor != nullptr) sim_.seams.monitor->enqueue(thread_);
  used_ = used_ || name != kEventName;
  if (shares_queue()) device().queue.push_back(this);
  if (kernel != nullptr && runs_one_kernel()) device().kernels.push_back(this);
  work_.push_back({std::move(name), std::move(start), std::move(kernel)});
  if (!running_) start_next();
  if (lets_next_) place_next();
}

void SimStream::enqueue_kernel(KernelRequest request) {
  request.stream = thread_;
  request.on_let_next = [this] {
    lets_next_ = true;
    place_next();
  };
  request.on_finish = [this](Lane lane) {
    end_kernel();
    finish({pe_, lane, sim_.engine.now()});
  };
  const Time gap = sim_.graph ? sim_.costs.graph_gap : sim_.costs.kernel_gap;
  std::string name = request.name;
  auto kernel = std::make_shared<Kernel>(sim_, std::move(request));
  enqueue(
      std::move(name),
      [this, gap, kernel] {
        begin_kernel([this, gap, kernel] { after(gap, [this, kernel] { kernel->begin(last_); }); });
      },
      kernel);
}

bool SimStream::runs_one_kernel() const {
  return sim_.seams.schedule != nullptr && sim_.seams.schedule->runs_one_kernel();
}

void SimStream::begin_kernel(std::function<void()> begin) {
  if (!runs_one_kernel()) return begin();
  begin_ = std::move(begin);
  begin_oldest_kernel();
}

void SimStream::end_kernel() {
  if (!runs_one_kernel()) return;
  device().kernels.pop_front();
  if (!device().kernels.empty()) begin_oldest_kernel();
}

void SimStream::begin_oldest_kernel() {
  if (const auto begin = std::exchange(device().kernels.front()->begin_, nullptr)) begin();
}

void SimStream::start_next() {
  // Work that is done at once finishes within its own start: a loop, so that a long queue does not nest.
  starting_ = true;
  while (!work_.empty() && has_turn()) {
    const std::size_t left = work_.size();
    if (sim_.seams.monitor != nullptr) sim_.seams.monitor->begin_work(thread_);
    running_ = true;
    work_.front().start();
    if (!waiting_) pass_turn();
    if (work_.size() == left) break;
  }
  starting_ = false;
  if (!work_.empty()) return;
  for (Actor* actor : std::exchange(synchronizing_, {})) sim_.engine.wake(*actor, sim_.engine.now());
}

void SimStream::finish(const Cause& cause) {
  last_ = cause;
  running_ = false;
  lets_next_ = false;
  work_.pop_front();
  if (!starting_) start_next();
}

/// For a check: what a compiler may let a block take. Unless the kernel bounds registers, few warps of many registers
/// fill an SM.
int SimStream::most_room(const tandem::detail::KernelLaunch& kernel) const {
  const int all = sim_.machine.gpu.max_threads_per_sm;
  return std::max(kernel.grid.threads,
                  std::min(all / kernel.type->blocks_per_sm, kMostRegisters * kernel.grid.threads));
}

bool SimStream::places_early() const { return sim_.seams.schedule != nullptr && sim_.seams.schedule->places_early(); }

bool SimStream::shares_queue() const { return sim_.seams.schedule != nullptr && sim_.seams.schedule->has_one_queue(); }

bool SimStream::has_turn() const {
  return !shares_queue() || (!device().queue.empty() && device().queue.front() == this);
}

void SimStream::pass_turn() {
  if (!shares_queue()) return;
  device().queue.pop_front();
  if (device().queue.empty()) return;
  SimStream& next = *device().queue.front();
  if (next.starting_) return;  // it looks by itself
  if (!next.running_) next.start_next();
  if (next.lets_next_) next.place_next();
}

void SimStream::place_next() {
  if (!places_early() || !has_turn()) return;
  auto next = work_.begin() + 1;
  while (next != work_.end() && next->name == kEventName) ++next;
  if (next != work_.end() && next->kernel != nullptr) next->kernel->place();
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
        fmt::format("launch of {}: {} blocks given, at least 1 is needed", kernel.name(), kernel.grid.blocks));
  if (kernel.grid.blocks > kMostBlocks)
    throw InvalidArgument(fmt::format("launch of {}: {} blocks given, the simulator takes at most {}", kernel.name(),
                                      kernel.grid.blocks, kMostBlocks));
  if (kernel.grid.threads < 32 || kernel.grid.threads > std::min(1024, limits.max_threads_per_sm) ||
      kernel.grid.threads % 32 != 0)
    throw InvalidArgument(
        fmt::format("launch of {}: {} threads a block given, allowed are multiples of 32 from 32 to {}", kernel.name(),
                    kernel.grid.threads, std::min(1024, limits.max_threads_per_sm)));
}

void SimStream::launch(tandem::detail::KernelLaunch kernel) {
  check_launch(sim_.machine, kernel);
  const Team& team = kernel.team;
  if (team.me < 0)
    throw InvalidArgument(fmt::format("launch of {}: PE {} is not a member of the team", kernel.name(), pe_));
  if (team.world_pe(team.me) != pe_)
    throw InvalidArgument(fmt::format("launch of {}: a team seen from PE {} given to a stream of PE {}", kernel.name(),
                                      team.world_pe(team.me), pe_));
  KernelRequest request;
  request.name = kernel.name();
  request.pe = pe_;
  request.team = team;
  request.blocks = kernel.grid.blocks;
  request.threads = kernel.grid.threads;
  request.room = places_early() ? most_room(kernel) : kernel.grid.threads;
  request.epoch_first = kernel.type->epoch_first;
  request.startup = sim_.costs.kernel;
  request.body = [run = kernel.on_cpu(), holds_next = kernel.type->holds_next](Role& role) {
    if (!holds_next) role.let_next_start();
    BlockCore core(role);
    cpu::Block block(core);
    run(block);
  };
  enqueue_kernel(std::move(request));
}

void SimStream::gemm(const Gemm& gemm, const Team& team) {
  check_gemm(sim_, pe_, gemm, team);
  if (std::optional<KernelRequest> request = gemm_request(sim_, pe_, gemm, team)) enqueue_kernel(std::move(*request));
}

bool SimStream::adds_up(const Gemm& gemm) const { return skinny_suits(gemm, sim_.machine.gpu.sm_count); }

void SimStream::check_word(const char* call, const Signal* word) const {
  if (!sim_.is_usable(word, sizeof(Signal)))
    throw InvalidArgument(
        fmt::format("{}: {} given, allowed is a word of a PE's buffer", call, sim_.memory.describe(word)));
}

void SimStream::write_signal(Signal* word, const Epoch* from, Epoch value) {
  check_word("write_signal", word);
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
    const Time arrival =
        sim_.deliver(sim_.engine.now() + flag + sim_.late(Schedule::Point::kSignal, pe_), std::move(delivery));
    if (sim_.seams.schedule == nullptr) return finish(last_);
    // The signal may be late, and later work of the stream follows it.
    sim_.engine.spawn(arrival, [this] { finish(last_); });
  });
}

void SimStream::wait_signal(const Signal* word, Epoch value) {
  check_word("wait_signal", word);
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
      stream->pass_turn();
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
    // The capture is by address: the recording side keeps the event. One that held itself would leak if a run fails.
    const auto pass = [this, at = event.get()](const Cause& cause) {
      if (sim_.seams.monitor != nullptr) sim_.seams.monitor->wait_event(thread_, at);
      finish(cause);
    };
    if (event->done) return pass(last_.time < event->cause.time ? event->cause : last_);
    event->waiting.push_back([pass, at = event.get()] { pass(at->cause); });
  });
}

void SimStream::synchronize() {
  if (Fiber::unwinding()) return;
  if (!work_.empty()) {
    if (sim_.engine.current() == nullptr)
      throw InvalidArgument(
          fmt::format("stream {}: synchronize given, allowed within a host program's run alone", name_));
    synchronizing_.push_back(sim_.engine.current());
    sim_.engine.block([this] { return fmt::format("waits for stream {}", name_); });
  }
  if (sim_.seams.monitor != nullptr) sim_.seams.monitor->synchronize(thread_);
}

}  // namespace tandem::sim
