/// Loads, stores, puts and gets; fence and quiet.

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "check/detector.h"
#include "check/schedules.h"
#include "tandem/error.h"

namespace tandem::checker {

namespace {

/// No small problem needs more; a loop that never ends does. The second number is for one call site, thread and launch.
constexpr std::uint64_t kMostOperations = 5'000'000;
constexpr int kMostOccurrences = 1'000'000;

const char* operation_name(sim::AccessKind kind) {
  switch (kind) {
    case sim::AccessKind::kLoad:
    case sim::AccessKind::kMovingLoad:
      return "load";
    case sim::AccessKind::kStore:
      return "store";
    case sim::AccessKind::kReduction:
      return "multimem_reduce";
    case sim::AccessKind::kPacketLoad:
      return "ll_get";
    case sim::AccessKind::kPacketStore:
      return "ll_put";
    case sim::AccessKind::kTensorLoad:
      return "load by the tensor-memory engine";
    case sim::AccessKind::kCopyEngineLoad:
    case sim::AccessKind::kCopyEngineStore:
      return "copy by a copy engine";
    case sim::AccessKind::kHostLoad:
      return "copy_out by the host program";
    case sim::AccessKind::kHostStore:
      return "copy_in by the host program";
  }
  return "access";
}

bool writes(sim::AccessKind kind) {
  return kind == sim::AccessKind::kStore || kind == sim::AccessKind::kReduction ||
         kind == sim::AccessKind::kPacketStore || kind == sim::AccessKind::kCopyEngineStore ||
         kind == sim::AccessKind::kHostStore;
}

/// Whether what happens next depends on the value that is read.
bool uses_value(sim::AccessKind kind) {
  return kind == sim::AccessKind::kLoad || kind == sim::AccessKind::kTensorLoad || kind == sim::AccessKind::kReduction;
}

/// Whether memory is as an allocation left it, somewhere: a word of it, or all where it has none. Host programs write
/// by pointer, too, which is seen only here.
bool has_first_contents(const std::byte* begin, Size bytes) {
  constexpr Size kWord = 4;
  const auto is_first = [](std::byte byte) { return byte == std::byte{0xFF}; };
  if (bytes < kWord) return std::all_of(begin, begin + bytes, is_first);
  for (Size at = 0; at + kWord <= bytes; at += kWord)
    if (std::all_of(begin + at, begin + at + kWord, is_first)) return true;
  return false;
}

const char* transfer_name(const sim::Transfer& transfer) {
  const bool blocking = transfer.completion == sim::Completion::kBlocking;
  if (transfer.is_get) return blocking ? "get" : "get_nbi";
  if (transfer.signal != nullptr) return blocking ? "put_signal" : "put_signal_nbi";
  return blocking ? "put" : "put_nbi";
}

}  // namespace

std::uint32_t Detector::info(sim::Thread thread, const char* operation, Site site) {
  const auto [at, is_new] =
      info_numbers_.try_emplace({site.file, site.line, operation, thread, of(thread).name, of(thread).launch},
                                static_cast<std::uint32_t>(infos_.size()));
  if (is_new)
    infos_.push_back({.site = site,
                      .operation = operation,
                      .thread = thread,
                      .kernel = of(thread).name,
                      .launch = of(thread).launch});
  infos_[at->second].last = engine_->now();
  ++infos_[at->second].times;
  if (of(thread).before_epoch) report_before_epoch(at->second);
  return at->second;
}

/// A thread's stores to another PE's memory are ordered by a fence for signals to that PE alone.
Stamp Detector::store_stamp(sim::Thread id, int destination) {
  ThreadState& thread = of(id);
  if (thread.kind == ThreadKind::kHost || thread.kind == ThreadKind::kStream || destination == thread.pe)
    return {thread.slot, thread.now.of(thread.slot)};
  const auto [at, is_new] = thread.store_slots.try_emplace(destination, 0);
  if (is_new) {
    at->second = new_slot(id);
    agent_slots_[at->second].issued = {thread.slot, thread.now.of(thread.slot)};
    thread.now.set(at->second, 1);
  }
  return {at->second, thread.now.of(at->second)};
}

const Clock* Detector::after_fences(const ThreadState& thread, int destination, Clock& own) {
  const auto counts = [&](const Agent& agent) { return agent.fenced && agent.peer == destination; };
  if (std::none_of(thread.agents.begin(), thread.agents.end(), counts)) return &thread.now;
  own = thread.now;
  for (const Agent& agent : thread.agents)
    if (counts(agent)) own.raise(agent.stamp);
  return &own;
}

Clock Detector::ordered_before_signal(const ThreadState& thread, int destination) {
  Clock clock = thread.settled;
  const auto at = thread.fenced_to.find(destination);
  clock.join(at != thread.fenced_to.end() ? at->second : thread.fenced);
  return clock;
}

Clock Detector::ordered_before_notify(const ThreadState& thread, int destination, bool reachable) {
  // Stores and puts over links are visible to all; through a NIC the signal follows this thread's puts to the same PE.
  Clock clock = thread.now;
  for (const Agent& agent : thread.agents)
    if (agent.reachable || (!reachable && agent.peer == destination)) clock.raise(agent.stamp);
  return clock;
}

void Detector::count_operation(std::uint32_t number) {
  const int occurrences = infos_[number].times;
  if (++operations_ <= kMostOperations && occurrences <= kMostOccurrences) return;
  endless_ = number;
  throw Deadlock(fmt::format("{} operations, {} of them at one call site, and no end: a loop that never ends",
                             operations_, occurrences));
}

void Detector::tested_false(sim::Thread id, Site site) { count_operation(info(id, "signal_test", site)); }

void Detector::record(sim::Thread thread, const void* address, Size bytes, NewAccess access) {
  if (bytes <= 0 || !memory_->owns(address)) return;
  access.record.occurrence = static_cast<std::uint16_t>(
      std::min(infos_[access.record.info].times, int{std::numeric_limits<std::uint16_t>::max()}));
  const int pe = memory_->pe_of(address);
  const Size begin = memory_->offset_of(address);
  count_operation(access.record.info);
  footprint_ += Random(static_cast<std::uint64_t>(begin) * 64 + static_cast<std::uint64_t>(pe)).next() ^
                static_cast<std::uint64_t>(bytes);
  if (!memory_->within_buffer(address, bytes)) return report_out_of_bounds(address, bytes, access.record.info);
  std::vector<Conflict> conflicts;
  shadows_[static_cast<std::size_t>(pe)].access({begin, begin + bytes}, access, conflicts, cells_);
  const auto atomic = [](const Record& one) { return one.role == Role::kAtomicRead || one.role == Role::kAtomicWrite; };
  for (const Conflict& conflict : conflicts) {
    const Record& first = conflict.first;
    if (atomic(first) && atomic(access.record) && same_word(first, access.record) &&
        reach_each_other(owners_[first.stamp.slot], first.scope, thread, access.record.scope))
      continue;
    report_conflict(thread, static_cast<const std::byte*>(address) + (conflict.bytes.begin - begin), access, conflict);
  }
}

void Detector::out_of_bounds(sim::Thread id, const char* operation, const void* address, Size bytes, Site site) {
  report_out_of_bounds(address, bytes, info(id, operation, site));
}

void Detector::check_written(const void* address, const void* contents, Size bytes, std::uint32_t number) {
  if (!finds_uninitialised_reads_ || memory_->is_control(address) || !memory_->within_buffer(address, bytes))
    return;  // zeros; another finding
  const Size begin = memory_->offset_of(address);
  const auto* const first = static_cast<const std::byte*>(address);
  const auto* const values = static_cast<const std::byte*>(contents);
  shadows_[static_cast<std::size_t>(memory_->pe_of(address))].visit_unwritten(
      {begin, begin + bytes}, [&](Range unwritten) {
        const Size at = unwritten.begin - begin;
        if (has_first_contents(values + at, unwritten.size()))
          report_uninitialised(first + at, unwritten.size(), number);
      });
}

void Detector::access(sim::Thread id, const sim::MemoryAccess& access, Site site) {
  if (access.bytes <= 0 || !memory_->owns(access.address)) return;
  ThreadState& thread = of(id);
  const int pe = memory_->pe_of(access.address);
  const bool is_write = writes(access.kind);
  const bool is_packet = access.kind == sim::AccessKind::kPacketLoad || access.kind == sim::AccessKind::kPacketStore;
  NewAccess next;
  next.record.stamp = is_write ? store_stamp(id, pe) : Stamp{thread.slot, thread.now.of(thread.slot)};
  next.record.info = info(id, operation_name(access.kind), site);
  next.record.role = access.kind == sim::AccessKind::kReduction ? Role::kReduction
                     : is_write                                 ? Role::kWrite
                                                                : Role::kRead;
  next.record.packet = is_packet;
  next.over = &thread.over;
  Clock with_fenced;
  next.after = access.kind == sim::AccessKind::kTensorLoad ? &thread.tensor
               : is_write                                  ? after_fences(thread, pe, with_fenced)
                                                           : &thread.now;
  if (uses_value(access.kind)) check_written(access.address, access.address, access.bytes, next.record.info);
  record(id, access.address, access.bytes, next);
  if (is_write) forget_entries(access.address, access.bytes);
  if (!is_packet) return;

  Shadow& shadow = shadows_[static_cast<std::size_t>(pe)];
  const Size begin = memory_->offset_of(access.address);
  const Range bytes{begin, begin + access.bytes};
  if (is_write) {
    shadow.set_sent(bytes, std::make_shared<const Sent>(thread.over));
    advance(thread);
    return;
  }
  shadow.visit(bytes, [&](const Cell& cell) {
    if (cell.sent != nullptr) thread.over.join(*cell.sent);
  });
  thread.over.packets_read.raise(next.record.stamp);
}

/// A component for a put or get, which goes on beside its issuer.
Stamp Detector::begin_agent(sim::Thread id, const sim::Transfer& transfer) {
  ThreadState& thread = of(id);
  prune(thread);
  if (thread.free_slots.empty() && retired_.size() >= sweep_at_) reuse_retired();
  Slot slot = 0;
  if (thread.free_slots.empty()) {
    slot = new_slot(id);
  } else {
    slot = thread.free_slots.back();
    thread.free_slots.pop_back();
  }
  AgentSlot& its = agent_slots_[slot];
  its = {{thread.slot, thread.now.of(thread.slot)}, its.tick + 1, false};
  const Stamp stamp{slot, its.tick};
  thread.agents.push_back({stamp, transfer.peer, transfer.reachable, transfer.completion == sim::Completion::kBlocking,
                           transfer.is_get, false});
  return stamp;
}

sim::Message Detector::transfer(sim::Thread id, const sim::Transfer& transfer, Site site) {
  ThreadState& thread = of(id);
  const bool blocking = transfer.completion == sim::Completion::kBlocking;
  Clock with_fenced;
  const Stamp own{thread.slot, thread.now.of(thread.slot)};
  const Stamp agent = transfer.is_get && blocking ? own : begin_agent(id, transfer);

  NewAccess next;
  next.after = &thread.now;
  next.over = &thread.over;
  next.record.info = info(id, transfer_name(transfer), site);
  Info& facts = infos_[next.record.info];
  facts.transfer = true;
  facts.nonblocking = !blocking;
  facts.is_get = transfer.is_get;
  facts.peer = transfer.peer;
  // The source of a put is free when it returns, unless it is put_nbi.
  const Stamp source = blocking && !transfer.is_get ? begin_agent(id, transfer) : agent;
  next.record.role = Role::kRead;
  next.record.transfer = !blocking;
  next.record.stamp = source;
  next.beside = source.slot != thread.slot;
  record(id, transfer.from, transfer.bytes, next);
  if (blocking) thread.now.raise(source);
  next.record.role = Role::kWrite;
  if (!transfer.is_get) next.after = after_fences(thread, transfer.peer, with_fenced);
  next.record.transfer = true;
  next.record.stamp = agent;
  // A put may carry packets, whose flags are their signal.
  next.record.packet = !transfer.is_get;
  record(id, transfer.to, transfer.bytes, next);
  forget_entries(transfer.to, transfer.bytes);
  if (!transfer.is_get && transfer.bytes > 0 && memory_->owns(transfer.to)) {
    const Size begin = memory_->offset_of(transfer.to);
    shadows_[static_cast<std::size_t>(transfer.peer)].set_sent({begin, begin + transfer.bytes},
                                                               std::make_shared<const Sent>(thread.over));
  }
  if (transfer.signal == nullptr) {
    advance(thread);
    return 0;
  }
  return signal_of(id, transfer, {own, source, agent}, next.record.info);
}

/// The signal of a put, behind the accesses to its data.
sim::Message Detector::signal_of(sim::Thread id, const sim::Transfer& transfer, const TransferStamps& stamps,
                                 std::uint32_t number) {
  ThreadState& thread = of(id);
  Parcel parcel;
  parcel.released = ordered_before_signal(thread, transfer.peer);
  if (!transfer.signal_first) {
    parcel.released.raise(stamps.agent);
    parcel.released.raise(stamps.source);
    release_source(thread, transfer, parcel);
  }
  parcel.sent = thread.over;
  parcel.knew = thread.now;
  parcel.issued = stamps.own;
  parcel.issuer = id;
  parcel.through_nic = !transfer.reachable;
  parcel.info = number;
  parcel.occurrence = infos_[number].times;
  parcel.release = transfer.signal_first ? Parcel::Release::kNothing : Parcel::Release::kOwnData;
  note_writer(id, transfer.signal->word,
              {.stamp = stamps.agent,
               .value = transfer.signal->value,
               .sets = transfer.signal->op == SignalOp::kSet,
               .through_nic = parcel.through_nic},
              number);
  record_signal(id, transfer.signal->word, Role::kAtomicWrite, stamps.agent, number);
  advance(thread);
  return send(std::move(parcel));
}

/// Releases the writes of the source: the put has read their data.
void Detector::release_source(const ThreadState& thread, const sim::Transfer& transfer, Parcel& parcel) {
  if (transfer.bytes <= 0 || !memory_->owns(transfer.from)) return;
  const Size begin = memory_->offset_of(transfer.from);
  shadows_[static_cast<std::size_t>(memory_->pe_of(transfer.from))].visit(
      {begin, begin + transfer.bytes}, [&](const Cell& cell) {
        if (cell.write.stamp.tick > 0 && thread.now.covers(cell.write.stamp)) parcel.released.raise(cell.write.stamp);
      });
}

void Detector::fence(sim::Thread id, Site) {
  ThreadState& thread = of(id);
  prune(thread);
  // A fence orders everything local, and the stores to a destination for that destination. Settled ones hold for all.
  Clock base = thread.now;
  for (const auto& [destination, slot] : thread.store_slots) base.set(slot, thread.settled.of(slot));
  std::map<int, Clock> fenced_to;
  for (const auto& [destination, slot] : thread.store_slots) {
    Clock& clock = fenced_to.try_emplace(destination, base).first->second;
    clock.set(slot, thread.now.of(slot));
  }
  for (Agent& agent : thread.agents) {
    if (agent.is_get) continue;  // a fence orders writes alone
    agent.fenced = true;
    fenced_to.try_emplace(agent.peer, base).first->second.raise(agent.stamp);
  }
  thread.fenced = std::move(base);
  thread.fenced_to = std::move(fenced_to);
  advance(thread);
}

void Detector::quiet(sim::Thread id, Site) {
  ThreadState& thread = of(id);
  for (const Agent& agent : thread.agents) {
    thread.now.raise(agent.stamp);
    release_slot(agent);
  }
  thread.agents.clear();
  thread.settled = thread.now;
  thread.quiets.push_back(thread.now.of(thread.slot));
  thread.fenced = {};
  thread.fenced_to.clear();
  advance(thread);
}

}  // namespace tandem::checker
