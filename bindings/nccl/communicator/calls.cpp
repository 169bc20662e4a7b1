// The calls of a group, on one rank: collectives in order, then messages, then one-sided calls.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include "bindings/nccl/communicator.h"
#include "bindings/nccl/messages.h"
#include "world/device/devices.h"

namespace tandem::nccl {

void Communicator::run(Work& work) {
  const std::lock_guard lock(running_);
  {
    const std::lock_guard state_lock(mutex_);
    check_phase();
    ++calls_;  // from here on an abort waits for this call
    slow_ = {"", std::chrono::steady_clock::now(), false};
  }
  const auto end = [this] {
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
    for (const c::Call& call : work.collectives) run_collective(call);
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
  for (const c::Call& call : work.collectives) run_collective(call);
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

/// The only rank's result is its input times the scalar. That takes a world, for its kernels.
void Communicator::multiply_alone(const c::Call& call) {
  if (world_ == nullptr) {
    auto made = opened(std::make_unique<WorldProcess>(UniqueId::create(), 0, 1, world_options()));
    const std::lock_guard lock(mutex_);
    if (made->kind() == DeviceKind::kHost) own_stream_ = made->process().world().make_stream("nccl");
    world_ = std::move(made);
    if (phase_ == Phase::kAborted) world_->process().abort("aborted while it was made");
  }
  c::Call here = call;
  here.stream = stream_of(call.stream);
  const world::CurrentDevice current(world::devices_of(world_->kind()), world_->device());
  world().run(here);
  if (own_stream_) world().synchronize(own_stream_->native());
}

void Communicator::run_collective(c::Call here) {
  here.stream = stream_of(here.stream);
  if (ranks_ == 1) return here.scale ? multiply_alone(here) : copy_whole(here);
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

}  // namespace tandem::nccl
