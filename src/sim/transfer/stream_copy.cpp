// A stream's copies by copy engine.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "sim/transfer/stream.h"
#include "tandem/error.h"

namespace tandem::sim {

/// A copy within a PE is a kernel on GPUs, so it takes no copy engine from copies to peers.
constexpr int kNoEngine = -1;

/// A copy under way on a copy engine.
struct SimStream::Copy {
  void* to;
  const void* from;
  Size bytes;
  int source;
  int target;
  Site site;
  Size sent = 0;
  int copy_engine = kNoEngine;
  Lane lane = kNoLane;
  Time begin = 0;
};

void SimStream::copy(void* to, const void* from, Size bytes) {
  if (bytes < 0) throw InvalidArgument(fmt::format("copy_async: {} bytes given, must not be negative", bytes));
  if (bytes == 0) return;
  for (const void* address : {static_cast<const void*>(to), from})
    if (!sim_.is_usable(address, bytes))
      throw InvalidArgument(fmt::format("copy_async: {} bytes at {} given, which is not one buffer's{}", bytes,
                                        sim_.memory.describe(address), sim_.memory.describe_size(address)));
  const int source = sim_.memory.pe_of(from);
  const int target = sim_.memory.pe_of(to);
  if (!sim_.topology.reachable(source, target) || (source != pe_ && target != pe_))
    throw InvalidArgument(
        fmt::format("copy_async on PE {}: from {} to {}: one end must be this PE's, the other reachable from it", pe_,
                    sim_.memory.describe(from), sim_.memory.describe(to)));
  enqueue("copy", [this, to, from, bytes, source, target, from_site = site] {
    auto copy = std::make_shared<Copy>(Copy{to, from, bytes, source, target, from_site});
    if (source == target) return start_copy(copy, kNoEngine);
    std::vector<bool>& engines = sim_.pes[static_cast<std::size_t>(pe_)].copy_engines;
    const auto free = std::find(engines.begin(), engines.end(), false);
    if (free != engines.end())
      start_copy(copy, static_cast<int>(free - engines.begin()));
    else
      sim_.pes[static_cast<std::size_t>(pe_)].waiting_copies.push_back(
          [this, copy](int engine) { start_copy(copy, engine); });
  });
}

void SimStream::start_copy(const std::shared_ptr<Copy>& copy, int copy_engine) {
  const bool is_local = copy_engine == kNoEngine;
  if (!is_local) sim_.pes[static_cast<std::size_t>(pe_)].copy_engines[static_cast<std::size_t>(copy_engine)] = true;
  copy->copy_engine = copy_engine;
  copy->lane = sim_.observer == nullptr ? kNoLane
                                        : sim_.add_lane(pe_, LaneKind::kCopyEngine,
                                                        is_local ? fmt::format("local copies of {}", name_)
                                                                 : fmt::format("copy engine {}", copy_engine));
  copy->begin = sim_.engine.now();
  if (sim_.observer != nullptr) sim_.observer->on_start(last_.lane, last_.time, copy->lane, copy->begin);
  after(sim_.costs.copy_startup, [this, copy] { continue_copy(copy); });
}

void SimStream::continue_copy(const std::shared_ptr<Copy>& copy) {
  // It runs on its own actor, chunk by chunk, so that other flows get their turns on the link.
  Engine& engine = sim_.engine;
  Time arrived = engine.now();
  for (const Size chunk = Network::chunk(copy->bytes); copy->sent < copy->bytes;) {
    const Size part = std::min(chunk, copy->bytes - copy->sent);
    const Passage passage = sim_.network.pass(copy->source, copy->target, part, Driver::kCopyEngine, engine.now(),
                                              {copy->lane, engine.now()});
    copy->sent += part;
    arrived = passage.arrived;
    engine.sleep_until(passage.next(copy->target == pe_));
  }
  engine.sleep_until(arrived + sim_.late(Schedule::Point::kCopy, pe_));
  if (Monitor* const monitor = sim_.seams.monitor; monitor != nullptr) {
    monitor->access(thread_, {AccessKind::kCopyEngineLoad, copy->from, copy->bytes}, copy->site);
    monitor->access(thread_, {AccessKind::kCopyEngineStore, copy->to, copy->bytes}, copy->site);
  }
  if (sim_.memory.backed(copy->from) && sim_.memory.backed(copy->to))
    std::memcpy(copy->to, copy->from, static_cast<std::size_t>(copy->bytes));
  engine.trace(static_cast<std::uint32_t>(pe_), 100, copy->bytes);
  if (sim_.observer != nullptr) {
    Operation operation;
    operation.kind = OperationKind::kCopyEngine;
    operation.actor = engine.current()->id();
    operation.lane = copy->lane;
    operation.pe = pe_;
    operation.address = copy->from;
    operation.target = copy->to;
    operation.bytes = copy->bytes;
    operation.begin = copy->begin;
    operation.end = engine.now();
    sim_.observer->on_operation(operation);
  }
  if (copy->copy_engine != kNoEngine) pass_on_engine(copy->copy_engine);
  finish({pe_, copy->lane, engine.now()});
}

void SimStream::pass_on_engine(int copy_engine) {
  Pe& pe = device();
  pe.copy_engines[static_cast<std::size_t>(copy_engine)] = false;
  if (pe.waiting_copies.empty()) return;
  const auto next = std::move(pe.waiting_copies.front());
  pe.waiting_copies.pop_front();
  next(copy_engine);
}

}  // namespace tandem::sim
