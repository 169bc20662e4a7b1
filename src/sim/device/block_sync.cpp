/// The block's operations that synchronise: ordering, signals, atomics and packets.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "sim/device/block_core.h"
#include "tandem/error.h"

namespace tandem::sim {

namespace {

/// Refuses `n` words, one every `stride`, that this role cannot look at.
void check_words(const Role& role, const Signal* words, Size n, Size stride, const char* operation, Site site) {
  if (n < 0)
    throw InvalidArgument(
        fmt::format("{}:{}: {} of {} words, must not be negative", site.file, site.line, operation, n));
  if (n == 0) return;
  constexpr Size kMost = std::numeric_limits<Size>::max();
  const bool overflows = n - 1 > (kMost / Size{sizeof(Signal)} - 1) / stride;
  const Size bytes = overflows ? kMost : ((n - 1) * stride + 1) * Size{sizeof(Signal)};
  role.reachable_pe(words, bytes, operation, site);
  role.require_array(words, bytes, operation, site);
  role.require_contents(words, operation, site);
}

}  // namespace

void BlockCore::fence(Site site) {
  Role& role = *role_;
  if (role.fault(SyncOperation::kFence, site) == Fault::kDropped) return;
  const Time begin = role.engine().now();
  ++role.outstanding->fences;
  // Queue pairs keep their order by themselves; stores over links are waited for.
  role.end_accesses();
  role.report({.kind = OperationKind::kFence, .begin = begin}, site);
  if (role.sim.seams.monitor != nullptr) role.sim.seams.monitor->fence(role.thread, site);
}

void BlockCore::quiet(Site site) {
  Role& role = *role_;
  if (role.fault(SyncOperation::kQuiet, site) == Fault::kDropped) return;
  const Time begin = role.engine().now();
  role.wait_for_outstanding();
  role.report({.kind = OperationKind::kQuiet, .begin = begin}, site);
  if (role.sim.seams.monitor != nullptr) role.sim.seams.monitor->quiet(role.thread, site);
}

namespace {

SyncOperation operation_of(const SignalUpdate& update, Order order) {
  if (update.after_reads) return SyncOperation::kSignalAfterReads;
  return order == Order::kRelease ? SyncOperation::kNotify : SyncOperation::kSignal;
}

}  // namespace

void BlockCore::signal(const SignalUpdate& update, Order order, Site site) {
  Role& role = *role_;
  Engine& engine = role.engine();
  const Time begin = engine.now();
  role.end_local();
  const int target = role.owner_of(update.word, sizeof(Signal), "signal", site);
  role.require_contents(update.word, "signal", site);
  engine.trace(engine.current()->id(), kTraceSignal, static_cast<std::int64_t>(update.value));
  role.streaming = false;
  const Fault fault = role.fault(operation_of(update, order), site);
  if (fault == Fault::kDropped) return;
  SignalUpdate sent = update;
  if (fault != Fault::kNone) {
    order = Order::kRelaxed;
    sent.after_reads = fault == Fault::kReadsOnly;
  }
  const bool reachable = role.sim.topology.reachable(role.pe, target);
  Delivery delivery = signal_delivery(sent, role.cause());
  if (role.sim.seams.monitor != nullptr)
    delivery.message = role.sim.seams.monitor->signal(role.thread, sent, order, target, reachable, site);
  if (reachable) {
    const Time ready = order == Order::kRelaxed ? engine.now() : std::max(engine.now(), role.last_arrival);
    const Time flag = target == role.pe ? role.sim.costs.local_flag : role.sim.costs.flag;
    role.order_after(
        role.sim.deliver(ready + flag + role.sim.late(Schedule::Point::kSignal, role.pe), std::move(delivery)));
  } else {
    if (order == Order::kRelease) engine.sleep_until(std::max(engine.now(), role.last_arrival));
    engine.sleep_until(engine.now() + role.sim.costs.nic_issue);
    delivery.cause = role.cause();
    NicMessage message;
    message.from = role.pe;
    message.to = target;
    message.after_all = order == Order::kRelease;
    message.fences = role.outstanding->fences;
    message.delivery = std::move(delivery);
    message.delivery.outstanding = role.outstanding;
    ++role.outstanding->operations;
    role.post(std::move(message));
  }
  role.report(
      {.kind = OperationKind::kSignal, .target = update.word, .value = update.value, .order = order, .begin = begin},
      site);
}

void BlockCore::wait(const Signal* words, Size n, Size stride, Cmp cmp, Epoch value, Order order, Site site) {
  Role& role = *role_;
  const Fault fault = role.fault(SyncOperation::kWait, site);
  if (fault == Fault::kDropped) return;
  if (fault == Fault::kRelaxed) order = Order::kRelaxed;
  if (fault == Fault::kEarly) value = role.sim.value_before(words, value);
  check_words(role, words, n, stride, "wait", site);
  const Time begin = role.engine().now();
  SignalWait wait;
  wait.words = words;
  wait.count = n;
  wait.stride = stride;
  wait.cmp = cmp;
  wait.value = value;
  Monitor* const monitor = role.sim.seams.monitor;
  if (monitor != nullptr) monitor->begin_wait(role.thread, words, n, stride, cmp, value, site);
  role.see_own_changes(words, n, stride);
  role.await(wait);
  role.engine().sleep_until(role.engine().now() + role.sim.costs.block_sync);
  if (monitor != nullptr) monitor->end_wait(role.thread, words, n, stride, cmp, value, order, false, site);
  role.engine().trace(role.engine().current()->id(), kTraceWait, static_cast<std::int64_t>(value));
  role.report({.kind = OperationKind::kWait,
               .address = words,
               .bytes = n * Size{sizeof(Signal)},
               .value = value,
               .order = order,
               .begin = begin,
               .released_by = wait.released_by.lane,
               .released_at = wait.released_by.time},
              site);
}

bool BlockCore::test(const Signal* word, Cmp cmp, Epoch value, Site site) {
  Role& role = *role_;
  check_words(role, word, 1, 1, "signal_test", site);
  const Time begin = role.engine().now();
  role.end_local();
  role.see_own_changes(word, 1, 1);
  const Time held_up = role.sim.late(Schedule::Point::kWake, role.pe);  // between this test and what came before
  role.look([&] { role.engine().sleep_until(role.engine().now() + role.sim.costs.local_latency + held_up); });
  const Epoch found = word->value;
  const bool holds = compare(found, cmp, value) || role.fault(SyncOperation::kTest, site) == Fault::kDropped;
  if (Monitor* const monitor = role.sim.seams.monitor; monitor != nullptr) {
    if (holds)
      monitor->end_wait(role.thread, word, 1, 1, cmp, value, Order::kAcquire, false, site);
    else
      monitor->tested_false(role.thread, site);
  }
  role.report({.kind = OperationKind::kTest, .address = word, .value = value, .order = Order::kAcquire, .begin = begin},
              site);
  if (holds)
    role.acted();
  else if (role.looks.is_same(word, found))
    role.polled_unchanged({"signal_test", word, sizeof(Signal), cmp, value}, site);
  return holds;
}

void BlockCore::require_slots(Signals words, const char* operation, Site site) const {
  role_->require_array(words.local(), Size{count()} * num_pes() * Size{sizeof(Signal)}, operation, site);
}

Epoch BlockCore::next_epoch(Epochs epochs, Epoch count, Site site) {
  const Size bytes = (Size{role_->index} + 1) * Size{sizeof(Epoch)};
  role_->reachable_pe(epochs.words, bytes, "next_epoch", site);
  role_->require_array(epochs.words, bytes, "next_epoch", site);
  role_->require_contents(epochs.words, "next_epoch", site);
  Epoch* const word = epochs.words + role_->index;
  const Time begin = role_->engine().now();
  const Fault fault = role_->fault(SyncOperation::kEpoch, site);
  Epoch first = *word + 1;
  if (*word > 0 && fault == Fault::kSameParity)
    ++first;
  else if (*word > 0 && fault != Fault::kNone)
    first -= count;  // the last call's once more
  *word = first + count - 1;
  if (role_->sim.seams.monitor != nullptr) role_->sim.seams.monitor->next_epoch(role_->thread);
  role_->report_access(AccessKind::kLoad, word, sizeof(Epoch), site);
  role_->report_access(AccessKind::kStore, word, sizeof(Epoch), site);
  role_->report({.kind = OperationKind::kAtomic,
                 .address = word,
                 .target = word,
                 .bytes = sizeof(Epoch),
                 .value = *word,
                 .begin = begin},
                site);
  return first;
}

std::uint64_t BlockCore::atomic(void* word, int bytes, AtomicOp op, std::uint64_t operand, std::uint64_t expected,
                                Scope scope, Order order, Site site) {
  Role& role = *role_;
  Engine& engine = role.engine();
  const Time begin = engine.now();
  const int target = role.reachable_pe(word, bytes, "atomic", site);
  const bool releases = order == Order::kRelease || order == Order::kAcqRel;
  role.end_local();
  const Time ready = releases ? std::max(engine.now(), role.last_arrival) : engine.now();
  const Time latency = target == role.pe ? role.sim.costs.local_latency : role.sim.costs.load_latency;
  const Time held_up = role.sim.late(Schedule::Point::kWake, role.pe);  // between this atomic and what came before
  role.look([&] { engine.sleep_until(ready + latency + held_up); });
  const Fault fault = role.fault(SyncOperation::kAtomic, site);
  if (fault == Fault::kSameParity && op == AtomicOp::kAdd) operand *= 2;
  std::uint64_t old = 0;
  const bool has_contents = backed(word);
  if (has_contents) std::memcpy(&old, word, static_cast<std::size_t>(bytes));
  std::uint64_t value = op == AtomicOp::kAdd        ? old + operand
                        : op == AtomicOp::kExchange ? operand
                        : old == expected           ? operand
                                                    : old;
  if (bytes == 4) value &= 0xFFFF'FFFF;
  if (fault != Fault::kDropped && has_contents) std::memcpy(word, &value, static_cast<std::size_t>(bytes));
  if (role.sim.seams.monitor != nullptr)
    role.sim.seams.monitor->atomic(
        role.thread, {word, bytes, old, value, op != AtomicOp::kCompareSwap || old == expected, scope, order}, site);
  role.streaming = false;
  engine.trace(engine.current()->id(), kTraceAtomic, static_cast<std::int64_t>(value));
  if (bytes == 8 && has_contents) role.sim.signals.changed(static_cast<const Signal*>(word), role.cause());
  role.report({.kind = OperationKind::kAtomic,
               .address = word,
               .target = word,
               .bytes = bytes,
               .value = value,
               .order = order,
               .scope = scope,
               .begin = begin},
              site);
  if (value != old && fault != Fault::kDropped)
    role.acted();
  else if (role.looks.is_same(word, old))
    role.polled_unchanged({"atomic", word, bytes, Cmp::kNe, old}, site);
  return old;
}

namespace {

/// GPUs move packets by 16 bytes.
void check_alignment(const Role& role, const void* packets, const char* operation, Site site) {
  if (reinterpret_cast<std::uintptr_t>(packets) % 16 != 0)
    throw CheckFailed(fmt::format("{}:{}: {} at {} by PE {}: packets begin at a multiple of 16 bytes", site.file,
                                  site.line, operation, role.sim.memory.describe(packets), role.pe));
}

/// Packets begin as zeros, so a wait for flag 0 would pass before anybody has written.
void check_flag(const Role& role, const void* packets, std::uint64_t flag, Site site) {
  if (flag == 0)
    throw CheckFailed(fmt::format("{}:{}: packet load at {} by PE {} for flag 0, which packets hold that no PE wrote",
                                  site.file, site.line, role.sim.memory.describe(packets), role.pe));
}

}  // namespace

void BlockCore::check_packets(const void* to, Size bytes, Site site) const {
  check_alignment(*role_, to, "packet store", site);
  role_->reachable_pe(to, bytes, "packet store", site);
  role_->require_contents(to, "packet store", site);
}

void BlockCore::write_packets(void* to, Buffer packets, const PacketForm&, Site site) {
  const Size bytes = packets.bytes();
  if (bytes <= 0) return;
  Role& role = *role_;
  const Time begin = role.engine().now();
  check_packets(to, bytes, site);
  const int target = role.sim.memory.pe_of(to);
  if (role.fault(SyncOperation::kPacketStore, site) == Fault::kDropped) return;
  role.report_access(AccessKind::kPacketStore, to, bytes, site);
  const Time arrival = role.store_arrival(role.move(role.pe, target, bytes, Driver::kStores));
  role.order_after(arrival);
  role.sim.deliver(arrival, data_delivery(to, std::move(packets), role.cause()));
  role.engine().trace(role.engine().current()->id(), kTraceWrite, bytes);
  role.report({.kind = OperationKind::kStore, .target = to, .bytes = bytes, .order = Order::kRelease, .begin = begin},
              site);
}

void BlockCore::wait_packets(const void* packets, Size count, const PacketForm& form, std::uint64_t flag, Site site) {
  if (count <= 0) return;
  Role& role = *role_;
  const Size bytes = count * form.bytes;
  if (role.fault(SyncOperation::kPacketLoad, site) == Fault::kDropped) {
    role.report_access(AccessKind::kLoad, packets, bytes, site);
    return;
  }
  check_alignment(role, packets, "packet load", site);
  check_flag(role, packets, flag, site);
  role.reachable_pe(packets, bytes, "packet load", site);
  role.require_contents(packets, "packet load", site);
  const Time begin = role.engine().now();
  PacketWait wait;
  wait.packets = static_cast<const std::byte*>(packets);
  wait.count = count;
  wait.packet_bytes = form.bytes;
  wait.flag_offset = form.flag_offset;
  wait.flag_bytes = form.flag_bytes;
  wait.flag = flag;
  Monitor* const monitor = role.sim.seams.monitor;
  const auto* const words = static_cast<const Signal*>(packets);
  if (monitor != nullptr) monitor->begin_wait(role.thread, words, 0, 1, Cmp::kEq, flag, site);
  role.await(wait);
  if (monitor != nullptr) monitor->end_wait(role.thread, words, 0, 1, Cmp::kEq, flag, Order::kAcquire, false, site);
  role.report({.kind = OperationKind::kWait,
               .address = packets,
               .bytes = bytes,
               .value = flag,
               .order = Order::kAcquire,
               .begin = begin,
               .released_by = wait.released_by.lane,
               .released_at = wait.released_by.time},
              site);
  role.report_access(AccessKind::kPacketLoad, packets, bytes, site);
  const Time there = role.engine().now();
  role.move(role.pe, role.pe, bytes, Driver::kLoads);
  role.report({.kind = OperationKind::kLoad, .address = packets, .bytes = bytes, .begin = there}, site);
}

}  // namespace tandem::sim
