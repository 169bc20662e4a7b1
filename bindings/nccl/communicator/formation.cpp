// How communicators begin: the ranks meet, and make a world or a communicator of the real NCCL.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "bindings/nccl/communicator.h"
#include "bindings/nccl/communicator/slow_calls.h"
#include "bindings/nccl/fallback.h"
#include "bindings/nccl/handles.h"
#include "bootstrap/local/local_rendezvous.h"
#include "bootstrap/rendezvous/id_contents.h"
#include "bootstrap/rendezvous/world_member.h"
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
  constexpr Size for_plans = 4 * kMiB, part_of_messages = Size{192} << 10;  // staging of SendRecvGroup
  const int parts = has_gpus() ? std::max(ranks_, 64) : ranks_;
  WorldOptions options;
  options.kind = devices.kind();
  options.device = device_ ? *device_ : devices.current();
  options.heap_bytes = for_plans + part_of_messages * parts;
  options.heap_limit_bytes = Size{16} << 30;
  options.control_bytes = 8 * kMiB;
  options.timeout_s = kForever;
  options.arrival_timeout_s = kForever;
  options.join_timeout_s = kForever;
  return options;
}

/// Returns the world's process, or null if the ranks cannot be one. `why` is then the reason.
std::unique_ptr<WorldProcess> Communicator::make_world(const UniqueId& id, std::string& why) const {
  try {
    return std::make_unique<WorldProcess>(id, rank_, ranks_, world_options());
  } catch (const Unsupported& error) {
    why = error.what();
    return nullptr;
  }
}

/// Hands rank 0's bytes to all ranks.
Bytes Communicator::from_rank_0(bootstrap::WorldMember& meeting, const std::function<View()>& make) const {
  Bytes own;
  meeting.all_or_none("communicator", [&] {
    if (rank_ != 0) return;
    const View bytes = make();
    own.assign(bytes.begin(), bytes.end());
  });
  return meeting.all_gather(own, "communicator").front();
}

/// The ranks meet in a world of messages alone, which outlives a failure to make one of memory.
void Communicator::join(const UniqueId& id, const bootstrap::Key& lineage) {
  {
    const std::lock_guard lock(mutex_);
    lineage_ = lineage;
  }
  bootstrap::WorldMember meeting(id, rank_, ranks_, kForever);
  if (ranks_ == 1) return meeting.expect_end(), start(nullptr, lineage);
  std::optional<UniqueId> made;
  const Bytes of_world = from_rank_0(meeting, [&] {
    made = UniqueId::create(bootstrap::contents_of(id).address);
    static std::once_flag once;
    std::call_once(once, close_at_exit);
    return View(made->bytes());
  });
  std::string why;
  auto process = make_world(UniqueId::from_bytes(of_world), why);
  for (const Bytes& reason : meeting.all_gather(Writer().text(why).result(), "world"))
    if (why.empty()) why = Reader(reason).text();
  if (!why.empty()) join_real(meeting, why);
  meeting.expect_end();
  meeting.barrier("communicator is made");
  if (why.empty()) start(std::move(process), lineage);
}

/// Makes a communicator of the real NCCL. `why`: the reason why there is no world.
void Communicator::join_real(bootstrap::WorldMember& meeting, const std::string& why) {
  try {
    meeting.all_or_none("other NCCL", [] { open_real_library(); });
  } catch (const Unsupported& error) {
    throw Unsupported(fmt::format("{}; {}", why, error.what()));
  }
  ncclUniqueId id{};
  const Bytes bytes = from_rank_0(meeting, [&] {
    id = make_real_id();
    return View(reinterpret_cast<const std::byte*>(id.internal), sizeof(id.internal));
  });
  std::copy_n(bytes.begin(), std::min(bytes.size(), sizeof(id.internal)), reinterpret_cast<std::byte*>(id.internal));
  const int device = world_options().device;
  const world::CurrentDevice current(world::devices_of(std::nullopt), device);
  ncclComm_t made = nullptr;
  try {
    made = make_real(ranks_, id, rank_, settings_);
  } catch (const Failed& error) {
    throw Failed(error.result(), fmt::format("{}; {}", why, error.what()));
  }
  warn(carried_by(fmt::format("{}, because Tandem cannot serve it: {}", open_real_library(), why)));
  const std::lock_guard lock(mutex_);
  real_ = made;  // which ends with this communicator
  device_ = device;
  if (phase_ == Phase::kAborted) throw Failed(ncclInternalError, "the communicator was aborted while it was made");
  phase_ = Phase::kReady;
}

/// Returns the line that says, once for each communicator, which library carries it.
std::string Communicator::carried_by(const std::string& carrier) {
  return fmt::format("communicator {:016x}: rank {} of {} is carried by {}", hash(), rank_, ranks_, carrier);
}

std::unique_ptr<c::CWorld> Communicator::opened(std::unique_ptr<WorldProcess> process) const {
  const World& world = process->world();
  c::Controls controls;
  controls.orders_graphs = settings_.orders_graphs;
  controls.stages_when_needed = true;
  controls.max_blocks = std::min(settings_.max_blocks, world.machine().gpu.sm_count);
  if (settings_.uses_copy_engines && world.team().one_node() && world.machine().gpu.copy_engines > 0)
    for (const AlgorithmInfo& info : collective_algorithms()) {
      std::string& chosen = controls.algorithms[static_cast<std::size_t>(info.collective)];
      if (info.by_copy_engine && !reduces(info.collective) && chosen.empty()) chosen = info.name;
    }
  constexpr bool any_memory = false;  // windows are used in place
  return std::make_unique<c::CWorld>(std::move(process), staging_bytes(), any_memory, controls);
}

/// A world of null is that of one rank, whose calls are copies.
void Communicator::start(std::unique_ptr<WorldProcess> process, const bootstrap::Key& lineage) {
  std::unique_ptr<c::CWorld> made;
  if (process == nullptr) {
    device_ = std::max(world_options().device, 0);
    world::devices_of(std::nullopt).start(*device_);
  } else {
    rank_ = process->pe();
    ranks_ = process->pes();
    device_ = process->device();
    made = opened(std::move(process));
  }
  consumed_signals_.resize(static_cast<std::size_t>(ranks_) * kSignals);
  own_signals_.resize(kSignals);
  if (made != nullptr && made->kind() == DeviceKind::kHost)
    signals_ =
        made->process().world().heap().signals(ranks_ * static_cast<Size>(kSignals), "signals of one-sided calls");
  std::unique_lock lock(mutex_);
  if (made != nullptr) watch_calls();
  if (made != nullptr && made->kind() == DeviceKind::kHost) own_stream_ = made->process().world().make_stream("nccl");
  lineage_ = lineage;
  world_ = std::move(made);
  if (phase_ == Phase::kAborted) {
    if (world_ != nullptr) world_->process().abort("aborted while it was made");
    throw Failed(ncclInternalError, "the communicator was aborted while it was made");
  }
  phase_ = Phase::kReady;
  lock.unlock();
  inform(carried_by("Tandem"));
}

/// Returns a number that all ranks have in common, and that gives no secret away.
std::uint64_t Communicator::hash() {
  const std::lock_guard lock(mutex_);
  const bootstrap::Key key = derived("hash");
  std::uint64_t number = 0;
  std::memcpy(&number, key.data(), sizeof(number));
  return number;
}

bootstrap::Key Communicator::derived(const std::string& purpose) const {
  return bootstrap::derive(lineage_, "nccl " + purpose);
}

void Communicator::split(int color, int key, Communicator& part) {
  const std::lock_guard lock(running_);
  check_usable();
  part.device_ = *device_;
  part.ranks_ = ranks_;  // at most; the world says how many
  if (ranks_ == 1) {
    if (color != kNoColor) return part.start(nullptr, derived(fmt::format("split {} {}", splits_++, color)));
    const std::lock_guard part_lock(part.mutex_);
    part.phase_ = Phase::kNone;
    return;
  }
  auto process = world().process().split(color, key, part.world_options());
  const bootstrap::Key lineage = derived(fmt::format("split {} {}", splits_++, color));
  // A part of one rank needs no world.
  if (process != nullptr && process->pes() == 1)
    part.rank_ = 0, part.ranks_ = 1, process.reset();
  else if (process != nullptr)
    return part.start(std::move(process), lineage);
  if (color != kNoColor) return part.start(nullptr, lineage);
  const std::lock_guard part_lock(part.mutex_);
  part.phase_ = Phase::kNone;
}

void Communicator::shrink(const std::vector<int>& excluded, Communicator& rest) {
  const std::lock_guard lock(running_);
  {
    const std::lock_guard state_lock(mutex_);
    if (!device_) {
      check_phase();
      throw InvalidArgument("comm: the communicator was never ready");
    }
  }
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

}  // namespace tandem::nccl
