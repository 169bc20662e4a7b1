/// The order of threads: host programs, streams, kernels, blocks and roles.

#include <algorithm>
#include <limits>

#include "check/detector.h"
#include "tandem/error.h"

namespace tandem::checker {

Detector::Detector(int pes, bool finds_uninitialised_reads)
    : finds_uninitialised_reads_(finds_uninitialised_reads),
      hosts_(static_cast<std::size_t>(pes)),
      shadows_(static_cast<std::size_t>(pes)) {
  parcels_.resize(1);
  infos_.resize(1);
}

Slot Detector::new_slot(sim::Thread owner) {
  owners_.push_back(owner);
  agent_slots_.push_back({});
  return static_cast<Slot>(owners_.size() - 1);
}

sim::Thread Detector::add_thread(ThreadKind kind, int pe, sim::Thread parent, int index, const std::string& name) {
  const auto id = static_cast<sim::Thread>(threads_.size());
  ThreadState& thread = threads_.emplace_back();
  thread.kind = kind;
  thread.pe = pe;
  thread.parent = parent;
  thread.index = index;
  thread.name = name;
  thread.slot = new_slot(id);
  thread.now.set(thread.slot, 1);
  return id;
}

/// Blocks (or roles) of one number follow each other in a stream (or block), so they are one thread.
sim::Thread Detector::chained(ThreadKind kind, sim::Thread parent, int index) {
  const auto [at, is_new] = chains_.try_emplace({parent, index}, 0);
  if (is_new) at->second = add_thread(kind, of(parent).pe, parent, index, {});
  return at->second;
}

void Detector::advance(ThreadState& thread) {
  thread.now.set(thread.slot, thread.now.of(thread.slot) + 1);
  for (const auto& [destination, slot] : thread.store_slots) thread.now.set(slot, thread.now.of(slot) + 1);
}

/// Removes finished puts: another thread has seen their data, and this thread acquired that.
void Detector::prune(ThreadState& thread) {
  std::erase_if(thread.agents, [&](const Agent& agent) {
    if (!thread.now.covers(agent.stamp)) return false;
    release_slot(agent);
    return true;
  });
}

void Detector::release_slot(const Agent& agent) {
  AgentSlot& slot = agent_slots_[agent.stamp.slot];
  if (slot.is_free || slot.tick != agent.stamp.tick) return;
  slot.is_free = true;
  retired_.push_back(agent.stamp.slot);
}

void Detector::reuse_retired() {
  // A later put of the component must not cover an earlier one with which an access may still conflict.
  std::vector<bool> remembered(owners_.size());
  const auto remember_cell = [&](const Cell& cell) {
    remembered[cell.write.stamp.slot] = true;
    for (const Record& other : cell.others) remembered[other.stamp.slot] = true;
  };
  for (const Shadow& shadow : shadows_) shadow.visit({0, std::numeric_limits<Size>::max()}, remember_cell);
  for (const auto& [address, word] : words_)
    for (const Writer& writer : word.writers) remembered[writer.stamp.slot] = true;
  std::erase_if(retired_, [&](Slot slot) {
    if (remembered[slot]) return false;
    of(owners_[slot]).free_slots.push_back(slot);
    return true;
  });
  sweep_at_ = std::max(sweep_at_, 2 * retired_.size());
}

sim::Thread Detector::add_host(int pe) {
  hosts_[static_cast<std::size_t>(pe)] = add_thread(ThreadKind::kHost, pe, 0, 0, {});
  return hosts_[static_cast<std::size_t>(pe)];
}

sim::Thread Detector::add_stream(int pe, const std::string& name) {
  return add_thread(ThreadKind::kStream, pe, 0, 0, name);
}

sim::KernelId Detector::begin_kernel(sim::Thread stream, const std::string& name, bool epoch_first) {
  ThreadState& its = of(stream);
  kernels_.push_back({stream, name, its.now, its.over, epoch_first, ++launches_[{stream, name}]});
  advance(its);  // what follows in the stream is no part of what the kernel's signals release
  return static_cast<sim::KernelId>(kernels_.size() - 1);
}

sim::Thread Detector::begin_block(sim::KernelId kernel, int block) {
  const Kernel& its = kernels_[kernel];
  const sim::Thread id = chained(ThreadKind::kBlock, its.stream, block);
  ThreadState& thread = of(id);
  thread.name = its.name;
  thread.launch = its.launch;
  thread.now.join(its.begin);
  thread.fenced = {};
  thread.fenced_to.clear();
  thread.tensor = thread.now;
  // The stream's earlier reads are over: no signal can arrive before them.
  thread.over.join(its.over);
  thread.over.reads.join(its.begin);
  thread.over.packets_read.join(its.begin);
  thread.acquired.clear();
  thread.waiting.reset();
  thread.running = true;
  thread.before_epoch = its.epoch_first;
  return id;
}

void Detector::next_epoch(sim::Thread block) { of(block).before_epoch = false; }

void Detector::end_block(sim::KernelId kernel, sim::Thread block) {
  ThreadState& thread = of(block);
  // A kernel's end completes what its threads stored, but not what is left to others: a NIC, or a put_nbi.
  for (const Agent& agent : thread.agents)
    if (agent.reachable && agent.blocking) {
      thread.now.raise(agent.stamp);
      release_slot(agent);
    }
  thread.agents.clear();
  ThreadState& stream = of(kernels_[kernel].stream);
  stream.now.join(thread.now);
  stream.over.join(thread.over);
  thread.running = false;
  advance(thread);
}

sim::Thread Detector::begin_role(sim::Thread block, int role) {
  const sim::Thread id = chained(ThreadKind::kRole, block, role);
  ThreadState& parent = of(block);
  ThreadState& thread = of(id);
  thread.name = parent.name;
  thread.launch = parent.launch;
  thread.now.join(parent.now);
  thread.settled = parent.settled;
  thread.fenced = parent.fenced;
  thread.fenced_to = parent.fenced_to;
  thread.tensor = parent.tensor;
  thread.over.join(parent.over);
  thread.agents = parent.agents;
  thread.acquired = parent.acquired;
  thread.waiting.reset();
  thread.running = true;
  thread.before_epoch = parent.before_epoch;
  advance(parent);
  return id;
}

void Detector::end_role(sim::Thread block, sim::Thread role) {
  ThreadState& parent = of(block);
  ThreadState& thread = of(role);
  parent.now.join(thread.now);
  parent.over.join(thread.over);
  parent.tensor.join(thread.tensor);
  for (const Agent& agent : thread.agents) {
    const auto known = std::find_if(parent.agents.begin(), parent.agents.end(), [&](const Agent& other) {
      return other.stamp.slot == agent.stamp.slot && other.stamp.tick == agent.stamp.tick;
    });
    if (known == parent.agents.end())
      parent.agents.push_back(agent);
    else
      known->fenced = known->fenced || agent.fenced;
  }
  thread.agents.clear();
  thread.running = false;
  advance(thread);
}

void Detector::enqueue(sim::Thread stream) {
  ThreadState& host = of(hosts_[static_cast<std::size_t>(of(stream).pe)]);
  of(stream).inbox.emplace_back(host.now, host.over);
  advance(host);
}

void Detector::begin_work(sim::Thread stream) {
  ThreadState& its = of(stream);
  its.now.join(its.inbox.front().first);
  its.over.join(its.inbox.front().second);
  its.inbox.pop_front();
}

void Detector::record_event(sim::Thread stream, const void* event) {
  ThreadState& its = of(stream);
  events_[event] = {its.now, its.over};
  advance(its);
}

void Detector::wait_event(sim::Thread stream, const void* event) {
  const auto& [now, over] = events_[event];
  of(stream).now.join(now);
  of(stream).over.join(over);
}

void Detector::synchronize(sim::Thread stream) {
  ThreadState& its = of(stream);
  ThreadState& host = of(hosts_[static_cast<std::size_t>(its.pe)]);
  host.now.join(its.now);
  host.over.join(its.over);
  advance(its);
}

void Detector::host_barrier() {
  Clock all;
  Sent over;
  for (const sim::Thread host : hosts_) {
    all.join(of(host).now);
    over.join(of(host).over);
  }
  for (const sim::Thread host : hosts_) {
    of(host).now.join(all);
    of(host).over.join(over);
    advance(of(host));
  }
}

}  // namespace tandem::checker
