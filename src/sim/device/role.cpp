#include "sim/device/role.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/run/folding.h"
#include "tandem/error.h"

namespace tandem::sim {

Time Role::move(int from, int to, Size bytes, Driver driver) {
  Engine& engine = sim.engine;
  const bool local = from == to;
  const bool loads = driver == Driver::kLoads;
  const Rate whole = local ? (loads ? sim.costs.block_reduce : sim.costs.block_memory)
                           : (loads ? sim.costs.block_load : sim.costs.block_store);
  const Rate rate = whole.share(share, share_of);
  if (local) end_local();
  if (loads && !streaming) {
    engine.sleep_until(engine.now() + (local ? sim.costs.local_latency : sim.costs.load_latency));
    streaming = true;
  }
  Time arrived = engine.now();
  for (Size done = 0, chunk = Network::chunk(bytes); done < bytes; done += chunk) {
    const Size part = std::min(chunk, bytes - done);
    const Time ready = engine.now();
    const Passage passage = sim.network.pass(from, to, part, driver, ready, {lane, ready});
    arrived = passage.arrived;
    sleep_beside_local(std::max(ready + rate.time(part), passage.next(loads)));
  }
  return std::max(arrived, engine.now());
}

void Role::begin_local(Size bytes, Driver driver, Rate rate) {
  if (driver == Driver::kLoads && !streaming) {
    sleep_beside_local(sim.engine.now() + sim.costs.local_latency);
    streaming = true;
  }
  local_.left += bytes;
  local_.rate = rate;
  local_.chunk = Network::chunk(bytes);
  local_.ready = std::max(local_.ready, sim.engine.now());
  advance_local();
}

void Role::advance_local() {
  const Time now = sim.engine.now();
  while (local_.left > 0 && local_.ready <= now) {
    const Size part = std::min(local_.chunk, local_.left);
    const Passage passage = sim.network.pass(pe, pe, part, Driver::kStores, now);
    local_.ready = std::max(now + local_.rate.share(share, share_of).time(part), passage.sent);
    local_.left -= part;
  }
}

void Role::sleep_beside_local(Time until) {
  while (local_.left > 0 && local_.ready < until) {
    sim.engine.sleep_until(local_.ready);
    advance_local();
  }
  sim.engine.sleep_until(until);
}

void Role::end_local() {
  const Time begin = sim.engine.now();
  while (local_.left > 0 || local_.ready > sim.engine.now()) {
    sim.engine.sleep_until(local_.ready);
    advance_local();
  }
  if (sim.engine.now() == begin) return;
  report({.kind = OperationKind::kMemory, .begin = begin}, Site::here());
  local_drawn_until_ = sim.engine.now();
}

void Role::end_accesses() {
  end_local();
  if (last_arrival > sim.engine.now()) sim.engine.sleep_until(last_arrival);
}

namespace {

const void* awaited(const SignalWait& wait) { return wait.words; }
const void* awaited(const PacketWait& wait) { return wait.packets; }

/// Reports a wait that never ends, so that it is drawn as one.
template <class Wait>
class ReportedIfStuck {
 public:
  ReportedIfStuck(Role& role, const Wait& wait) : role_(role), wait_(wait), begin_(role.engine().now()) {}
  ~ReportedIfStuck() {
    if (!Fiber::unwinding()) return;
    role_.report({.kind = OperationKind::kWait, .address = awaited(wait_), .begin = begin_}, Site::here());
  }
  ReportedIfStuck(const ReportedIfStuck&) = delete;
  ReportedIfStuck& operator=(const ReportedIfStuck&) = delete;

 private:
  Role& role_;
  const Wait& wait_;
  Time begin_;
};

template <class Wait>
void block_until_ready(Role& role, Wait& wait) {
  role.end_local();
  role.streaming = false;
  if (wait.advance() || Fiber::unwinding()) return;
  role.waiting = role.engine().current();
  wait.pe = role.pe;
  wait.argument = &role;
  wait.ready = [](void* waiting) {
    auto& ready = *static_cast<Role*>(waiting);
    ready.engine().wake(*ready.waiting, ready.engine().now() + ready.sim.late(Schedule::Point::kWake, ready.pe));
  };
  role.sim.signals.add(wait);
  const ReportedIfStuck<Wait> stuck(role, wait);
  role.engine().block([&role, &wait] { return role.sim.signals.describe(wait); });
}

}  // namespace

void Role::await(SignalWait& wait) { block_until_ready(*this, wait); }
void Role::await(PacketWait& wait) { block_until_ready(*this, wait); }

void Role::wait_for_outstanding() {
  end_accesses();
  while (outstanding->operations > 0 && !Fiber::unwinding()) {
    outstanding->waiting.push_back(sim.engine.current());
    sim.engine.block([] { return std::string("waits in quiet for puts under way"); });
  }
}

void Role::post(NicMessage message) {
  if (sim.seams.folding != nullptr) sim.seams.folding->redirect(sim, message, count);
  auto& queue = sim.queue(pe, message.to, index);
  queue.post(std::move(message));
}

Time Role::store_arrival(Time arrival) {
  if (sim.seams.schedule == nullptr) return arrival;
  return std::max(arrival + sim.late(Schedule::Point::kStore, pe), last_arrival);
}

int Role::owner_of(const void* address, Size bytes, const char* operation, Site site) const {
  if (!sim.memory.owns(address))
    throw InvalidArgument(fmt::format("{}:{}: {} to {}, which is no PE's memory: PEs are 0 to {}", site.file, site.line,
                                      operation, address, team.size - 1));
  require_held(address, bytes, operation, site);
  return sim.memory.pe_of(address);
}

int Role::reachable_pe(const void* address, Size bytes, const char* operation, Site site) const {
  if (address == nullptr)
    throw InvalidArgument(fmt::format("{}:{}: {} of a null address by PE {}", site.file, site.line, operation, pe));
  require_held(address, bytes, operation, site);
  const int owner = sim.memory.pe_of(address);
  if (!sim.topology.reachable(pe, owner))
    throw CheckFailed(fmt::format("{}:{}: {} of {} by PE {}, which cannot reach it by loads and stores; use put or get",
                                  site.file, site.line, operation, sim.memory.describe(address), pe));
  return owner;
}

void Role::require_held(const void* address, Size bytes, const char* operation, Site site) const {
  if (sim.is_usable(address, bytes)) return;
  if (!sim.memory.holds(address, bytes))
    throw InvalidArgument(fmt::format("{}:{}: {} of {} bytes at {} by PE {}, which are not in one PE's memory",
                                      site.file, site.line, operation, bytes, address, pe));
  throw InvalidArgument(fmt::format("{}:{}: {} of {} bytes by PE {} at {}, which are not within one buffer{}",
                                    site.file, site.line, operation, bytes, pe,
                                    sim.memory.describe_range(address, bytes), sim.memory.describe_size(address)));
}

void Role::require_array(const void* address, Size bytes, const char* operation, Site site) const {
  require_held(address, bytes, operation, site);
  if (sim.seams.monitor != nullptr && !sim.memory.within_buffer(address, bytes))
    sim.seams.monitor->out_of_bounds(thread, operation, address, bytes, site);
}

void Role::require_contents(const void* address, const char* operation, Site site) const {
  if (!sim.memory.backed(address))
    throw InvalidArgument(fmt::format("{}:{}: {} of {} by PE {}, which a phantom simulation has no contents of",
                                      site.file, site.line, operation, sim.memory.describe(address), pe));
}

namespace {

/// Returns whether a polling loop may consist of such operations. Time in local memory belongs to its loads.
bool is_look(const Operation& operation) {
  return operation.kind == OperationKind::kTest || operation.kind == OperationKind::kAtomic ||
         operation.kind == OperationKind::kSync || operation.kind == OperationKind::kMemory ||
         (operation.kind == OperationKind::kLoad && operation.bytes <= Size{sizeof(std::uint64_t)});
}

}  // namespace

void Role::report(Operation operation, Site site) {
  if (!is_look(operation)) acted();
  if (sim.observer == nullptr) return;
  operation.begin = std::max(operation.begin, local_drawn_until_);
  operation.actor = sim.engine.current()->id();
  operation.lane = lane;
  operation.pe = pe;
  operation.end = sim.engine.now();
  operation.site = site;
  sim.observer->on_operation(operation);
}

}  // namespace tandem::sim
