#include "bindings/nccl/communicator.h"

#include <fmt/format.h>

#include <algorithm>

#include "bindings/nccl/messages.h"
#include "bootstrap/local/local_rendezvous.h"
#include "bootstrap/rendezvous/id_contents.h"
#include "world/device/devices.h"

namespace tandem::nccl {

namespace {

/// As good as for ever: NCCL's waits do not end by themselves.
constexpr double kForever = 1e6;
constexpr Size kMiB = Size{1} << 20;

bool has_gpus() { return world::devices_of(std::nullopt).kind() == DeviceKind::kGpu; }

/// The library commits memory of CPUs when it clears staging, so that communicators there take little.
Size staging_bytes() { return (has_gpus() ? 16 : 4) * kMiB; }

}  // namespace

bootstrap::Key lineage_of(const UniqueId& id) { return bootstrap::derive({}, "nccl communicator", View(id.bytes())); }

WorldOptions Communicator::world_options() const {
  world::Devices& devices = world::devices_of(std::nullopt);
  devices.require_any();
  constexpr Size for_plans = 8 * kMiB, messages_of_a_pair = Size{256} << 10;
  constexpr Size for_one_rank = 3 * kMiB / 2;
  WorldOptions options;
  options.kind = devices.kind();
  options.device = device_ ? *device_ : devices.current();
  options.heap_bytes =
      ranks_ == 1 ? for_one_rank : 2 * staging_bytes() + for_plans + messages_of_a_pair * std::max(ranks_, 64);
  options.heap_limit_bytes = Size{16} << 30;
  options.timeout_s = kForever;
  options.arrival_timeout_s = kForever;
  options.join_timeout_s = kForever;
  return options;
}

void Communicator::join(const UniqueId& id, const bootstrap::Key& lineage) {
  start(std::make_unique<WorldProcess>(id, rank_, ranks_, world_options()), lineage);
}

void Communicator::start(std::unique_ptr<WorldProcess> process, const bootstrap::Key& lineage) {
  c::Controls controls;
  rank_ = process->pe();
  ranks_ = process->pes();
  // One rank has no kernels, and its staging is the least that there can be.
  controls.max_blocks = ranks_ == 1 ? 1 : std::min(settings_.max_blocks, process->world().machine().gpu.sm_count);
  device_ = process->device();
  // Buffers of some ranks may lie in windows and those of others elsewhere.
  constexpr bool any_memory = true;
  auto made = std::make_unique<c::CWorld>(std::move(process), ranks_ == 1 ? 0 : staging_bytes(), any_memory, controls);
  const std::lock_guard lock(mutex_);
  if (made->kind() == DeviceKind::kHost) own_stream_ = made->process().world().make_stream("nccl");
  lineage_ = lineage;
  world_ = std::move(made);
  if (phase_ == Phase::kAborted) {
    world_->process().abort("aborted while it was made");
    throw Failed(ncclInternalError, "the communicator was aborted while it was made");
  }
  phase_ = Phase::kReady;
}

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

bootstrap::Key Communicator::derived(const std::string& purpose) const {
  return bootstrap::derive(lineage_, "nccl " + purpose);
}

void Communicator::split(int color, int key, Communicator& part) {
  const std::lock_guard lock(running_);
  part.device_ = *device_;
  part.ranks_ = ranks_;  // at most; the world says how many
  auto process = world().process().split(color, key, part.world_options());
  const bootstrap::Key lineage = derived(fmt::format("split {} {}", splits_++, color));
  if (process != nullptr) return part.start(std::move(process), lineage);
  const std::lock_guard part_lock(part.mutex_);
  part.phase_ = Phase::kNone;
}

void Communicator::shrink(const std::vector<int>& excluded, Communicator& rest) {
  const std::lock_guard lock(running_);
  std::string list;
  for (const int rank : excluded) list += fmt::format(" {}", rank);
  const bootstrap::Key job = derived(fmt::format("shrink {}:{}", shrinks_[list]++, list));
  rest.device_ = *device_;
  const auto meet = [&] {
    if (rest.rank_ != 0) return bootstrap::take_id(job, rest.rank_, rest.ranks_, bootstrap::Deadline(kForever));
    if (rest.ranks_ == 1) return UniqueId::create();
    return bootstrap::open_rendezvous("127.0.0.1", bootstrap::random_key(), bootstrap::open_hand_off(job, rest.ranks_));
  };
  rest.join(meet(), job);
}

/// The rank that makes the id hands it out as number 0, all others ask for it as their rank + 1.
UniqueId Communicator::id_to_grow() {
  const std::lock_guard lock(running_);
  check_usable();
  const bootstrap::Key job = derived(fmt::format("grow {}", grown_));
  const UniqueId id =
      bootstrap::open_rendezvous("127.0.0.1", bootstrap::random_key(), bootstrap::open_hand_off(job, ranks_ + 1));
  grow_id_ = id;
  return id;
}

void Communicator::grow(Communicator& grown) {
  const std::lock_guard lock(running_);
  check_usable();
  const bootstrap::Key job = derived(fmt::format("grow {}", grown_++));
  grown.device_ = *device_;
  const std::optional<UniqueId> own = std::exchange(grow_id_, std::nullopt);
  const UniqueId id = own ? *own : bootstrap::take_id(job, rank_ + 1, ranks_ + 1, bootstrap::Deadline(kForever));
  grown.join(id, lineage_of(id));
}

void Communicator::run(Work& work) {
  const std::lock_guard lock(running_);
  {
    const std::lock_guard state_lock(mutex_);
    check_phase();
    ++calls_;  // from here on an abort waits for this call
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
  c::CWorld& here = world();
  const world::CurrentDevice current(world::devices_of(here.kind()), here.device());
  has_called_ = true;
  try {
    for (CollectiveCall& call : work.collectives) run_collective(call);
    if (!work.messages.empty()) run_messages(work.messages);
    if (own_stream_) here.synchronize(own_stream_->native());
  } catch (...) {
    // A lost peer or an abort, as NCCL names it; a rank's own mistake keeps its code.
    const Problem problem = problem_now();
    if (problem.result == ncclInternalError && !here.process().failure().empty())
      throw Failed(ncclRemoteError, problem.text);
    throw;
  }
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
  world().in_order(call.stream, [&](bool) { world().borrow_stream(call.stream).copy_async(out, in, bytes); });
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
    void* const stream = stream_of(sends[i]->stream);
    world().in_order(stream, [&](bool) {
      world().borrow_stream(stream).copy_async(receives[i]->data, sends[i]->data, sends[i]->bytes);
    });
  }
}

void Communicator::run_messages(const std::vector<Message>& messages) {
  copy_own(messages);
  void* const stream = stream_of(messages.front().stream);
  for (const MessageRound& round : rounds_of(messages, rank_, ranks_))
    world().send_recv(round.sends, round.receives, {}, stream);
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
  c::CWorld& here = world();
  if (!own_stream_) {  // on CPUs every call has ended
    const world::CurrentDevice current(world::devices_of(here.kind()), here.device());
    world::devices_of(here.kind()).wait_until_idle(here.device());
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
  return world_ != nullptr && world_->kind() == DeviceKind::kHost;
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

void* Communicator::add_range(const Range& range) {
  auto handle = std::make_unique<char>();
  void* const address = handle.get();
  const std::lock_guard lock(mutex_);
  ranges_.emplace(address, std::pair(std::move(handle), range));
  return address;
}

std::optional<Communicator::Range> Communicator::range(const void* handle, bool is_window) {
  const std::lock_guard lock(mutex_);
  const auto found = ranges_.find(handle);
  if (found == ranges_.end() || found->second.second.is_window != is_window) return std::nullopt;
  return found->second.second;
}

bool Communicator::remove_range(const void* handle, bool is_window) {
  if (!range(handle, is_window)) return false;
  const std::lock_guard lock(mutex_);
  return ranges_.erase(handle) == 1;
}

}  // namespace tandem::nccl
