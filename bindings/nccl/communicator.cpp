#include "bindings/nccl/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include "bindings/nccl/communicator/simulate.h"
#include "bindings/nccl/messages.h"
#include "world/device/devices.h"

namespace tandem::nccl {

void Communicator::check_usable() {
  const std::lock_guard lock(mutex_);
  check_phase();
}

void Communicator::check_phase() const {
  switch (phase_) {
    case Phase::kReady:
      return;
    case Phase::kNew:
    case Phase::kNone:
      throw InvalidArgument("comm: the communicator is not ready; wait until ncclCommGetAsyncError gives ncclSuccess");
    case Phase::kSuspended:
      throw Failed(ncclInvalidUsage, "comm: the communicator is suspended; allowed are resume, abort and destroy");
    case Phase::kRevoked:
      throw Failed(ncclInvalidUsage, "comm: the communicator is revoked; allowed are shrink, abort and destroy");
    case Phase::kFinalized:
      throw InvalidArgument("comm: the communicator is finalized; allowed are abort and destroy");
    case Phase::kAborted:
      throw InvalidArgument("comm: the communicator is aborted");
  }
}

c::CWorld& Communicator::world() {
  check_usable();
  return *world_;
}

int Communicator::device() {
  check_usable();
  return *device_;
}

std::optional<ncclComm_t> Communicator::real() {
  const std::lock_guard lock(mutex_);
  return real_;
}

void Communicator::run(Work& work) {
  const std::lock_guard lock(running_);
  {
    const std::lock_guard state_lock(mutex_);
    check_phase();
    ++calls_;  // from here on an abort waits for this call
    slow_ = {"", std::chrono::steady_clock::now(), false};
  }
  const auto end = [this] {
    products_.clear();
    const std::lock_guard state_lock(mutex_);
    --calls_;
    changed_.notify_all();
  };
  try {
    run_calls(work);
  } catch (...) {
    end();
    throw;
  }
  end();
}

void Communicator::run_calls(Work& work) {
  if (ranks_ == 1) return run_alone(work);
  c::CWorld& here = world();
  const world::CurrentDevice current(world::devices_of(here.kind()), here.device());
  has_called_ = true;
  hide_freed();
  as_remote_if_lost([&] {
    for (CollectiveCall& call : work.collectives) run_collective(call);
    if (!work.messages.empty()) run_messages(work.messages);
    if (own_stream_) here.synchronize(own_stream_->native());
    for (const auto& call : work.one_sided) call();
  });
}

/// Names a lost peer or an abort as NCCL does. A rank's own mistake keeps its code.
void Communicator::as_remote_if_lost(const std::function<void()>& work) {
  try {
    work();
  } catch (...) {
    const Problem problem = problem_now();
    if (problem.result == ncclInternalError && !world_->process().failure().empty())
      throw Failed(ncclRemoteError, problem.text);
    throw;
  }
}

/// Runs the calls of one rank.
void Communicator::run_alone(Work& work) {
  for (CollectiveCall& call : work.collectives) run_collective(call);
  if (!work.messages.empty()) copy_own(work.messages);
  for (const auto& call : work.one_sided) call();
}

/// Copies between buffers of this rank.
void Communicator::copy(void* to, const void* from, Size bytes, void* stream) {
  if (ranks_ > 1)
    return world().in_order(stream, [&](bool) { world().borrow_stream(stream).copy_async(to, from, bytes); });
  world::Devices& devices = world::devices_of(std::nullopt);
  if (devices.kind() == DeviceKind::kHost) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
    return;
  }
  world::StreamUse use;
  use.device = *device_;
  devices.borrow_stream(use, stream, nullptr)->copy({}, to, from, bytes);
}

void* Communicator::stream_of(void* given) const { return own_stream_ ? own_stream_->native() : given; }

/// One rank's result is its input, whatever the call.
void Communicator::copy_whole(const c::Call& call) {
  const Size bytes = call.count * size_of(call.what.type);
  const auto* const in = static_cast<const std::byte*>(call.in);
  auto* const out = static_cast<std::byte*>(call.out);
  if (in == out) return;
  if (in < out + bytes && out < in + bytes)
    throw InvalidArgument(fmt::format("{}: sendbuff and recvbuff overlap, allowed are equal or separate buffers",
                                      name(call.what.collective)));
  copy(out, in, bytes, call.stream);
}

void Communicator::run_collective(CollectiveCall& call) {
  c::Call here = call.call;
  here.stream = stream_of(here.stream);
  if (call.scalar) {
    const Size count = input_elements(here.what.collective, here.count, ranks_, rank_, here.what.root);
    here.in = products_.emplace_back(premultiplied(*call.scalar, here.in, count)).data();
    here.what.op = ReduceOp::kSum;
  }
  if (ranks_ == 1) return copy_whole(here);
  // Some ranks have no use for one of the two buffers of other calls, which thus may lie elsewhere there.
  constexpr std::array in_place{Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter,
                                Collective::kAllToAll};
  here.any_memory = std::find(in_place.begin(), in_place.end(), here.what.collective) == in_place.end();
  world().run(here);
}

void Communicator::copy_own(const std::vector<Message>& messages) {
  std::vector<const Message*> sends, receives;
  for (const Message& message : messages)
    if (message.peer == rank_) (message.is_send ? sends : receives).push_back(&message);
  if (sends.size() != receives.size())
    throw Failed(ncclInvalidUsage,
                 fmt::format("group: rank {} sends itself {} messages and receives {}, allowed are as "
                             "many",
                             rank_, sends.size(), receives.size()));
  for (std::size_t i = 0; i < sends.size(); ++i)
    if (sends[i]->bytes != receives[i]->bytes)
      throw Failed(ncclInvalidUsage, fmt::format("group: rank {} sends itself {} bytes and receives {}, allowed are as "
                                                 "many",
                                                 rank_, sends[i]->bytes, receives[i]->bytes));
  for (std::size_t i = 0; i < sends.size(); ++i) {
    if (sends[i]->data == receives[i]->data) continue;
    copy(receives[i]->data, sends[i]->data, sends[i]->bytes, stream_of(sends[i]->stream));
  }
}

void Communicator::run_messages(const std::vector<Message>& messages) {
  copy_own(messages);
  void* const stream = stream_of(messages.front().stream);
  std::set<void*> others;
  for (const Message& message : messages) others.insert(stream_of(message.stream));
  others.erase(stream);
  // The order of calls lets the messages follow the work of all named streams, and later work follow the messages.
  const auto join_others = [&] {
    for (void* const other : others) world().in_order(other, [](bool) {});
  };
  join_others();
  for (const MessageRound& round : rounds_of(messages, rank_, ranks_))
    world().send_recv(round.sends, round.receives, {}, stream);
  join_others();
}

double Communicator::simulate(const Work& work) {
  check_usable();
  return world_ == nullptr ? 0 : predicted_us(work, world_->process().world().machine(), rank_, ranks_);
}

void Communicator::abort(const std::string& why) {
  const std::lock_guard lock(mutex_);
  phase_ = Phase::kAborted;
  if (world_ != nullptr) world_->process().abort(why);
}

void Communicator::stop(const std::string& why) {
  const std::lock_guard lock(mutex_);
  phase_ = Phase::kRevoked;
  if (world_ != nullptr) world_->process().abort(why);
}

void Communicator::finalize() {
  const std::lock_guard lock(running_);
  const int device = this->device();
  if (!is_on_cpus()) {  // on CPUs every call has ended
    world::Devices& devices = world::devices_of(std::nullopt);
    const world::CurrentDevice current(devices, device);
    devices.wait_until_idle(device);
  }
  const std::lock_guard state_lock(mutex_);
  phase_ = Phase::kFinalized;
}

Problem Communicator::state() {
  const std::lock_guard lock(mutex_);
  if (problem_.result != ncclSuccess) return problem_;
  // On a GPU a call that has returned may still run.
  const bool is_busy = uses_ > 0 || jobs_under_way_ > 0 || (has_called_ && !own_stream_);
  if (world_ != nullptr && phase_ == Phase::kReady && is_busy)
    if (const std::string failure = world_->process().failure(); !failure.empty()) return {ncclRemoteError, failure};
  return {jobs_under_way_ > 0 ? ncclInProgress : ncclSuccess, ""};
}

/// On CPUs a call lasts until it returns. On GPUs its kernels do, and the ranks' numbers of calls stay apart.
void Communicator::report_slow_call(double limit_s) {
  const std::lock_guard lock(mutex_);
  if (world_ == nullptr || phase_ != Phase::kReady || (own_stream_ && calls_ == 0)) return;
  const auto now = std::chrono::steady_clock::now();
  if (!own_stream_)
    if (std::string waits = world_->process().waits(); waits != slow_.waits) slow_ = {std::move(waits), now, false};
  if (slow_.is_reported || std::chrono::duration<double>(now - slow_.since).count() < limit_s) return;
  if (own_stream_ && slow_.waits.empty()) slow_.waits = world_->process().waits();
  // Without a wait on the device the hosts are at a meeting, whose coordinator reports it.
  if (slow_.waits.empty() || (own_stream_ && slow_.waits.starts_with(";"))) return;
  slow_.is_reported = true;
  last_text_ = fmt::format("rank {} of {} has waited for {} s: {}", rank_, ranks_, limit_s,
                           slow_.waits.substr(slow_.waits.starts_with("; ") ? 2 : 0));
  announce(last_text_);
}

ncclResult_t Communicator::keep(Problem problem, bool is_lasting) {
  reported(problem);
  const std::lock_guard lock(mutex_);
  last_text_ = problem.text;
  const ncclResult_t result = problem.result;
  if (is_lasting) problem_ = std::move(problem);
  return result;
}

std::string Communicator::last_problem() {
  const std::lock_guard lock(mutex_);
  return last_text_;
}

void Communicator::enter() {
  const std::lock_guard lock(mutex_);
  ++uses_;
}

void Communicator::leave() {
  const std::lock_guard lock(mutex_);
  --uses_;
  changed_.notify_all();
}

void Communicator::wait_for_calls() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return calls_ == 0; });
}

void Communicator::begin_job() {
  const std::lock_guard lock(mutex_);
  ++jobs_under_way_;
}

void Communicator::end_job() {
  const std::lock_guard lock(mutex_);
  --jobs_under_way_;
  changed_.notify_all();
}

bool Communicator::is_on_cpus() {
  const std::lock_guard lock(mutex_);
  return phase_ != Phase::kNew && !real_ && world::devices_of(std::nullopt).kind() == DeviceKind::kHost;
}

void Communicator::close() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return uses_ == 0 && jobs_under_way_ == 0; });
  }
  jobs_.wait_until_empty();
  if (world_ == nullptr) return;
  std::unique_ptr<world::CurrentDevice> current;
  try {
    current = std::make_unique<world::CurrentDevice>(world::devices_of(world_->kind()), world_->device());
  } catch (const RuntimeFailure&) {
    // Nothing has to be waited for on a device that is lost.
  }
  world_->process().leave();
  own_stream_.reset();
  const std::lock_guard lock(mutex_);
  world_.reset();
}

int Communicator::add_scalar(const Scalar& scalar) {
  const std::lock_guard lock(mutex_);
  scalars_.emplace(next_scalar_, scalar);
  return next_scalar_++;
}

std::optional<Scalar> Communicator::scalar(int number) {
  const std::lock_guard lock(mutex_);
  const auto found = scalars_.find(number);
  return found == scalars_.end() ? std::nullopt : std::optional(found->second);
}

bool Communicator::remove_scalar(int number) {
  const std::lock_guard lock(mutex_);
  return scalars_.erase(number) == 1;
}

}  // namespace tandem::nccl
