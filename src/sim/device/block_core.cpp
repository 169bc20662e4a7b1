#include "sim/device/block_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "tandem/error.h"

namespace tandem::sim {

namespace {

Buffer copy_of(const void* from, Size bytes) {
  Buffer payload(bytes);
  if (bytes > 0) std::memcpy(payload.data(), from, static_cast<std::size_t>(bytes));
  return payload;
}

void check_bytes(const char* operation, Size bytes, Site site) {
  if (bytes < 0)
    throw InvalidArgument(
        fmt::format("{}:{}: {} of {} bytes, must not be negative", site.file, site.line, operation, bytes));
}

/// The word of a put_signal to PE `target`.
void check_word(const Role& role, const Signal* word, int target, Site site) {
  const int owner = role.owner_of(word, sizeof(Signal), "put_signal's signal", site);
  role.require_contents(word, "put_signal's signal", site);
  if (owner != target)
    throw InvalidArgument(fmt::format("{}:{}: put_signal: the data is for PE {}, the signal for PE {}", site.file,
                                      site.line, target, owner));
}

/// Loads for a copy, or of values into registers.
void load(Role& role, const void* from, Size bytes, Rate local_rate, AccessKind kind, Site site) {
  if (bytes <= 0) return;
  const Time begin = role.engine().now();
  const int source = role.reachable_pe(from, bytes, "load", site);
  if (source == role.pe)
    role.begin_local(bytes, Driver::kLoads, local_rate);
  else
    role.move(source, role.pe, bytes, Driver::kLoads);
  role.engine().trace(role.engine().current()->id(), kTraceRead, bytes);
  role.report({.kind = OperationKind::kLoad, .address = from, .bytes = bytes, .begin = begin}, site);
  role.report_access(kind, from, bytes, site);
}

/// Stores of a copy, or of values in registers.
void store(Role& role, void* to, Buffer payload, Size bytes, Rate local_rate, Site site) {
  if (bytes <= 0) return;
  const Time begin = role.engine().now();
  const int target = role.reachable_pe(to, bytes, "store", site);
  if (target == role.pe && payload) std::memcpy(to, payload.data(), static_cast<std::size_t>(bytes));
  role.report_access(AccessKind::kStore, to, bytes, site);
  if (target == role.pe) {
    role.begin_local(bytes, Driver::kStores, local_rate);
  } else {
    const Time arrival = role.store_arrival(role.move(role.pe, target, bytes, Driver::kStores));
    role.last_arrival = std::max(role.last_arrival, arrival);
    if (payload) role.sim.deliver(arrival, data_delivery(to, std::move(payload), role.cause()));
  }
  role.engine().trace(role.engine().current()->id(), kTraceWrite, bytes);
  role.report({.kind = OperationKind::kStore, .target = to, .bytes = bytes, .begin = begin}, site);
}

}  // namespace

bool BlockCore::reachable(int pe) const { return role_->sim.topology.reachable(role_->pe, role_->team.world_pe(pe)); }
bool BlockCore::has_multicast() const { return role_->sim.machine.link.multicast; }
bool BlockCore::phantom() const { return role_->sim.phantom; }
bool BlockCore::backed(const void* address) const { return role_->sim.memory.backed(address); }

Size BlockCore::tile_bytes() const {
  // Data that is not there needs no room: one step covers any range, and costs the same.
  return phantom() ? Size{1} << 40 : role_->sim.tile_bytes;
}

void BlockCore::read(const void* from, Size bytes, Site site, bool is_moved) {
  load(*role_, from, bytes, role_->sim.costs.block_reduce, is_moved ? AccessKind::kMovingLoad : AccessKind::kLoad,
       site);
}

void BlockCore::read_scalar(void* to, const void* from, Size bytes, Site site) {
  Role& role = *role_;
  const Time held_up = role.sim.late(Schedule::Point::kWake, role.pe);  // between this load and what came before
  if (held_up > 0) role.look([&] { role.engine().sleep_until(role.engine().now() + held_up); });
  if (role.looks.has(from)) {
    role.streaming = false;
    role.look([&] {
      read(from, bytes, site);
      role.end_local();
    });
  } else {
    read(from, bytes, site);
  }
  if (backed(from)) std::memcpy(to, from, static_cast<std::size_t>(bytes));
  std::uint64_t value = 0;
  bytes = std::min(bytes, Size{sizeof value});
  std::memcpy(&value, to, static_cast<std::size_t>(bytes));
  if (role.looks.is_same(from, value))
    role.polled_unchanged({"load_scalar", from, static_cast<int>(bytes), Cmp::kNe, value}, site);
}

void BlockCore::read_all(Symm<const std::byte> from, Size bytes, Site site) {
  // In flight together: the latency is paid once, and the role's rate is shared by all.
  for (int step = 0; step < num_pes(); ++step) read(from.on((pe() + step) % num_pes()), bytes, site);
}

void BlockCore::write(void* to, Buffer payload, Size bytes, Site site) {
  store(*role_, to, std::move(payload), bytes, role_->sim.costs.block_reduce, site);
}

void BlockCore::write_scalar(void* to, const void* value, Size bytes, Site site) {
  write(to, backed(to) ? copy_of(value, bytes) : Buffer(), bytes, site);
}

void BlockCore::copy(void* to, const void* from, Size bytes, Site site) {
  check_bytes("copy", bytes, site);
  if (bytes == 0) return;
  Role& role = *role_;
  const bool has_data = backed(from) && backed(to);
  const int source = role.reachable_pe(from, bytes, "load", site);
  const int target = role.reachable_pe(to, bytes, "store", site);
  if (std::abs(static_cast<const std::byte*>(from) - static_cast<std::byte*>(to)) < bytes)
    throw CheckFailed(fmt::format("{}:{}: copy of {} bytes from {} to {}, which overlap", site.file, site.line, bytes,
                                  role.sim.memory.describe(from), role.sim.memory.describe(to)));
  const Rate rate = role.sim.costs.block_memory;
  if (source != role.pe || target == role.pe)
    load(role, from, bytes, rate, AccessKind::kMovingLoad, site);
  else  // its time is that of the store
    role.report_access(AccessKind::kMovingLoad, from, bytes, site);
  Buffer payload = has_data ? copy_of(from, bytes) : Buffer();
  store(role, to, std::move(payload), bytes, rate, site);
}

void BlockCore::put(void* to, const void* from, Size bytes, Completion completion, const SignalUpdate* signal,
                    Site site) {
  Role& role = *role_;
  Engine& engine = role.engine();
  const Time begin = engine.now();
  const int target = role.owner_of(to, 0, "put", site);
  check_bytes("put", bytes, site);
  if (signal != nullptr) check_word(role, signal->word, target, site);
  const bool has_data = bytes > 0 && backed(from) && backed(to);
  engine.trace(engine.current()->id(), kTracePut, bytes);
  const Fault fault = signal == nullptr ? Fault::kNone : role.fault(SyncOperation::kPutSignal, site);
  if (fault == Fault::kDropped) signal = nullptr;
  const bool reachable = role.sim.topology.reachable(role.pe, target);
  Message sent = 0;
  if (role.sim.seams.monitor != nullptr)
    sent = role.sim.seams.monitor->transfer(
        role.thread, {false, to, from, bytes, target, reachable, completion, signal, fault == Fault::kSignalFirst},
        site);
  role.owner_of(to, bytes, "put", site);
  if (bytes > 0) role.reachable_pe(from, bytes, "load for a put", site);
  if (reachable) {
    Buffer payload = has_data ? copy_of(from, bytes) : Buffer();
    const Time arrival =
        role.move(role.pe, target, bytes, Driver::kStores) + role.sim.late(Schedule::Point::kPut, role.pe);
    role.last_arrival = std::max(role.last_arrival, arrival);
    if (payload) role.sim.deliver(arrival, data_delivery(to, std::move(payload), role.cause()));
    if (signal != nullptr) {
      const Time flag = target == role.pe ? role.sim.costs.local_flag : role.sim.costs.flag;
      Delivery delivery = signal_delivery(*signal, role.cause());
      delivery.message = sent;
      role.order_after(role.sim.deliver(std::max(arrival, engine.now()) + flag, std::move(delivery)));
    }
  } else {
    engine.sleep_until(engine.now() + role.sim.costs.nic_issue);
    NicMessage message;
    message.from = role.pe;
    message.to = target;
    message.bytes = bytes;
    message.delivery = data_delivery(to, has_data ? copy_of(from, bytes) : Buffer(), role.cause());
    message.delivery.has_signal = signal != nullptr;
    if (signal != nullptr) message.delivery.signal = *signal;
    message.delivery.message = sent;
    message.fences = role.outstanding->fences;
    message.delivery.outstanding = role.outstanding;
    ++role.outstanding->operations;
    role.post(std::move(message));
    if (completion == Completion::kBlocking) role.wait_for_outstanding();
  }
  role.report({.kind = OperationKind::kPut,
               .address = from,
               .target = to,
               .bytes = bytes,
               .value = signal != nullptr ? signal->value : 0,
               .begin = begin},
              site);
}

void BlockCore::get(void* to, const void* from, Size bytes, Completion completion, Site site) {
  Role& role = *role_;
  Engine& engine = role.engine();
  const Time begin = engine.now();
  const int source = role.owner_of(from, 0, "get", site);
  check_bytes("get", bytes, site);
  engine.trace(engine.current()->id(), kTraceGet, bytes);
  const bool reachable = role.sim.topology.reachable(role.pe, source);
  if (role.sim.seams.monitor != nullptr)
    role.sim.seams.monitor->transfer(role.thread, {true, to, from, bytes, source, reachable, completion}, site);
  role.owner_of(from, bytes, "get", site);
  if (bytes > 0) role.reachable_pe(to, bytes, "store for a get", site);
  if (reachable) {
    if (bytes > 0) role.move(source, role.pe, bytes, Driver::kLoads);
    if (bytes > 0 && backed(from) && backed(to)) std::memcpy(to, from, static_cast<std::size_t>(bytes));
  } else {
    if (role.sim.seams.folding != nullptr)
      throw Unsupported("folding: a get from another node given, allowed are puts");
    // The request travels to the other node, where its NIC reads and sends the data.
    engine.sleep_until(engine.now() + role.sim.costs.nic_issue + role.sim.network.latency(role.pe, source));
    NicMessage message;
    message.from = source;
    message.to = role.pe;
    message.source = backed(from) && backed(to) ? from : nullptr;
    message.bytes = bytes;
    message.delivery = data_delivery(to, {}, role.cause());
    message.delivery.outstanding = role.outstanding;
    message.fences = role.outstanding->fences;
    ++role.outstanding->operations;
    role.sim.queue(source, role.pe, role.index).post(std::move(message));
    if (completion == Completion::kBlocking) role.wait_for_outstanding();
  }
  role.report({.kind = OperationKind::kGet, .address = from, .target = to, .bytes = bytes, .begin = begin}, site);
}

void BlockCore::multimem(Symm<std::byte> at, Size bytes, MultimemOp op, Site site) {
  const bool is_load = op == MultimemOp::kLoad;
  Role& role = *role_;
  if (!has_multicast())
    throw Unsupported(fmt::format("{}:{}: machine '{}' has no multicast", site.file, site.line, role.sim.machine.name));
  if (bytes <= 0) return;
  for (int pe = 0; pe < num_pes(); ++pe) role.reachable_pe(at.on(pe), bytes, "multimem access", site);
  const Time begin = role.engine().now();
  // The switch copies (or adds): this PE's port carries the bytes once.
  const int peer = role.team.world_pe((role.team.me + 1) % role.team.size);
  const Time arrival =
      is_load ? role.move(peer, role.pe, bytes, Driver::kLoads) : role.move(role.pe, peer, bytes, Driver::kStores);
  if (!is_load) role.last_arrival = std::max(role.last_arrival, arrival);
  role.report({.kind = is_load ? OperationKind::kLoad : OperationKind::kStore,
               .address = is_load ? at.local() : nullptr,
               .target = is_load ? nullptr : at.local(),
               .bytes = bytes,
               .begin = begin},
              site);
  const AccessKind kind = is_load                     ? AccessKind::kLoad
                          : op == MultimemOp::kReduce ? AccessKind::kReduction
                                                      : AccessKind::kStore;
  for (int pe = 0; pe < num_pes(); ++pe) role.report_access(kind, at.on(pe), bytes, site);
}

void BlockCore::deliver_multimem(void* to, Buffer payload, Site) {
  if (payload) role_->sim.deliver(role_->last_arrival, data_delivery(to, std::move(payload), role_->cause()));
}

void BlockCore::sync(Site site) {
  role_->end_local();
  role_->streaming = false;
  role_->report({.kind = OperationKind::kSync, .scope = Scope::kBlock, .begin = role_->engine().now()}, site);
}

void BlockCore::run_roles(int n, const int* widths, const std::function<void(int, cpu::BlockCore&)>& body, Site site) {
  Role& parent = *role_;
  Engine& engine = parent.engine();
  require_roles(n, widths, parent.warps, parent.is_role);
  sync(site);
  if (n == 0) return;
  const int width = std::accumulate(widths, widths + n, 0);
  int running = n;
  Actor* const waiting = engine.current();
  std::vector<std::unique_ptr<Role>> roles;
  for (int i = 0; i < n; ++i) {
    std::string drawn_on = parent.lane == kNoLane ? "" : fmt::format("{} / role {}", parent.lane_name, i);
    roles.push_back(std::make_unique<Role>(parent.sim, parent.team, parent.pe, parent.index, parent.count, widths[i],
                                           std::move(drawn_on)));
    Role& role = *roles.back();
    role.outstanding = parent.outstanding;
    role.is_role = true;
    role.share = widths[i];
    if (parent.sim.seams.monitor != nullptr) role.thread = parent.sim.seams.monitor->begin_role(parent.thread, i);
    role.share_of = width;
    role.last_arrival = parent.last_arrival;
    Actor& actor = engine.spawn(engine.now(), [&body, &role, i] {
      BlockCore core(role);
      body(i, core);
      role.end_local();
    });
    actor.name = [&parent, i, name = waiting->name] {
      return (name ? name() : fmt::format("PE {}", parent.pe)) + fmt::format(" role {}", i);
    };
    if (Observer* const observer = parent.sim.observer)
      observer->on_start(parent.lane, engine.now(), role.lane, engine.now());
    actor.on_finish = [&parent, &engine, &running, &role, waiting] {
      if (--running > 0) return;
      if (Observer* const observer = parent.sim.observer)
        observer->on_start(role.lane, engine.now(), parent.lane, engine.now());
      engine.wake(*waiting, engine.now());
    };
  }
  engine.block([] { return std::string("waits for its roles"); });
  for (const auto& role : roles) {
    parent.last_arrival = std::max(parent.last_arrival, role->last_arrival);
    if (parent.sim.seams.monitor != nullptr) parent.sim.seams.monitor->end_role(parent.thread, role->thread);
  }
  sync(site);
}

}  // namespace tandem::sim
