#include "sim/run/simulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "sim/run/folding.h"

namespace tandem::sim {

Costs::Costs(const Machine& machine)
    : local_latency(from_us(machine.gpu.local_latency_us)),
      load_latency(from_us(machine.link.load_latency_us)),
      flag(from_us(machine.link.flag_us)),
      local_flag(from_us(machine.gpu.local_flag_us)),
      kernel_gap(from_us(machine.gpu.launch_us)),
      graph_gap(from_us(machine.gpu.graph_node_us)),
      kernel(from_us(machine.gpu.kernel_us)),
      block_sync(from_us(machine.gpu.block_sync_us)),
      copy_startup(from_us(machine.gpu.copy_engine_startup_us)),
      nic_issue(from_us(machine.nic.issue_us)),
      block_memory(machine.gpu.block_hbm_gbps.at(1)),
      block_reduce(machine.gpu.reduce_gbps),
      block_store(machine.link.store_gbps.at(1)),
      block_load(machine.link.load_gbps.at(1)),
      queue(machine.nic.count_per_node > 0 ? machine.nic.queue_gbps.at(1) : machine.link.port_gbps) {}

Simulator::Simulator(const Machine& machine_model, int num_pes, int pes_per_node, std::uint64_t seed, bool is_phantom,
                     bool in_graph, Size heap_bytes, Size heap_limit_bytes, Observer* watching,
                     const SimSeams& seams_to_use)
    : machine(machine_model),
      topology(machine, num_pes, pes_per_node),
      costs(machine),
      phantom(is_phantom),
      graph(in_graph),
      observer(watching),
      seams(seams_to_use),
      memory(num_pes, is_phantom, heap_bytes, heap_limit_bytes, seams.monitor != nullptr),
      network(topology, machine, num_pes),
      signals(memory),
      pes(static_cast<std::size_t>(num_pes)),
      engine(seed) {
  if (seams.folding != nullptr) {
    seams.folding->check(*this);
    topology.fold(seams.folding->nodes);
    memory.fold(seams.folding->nodes * topology.pes_per_node());
  }
  for (Pe& pe : pes) {
    pe.sms.resize(static_cast<std::size_t>(machine.gpu.sm_count));
    pe.copy_engines.resize(static_cast<std::size_t>(machine.gpu.copy_engines));
  }
  if (observer != nullptr) network.watch = [this](const Occupation& chunk) { draw(chunk); };
  engine.before_unwinding = [this] { seams = {}; };
  memory.on_fill = [this](const void* begin, Size bytes) {
    if (seams.monitor != nullptr) seams.monitor->allocated(begin, bytes);
  };
  engine.describe_deadlock = [this](const std::vector<const Actor*>& blocked) { return describe_deadlock(blocked); };
}

Team Simulator::world_team(int pe) const { return {0, 1, num_pes(), pe, topology.pes_per_node()}; }

QueuePair& Simulator::queue(int from, int to, int block) {
  const auto pair = static_cast<std::uint64_t>(from) * pes.size() + static_cast<std::uint64_t>(to);
  const std::uint64_t key = (pair << 32) | static_cast<std::uint32_t>(block);
  std::unique_ptr<QueuePair>& queue = queues_[key];
  if (queue) return *queue;
  if (idle_queues_.empty()) {
    queue = std::make_unique<QueuePair>(*this, costs.queue);
  } else {
    queue = std::move(idle_queues_.back());
    idle_queues_.pop_back();
  }
  queue->key = key;
  return *queue;
}

void Simulator::retire(const QueuePair& queue) {
  if (seams.schedule != nullptr) return;
  const auto found = queues_.find(queue.key);
  idle_queues_.push_back(std::move(found->second));
  queues_.erase(found);
}

Time Simulator::deliver(Time time, Delivery delivery) {
  Delivery* slot = nullptr;
  if (free_deliveries_.empty()) {
    slot = &deliveries_.emplace_back();
  } else {
    slot = free_deliveries_.back();
    free_deliveries_.pop_back();
  }
  if (delivery.has_signal) time = signals.in_order(delivery.signal.word, delivery.cause.pe, time);
  *slot = std::move(delivery);
  slot->simulator = this;
  engine.at(time, &Simulator::arrive, slot);
  return time;
}

Epoch Simulator::value_before(const Signal* word, Epoch value) {
  Epoch& last = awaited_[word];
  return std::min(std::exchange(last, value), value);
}

void Simulator::arrive(void* argument) {
  auto* const slot = static_cast<Delivery*>(argument);
  Simulator& simulator = *slot->simulator;
  const Delivery arrived = std::move(*slot);
  simulator.free_deliveries_.push_back(slot);
  if (arrived.payload) {
    std::memcpy(arrived.target, arrived.payload.data(), static_cast<std::size_t>(arrived.payload.bytes()));
    simulator.signals.packets_arrived(arrived.target, arrived.payload.bytes(), arrived.cause);
  }
  if (arrived.message != 0) simulator.seams.monitor->signal_arrives(arrived.message, arrived.signal);
  if (arrived.has_signal) simulator.signals.apply(arrived.signal, arrived.cause);
  if (arrived.outstanding && --arrived.outstanding->operations == 0)
    for (Actor* waiting : std::exchange(arrived.outstanding->waiting, {}))
      simulator.engine.wake(*waiting, simulator.engine.now());
}

void Simulator::draw(const Occupation& chunk) const {
  const LaneKind kind = chunk.is_nic ? (chunk.is_out ? LaneKind::kNicOut : LaneKind::kNicIn)
                                     : (chunk.is_out ? LaneKind::kLinkOut : LaneKind::kLinkIn);
  Operation operation;
  operation.kind = OperationKind::kTransfer;
  operation.lane =
      observer->add_lane(chunk.pe, kind, topology.resources()[static_cast<std::size_t>(chunk.resource)].name);
  operation.pe = chunk.pe;
  operation.bytes = chunk.bytes;
  operation.begin = chunk.begin;
  operation.end = chunk.end;
  operation.released_by = chunk.issuer.lane;
  operation.released_at = chunk.issuer.since;
  observer->on_operation(operation);
}

std::string Simulator::describe_ended_programs() const {
  constexpr std::size_t kMostNumbers = 8;
  std::vector<int> ended;
  for (int pe = 0; pe < num_pes(); ++pe)
    if (pes[static_cast<std::size_t>(pe)].program_has_ended) ended.push_back(pe);
  if (ended.empty()) return {};
  const std::size_t shown = std::min(ended.size(), kMostNumbers);
  return fmt::format("host programs that have ended: PE {}{}", fmt::join(ended.begin(), ended.begin() + shown, ", "),
                     shown < ended.size() ? fmt::format(" and {} more", ended.size() - shown) : "");
}

std::string Simulator::describe_deadlock(const std::vector<const Actor*>& blocked) const {
  constexpr std::size_t kMostLines = 40;
  std::string report = fmt::format("deadlock at {:.3f} us: nothing can go on\n", to_us(engine.now()));
  std::size_t lines = 0;
  const auto add = [&](const std::string& line) {
    if (lines++ < kMostLines) report += "  " + line + "\n";
  };
  for (int pe = 0; pe < num_pes(); ++pe) {
    const auto waiting = pes[static_cast<std::size_t>(pe)].waiting_blocks.size();
    if (waiting > 0)
      add(
          fmt::format("PE {}: {} blocks never started: the grids in flight need more room than its {} SMs have, and "
                      "resident blocks wait for blocks that are not",
                      pe, waiting, machine.gpu.sm_count));
  }
  if (const std::string ended = describe_ended_programs(); !ended.empty() && !blocked.empty()) add(ended);
  for (const Actor* actor : blocked)
    add((actor->name ? actor->name() : "an actor") + " " + (actor->waits_for ? actor->waits_for() : "is blocked"));
  for (const auto& stream : streams)
    if (const std::string line = stream(); !line.empty()) add(line);
  if (lines > kMostLines) report += fmt::format("  ... and {} more\n", lines - kMostLines);
  report.pop_back();
  return report;
}

void QueuePair::post(NicMessage message) {
  messages_.push_back(std::move(message));
  if (busy_) return;
  busy_ = true;
  simulator_.engine.at(simulator_.engine.now(), &QueuePair::step, this);
}

void QueuePair::step(void* queue) { static_cast<QueuePair*>(queue)->send_chunk(); }

void QueuePair::send_chunk() {
  if (messages_.empty()) {
    busy_ = false;
    return simulator_.retire(*this);
  }
  NicMessage& message = messages_.front();
  const Time now = simulator_.engine.now();
  const Size part = std::min(Network::chunk(message.bytes), message.bytes - sent_);
  const Passage passage = simulator_.network.pass(message.from, message.to, part, Driver::kNic, now,
                                                  {message.delivery.cause.lane, message.delivery.cause.time});
  sent_ += part;
  const Time next = std::max({now + rate_.time(part), passage.sent, now + simulator_.network.message_gap()});
  if (sent_ >= message.bytes) finish(passage);
  simulator_.engine.at(next, &QueuePair::step, this);
}

void QueuePair::finish(const Passage& last) {
  NicMessage message = std::move(messages_.front());
  messages_.pop_front();
  sent_ = 0;
  // A message that carries a signal shows it after its data: one delivery does both.
  if (message.source != nullptr && message.bytes > 0) {
    message.delivery.payload = Buffer(message.bytes);
    std::memcpy(message.delivery.payload.data(), message.source, static_cast<std::size_t>(message.bytes));
  }
  const Time arrival = simulator_.seams.schedule == nullptr ? last.arrived : held_up(message, last.arrived);
  simulator_.deliver(arrival, std::move(message.delivery));
}

Time QueuePair::held_up(const NicMessage& message, Time arrival) {
  // Messages of one queue have no order among themselves, but for fences and releases.
  if (message.fences != fences_) floor_ = latest_;
  fences_ = message.fences;
  arrival += simulator_.late(message.bytes > 0 ? Schedule::Point::kPut : Schedule::Point::kSignal, message.from);
  arrival = std::max(arrival, message.after_all ? latest_ : floor_);
  latest_ = std::max(latest_, arrival);
  return arrival;
}

}  // namespace tandem::sim
