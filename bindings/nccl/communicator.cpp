#include "bindings/nccl/communicator.h"

#include <fmt/format.h>

#include <utility>

#include "bindings/nccl/communicator/simulate.h"
#include "bindings/nccl/fallback.h"
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

std::optional<ncclComm_t> Communicator::take_real() {
  const std::lock_guard lock(mutex_);
  return std::exchange(real_, std::nullopt);
}

double Communicator::simulate(const Work& work) {
  check_usable();
  return world_ == nullptr || ranks_ == 1 ? 0 : predicted_us(work, world_->process().world().machine(), rank_, ranks_);
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
  // The program ended this communicator before the real NCCL had made its own.
  if (const auto real = take_real()) forwarded<decltype(ncclCommAbort)>("pncclCommAbort", ncclInvalidUsage, *real);
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
