#include "collectives/send_recv/group.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "collectives/plan/team_check.h"
#include "tandem/error.h"
#include "tandem/send_recv.h"

namespace tandem {

namespace {

using kernels::FewPairs;
using kernels::GroupPairs;

constexpr int kMostLanes = 64;
constexpr Size kMostSlotBytes = Size{1} << 20;
constexpr Size kMostPacketBytes = Size{2} << 10;  // what a role moves at once

/// Groups of blocks that serve different distances at once. Pairs at larger distances share them.
int groups_for(int pes) { return std::clamp(pes - 1, 1, 64); }

/// At most 64 channels with staging, and the blocks of the GPU if every PE sends to every other.
int lanes_for(int pes, int blocks) {
  const int blocks_of_group = std::max(1, std::min(64 / pes, blocks / groups_for(pes)));
  return std::clamp(64 / groups_for(pes), 1, kernels::SendRecvChannels::kLanesOfBlock * blocks_of_group);
}

/// Packets take up to twice the bytes, which costs processors more than the wait for a signal.
Size packet_bytes_for(Processor processor) { return processor == Processor::kGpu ? kMostPacketBytes : 0; }

void check_options(const SendRecvOptions& options) {
  if (options.lanes < 0 || options.lanes > kMostLanes)
    throw InvalidArgument(
        fmt::format("lanes: {} given to a send-receive group, allowed are 0 to {}", options.lanes, kMostLanes));
  if (options.blocks < 0)
    throw InvalidArgument(
        fmt::format("blocks: {} given to a send-receive group, allowed are at least 0", options.blocks));
  if (options.slots < 1 || options.slots > 1024)
    throw InvalidArgument(fmt::format("slots: {} given to a send-receive group, allowed are 1 to 1024", options.slots));
  if (options.slot_bytes < 16 || options.slot_bytes > kMostSlotBytes || options.slot_bytes % 16 != 0)
    throw InvalidArgument(
        fmt::format("slot_bytes: {} given to a send-receive group, allowed are multiples of 16 up to {}",
                    options.slot_bytes, kMostSlotBytes));
  if (const Size bytes = options.packet_bytes.value_or(0); bytes < 0 || bytes > kMostPacketBytes || bytes % 16 != 0)
    throw InvalidArgument(
        fmt::format("packet_bytes: {} given to a send-receive group, allowed are multiples of 16 up to {}", bytes,
                    kMostPacketBytes));
}

/// Checks one list and returns its indices sorted by `distance`, then by position in the list.
template <class List, class Distance>
std::vector<int> in_order(const char* what, const List& list, const Team& team, Distance distance) {
  std::vector<int> order;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto& message = list[i];
    if (message.peer < 0 || message.peer >= team.size)
      throw InvalidArgument(
          fmt::format("{} {}: peer {} given, allowed are 0 to {}", what, i, message.peer, team.size - 1));
    if (message.bytes < 0)
      throw InvalidArgument(fmt::format("{} {}: {} bytes given, must not be negative", what, i, message.bytes));
    if (message.bytes > 0 && message.data == nullptr)
      throw InvalidArgument(fmt::format("{} {}: {} bytes given without data", what, i, message.bytes));
    order.push_back(static_cast<int>(i));
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return distance(list[static_cast<std::size_t>(a)].peer) < distance(list[static_cast<std::size_t>(b)].peer);
  });
  return order;
}

}  // namespace

struct SendRecvGroup::State {
  World* world;
  Team team;
  Grid grid;
  kernels::SendRecvChannels channels;

  /// The lists are in order; `Kernel` has room for them.
  template <class Kernel, class Messages>
  void launch(Stream& stream, const Messages& messages) {
    typename Kernel::Args args{};
    static_cast<kernels::SendRecvChannels&>(args) = channels;
    for (std::size_t i = 0; i < messages.size(); ++i) std::tie(args.messages[i], args.numbers[i]) = messages[i];
    stream.launch<Kernel>(grid, args, team);
  }
};

SendRecvGroup::SendRecvGroup(World& world, const SendRecvOptions& options)
    : SendRecvGroup(world, options, world.team()) {}

SendRecvGroup::SendRecvGroup(World& world, const SendRecvOptions& options, const Team& team)
    : state_(std::make_unique<State>()) {
  check_options(options);
  kernels::check_team(world, team);
  const int lanes = options.lanes > 0
                        ? options.lanes
                        : lanes_for(team.size, options.blocks > 0 ? options.blocks : world.machine().gpu.sm_count);
  const Size channels = Size{team.size - 1} * lanes;
  SymmetricHeap& heap = world.heap();
  state_->world = &world;
  state_->team = team;
  kernels::SendRecvChannels& args = state_->channels;
  args = {};
  args.lanes = lanes;
  args.slots = options.slots;
  args.slot_bytes = options.slot_bytes;
  args.packet_bytes = options.packet_bytes.value_or(packet_bytes_for(world.machine().processor));
  state_->grid = {groups_for(team.size) * args.blocks_of_group(), GroupPairs::kThreads};
  world.check_launch<GroupPairs>(state_->grid);
  args.staging = heap.allocate<std::byte>(channels * options.slots * options.slot_bytes, "send_recv staging").of(team);
  args.packets =
      heap.allocate<LLPacket>(channels * options.slots * packets_for<LLPacket>(args.packet_bytes), "send_recv packets")
          .of(team);
  args.heads = heap.signals(channels * options.slots, "send_recv heads").of(team);
  args.arrived = heap.signals(channels * options.slots, "send_recv arrived").of(team);
  // It is control memory, so that it exists even without data.
  args.sizes = heap.signals(channels * options.slots, "send_recv sizes").of(team).as<Epoch>();
  args.sizes_out = heap.allocate_local<Epoch>(channels * options.slots, "send_recv sizes to other nodes");
  args.credits = heap.signals(channels, "send_recv credits").of(team);
  args.sent = heap.allocate_local<Epoch>(channels, "send_recv sent");
  args.received = heap.allocate_local<Epoch>(channels, "send_recv received");
  args.mismatch = heap.allocate_local<Epoch>(kernels::Mismatch::kWords, "send_recv mismatch");
}

SendRecvGroup::SendRecvGroup(SendRecvGroup&&) noexcept = default;
SendRecvGroup& SendRecvGroup::operator=(SendRecvGroup&&) noexcept = default;
SendRecvGroup::~SendRecvGroup() = default;

void SendRecvGroup::run(Stream& stream, const std::vector<Send>& sends, const std::vector<Receive>& receives) {
  const Team& team = state_->team;
  if (sends.size() + receives.size() > kMostMessages)
    throw InvalidArgument(fmt::format("send-receive group: {} sends and {} receives given, allowed are {} in all",
                                      sends.size(), receives.size(), kMostMessages));
  const auto send_order =
      in_order("send", sends, team, [&](int peer) { return (peer - team.me + team.size) % team.size; });
  const auto receive_order =
      in_order("receive", receives, team, [&](int peer) { return (team.me - peer + team.size) % team.size; });
  const auto own = [&](const auto& list) {
    return std::count_if(list.begin(), list.end(), [&](const auto& message) { return message.peer == team.me; });
  };
  if (own(sends) != own(receives))
    throw InvalidArgument(fmt::format(
        "send-receive group: {} sends to PE {} itself and {} receives from it given, allowed are equally many",
        own(sends), team.me, own(receives)));
  state_->channels.sends = static_cast<int>(sends.size());
  state_->channels.receives = static_cast<int>(receives.size());
  std::vector<std::pair<kernels::Message, int>> messages;
  const auto add = [&](int number, int peer, void* data, Size bytes) {
    messages.push_back({{static_cast<std::byte*>(data), bytes, peer}, number});
  };
  for (int i : send_order) {
    const Send& send = sends[static_cast<std::size_t>(i)];
    add(i, send.peer, const_cast<void*>(send.data), send.bytes);  // the kernel only reads data that it sends
  }
  for (int i : receive_order) {
    const Receive& receive = receives[static_cast<std::size_t>(i)];
    add(i, receive.peer, receive.data, receive.bytes);
  }
  if (messages.size() <= FewPairs::kMostMessages)
    state_->launch<FewPairs>(stream, messages);
  else
    state_->launch<GroupPairs>(stream, messages);
}

int SendRecvGroup::blocks() const { return state_->grid.blocks; }

void SendRecvGroup::check(Stream& stream) {
  using kernels::Mismatch;
  stream.synchronize();
  Epoch words[Mismatch::kWords];
  state_->world->copy_out(words, state_->channels.mismatch, sizeof words);
  if (words[Mismatch::kCount] == 0) return;
  throw CheckFailed(
      fmt::format("send-receive group: PE {} sent PE {} another size than its receive {} expects: {} bytes, not {}",
                  words[Mismatch::kSender], state_->team.me, words[Mismatch::kReceive], words[Mismatch::kCame],
                  words[Mismatch::kExpected]));
}

}  // namespace tandem
