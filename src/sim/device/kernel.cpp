#include "sim/device/kernel.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/run/folding.h"

namespace tandem::sim {

Kernel::Kernel(Simulator& simulator, KernelRequest request) : sim_(simulator), request_(std::move(request)) {
  if (sim_.seams.folding == nullptr || sim_.seams.folding->runs(sim_, request_.pe)) return;
  request_.blocks = 1;
  request_.idle_blocks = 0;
  request_.body = [](Role&) {};
}

void Kernel::place() {
  if (is_placed_) return;
  is_placed_ = true;
  left_ = request_.blocks;
  Pe& pe = device();
  // Blocks with work are placed last: if the kernel lacks places, these blocks lack them.
  const int all = request_.blocks + request_.idle_blocks;
  for (int i = 0; i < all; ++i) {
    const int block = (request_.blocks + i) % all;
    auto place_block = [self = shared_from_this(), block] { return self->try_place(block); };
    if (!pe.waiting_blocks.empty() || !place_block()) pe.waiting_blocks.push_back(place_block);
  }
}

void Kernel::begin(const Cause& cause) {
  cause_ = cause;
  has_begun_ = true;
  if (monitor() != nullptr) id_ = monitor()->begin_kernel(request_.stream, request_.name, request_.epoch_first);
  place();
  for (const PlacedBlock& placed : std::exchange(placed_, {})) start(placed);
}

bool Kernel::has_room(const Sm& sm) const {
  const auto& limits = sim_.machine.gpu;
  return sm.threads + request_.room <= limits.max_threads_per_sm && sm.blocks < limits.max_blocks_per_sm;
}

/// Takes room on the emptiest SM that has enough, as the hardware's scheduler spreads blocks.
Kernel::Placement Kernel::take_room() {
  std::vector<Sm>& sms = device().sms;
  int best = -1;
  for (int i = 0; i < static_cast<int>(sms.size()); ++i) {
    const Sm& sm = sms[static_cast<std::size_t>(i)];
    if (!has_room(sm)) continue;
    if (best < 0 || sm.threads < sms[static_cast<std::size_t>(best)].threads) best = i;
    if (sm.threads == 0) break;
  }
  if (best < 0) return {};
  if (sim_.seams.schedule != nullptr) best = another_place(best);
  Sm& sm = sms[static_cast<std::size_t>(best)];
  sm.threads += request_.room;
  ++sm.blocks;
  const auto free = std::find(sm.slots.begin(), sm.slots.end(), false);
  const int slot = static_cast<int>(free - sm.slots.begin());
  if (free == sm.slots.end()) sm.slots.push_back(true);
  sm.slots[static_cast<std::size_t>(slot)] = true;
  return {best, slot};
}

/// One of the SMs that have room, as a schedule chooses.
int Kernel::another_place(int best) const {
  const std::vector<Sm>& sms = device().sms;
  const int tried = (best + sim_.seams.schedule->choose(static_cast<int>(sms.size()))) % static_cast<int>(sms.size());
  return has_room(sms[static_cast<std::size_t>(tried)]) ? tried : best;
}

void Kernel::give_back(const Placement& at) {
  Sm& sm = device().sms[static_cast<std::size_t>(at.sm)];
  sm.threads -= request_.room;
  --sm.blocks;
  sm.slots[static_cast<std::size_t>(at.slot)] = false;
}

bool Kernel::try_place(int block) {
  if (left_ == 0) return true;  // an idle block, and all is over
  const Placement at = take_room();
  if (at.sm < 0) return false;
  if (block >= request_.blocks)
    idle_.push_back(at);
  else if (has_begun_)
    start({block, at});
  else
    placed_.push_back({block, at});
  return true;
}

void Kernel::start(const PlacedBlock& placed) {
  const Placement at = placed.at;
  std::string drawn_on;
  if (sim_.observer != nullptr)
    drawn_on = at.slot == 0 ? fmt::format("sm {}", at.sm) : fmt::format("sm {}.{}", at.sm, at.slot);
  auto role = std::make_shared<Role>(sim_, request_.team, request_.pe, placed.block, request_.blocks,
                                     request_.threads / 32, std::move(drawn_on));
  const Lane lane = role->lane;
  if (monitor() != nullptr) role->thread = monitor()->begin_block(id_, placed.block);
  role->let_next_start = [this] {
    if (++lets_next_ == request_.blocks) request_.on_let_next();
  };
  const Time begin = sim_.engine.now() + request_.startup + sim_.late(Schedule::Point::kBlockStart, request_.pe);
  if (sim_.observer != nullptr) sim_.observer->on_start(cause_.lane, cause_.time, lane, begin);
  Actor& actor = sim_.engine.spawn(begin, [self = shared_from_this(), role] {
    self->request_.body(*role);
    role->end_accesses();
  });
  actor.name = [self = shared_from_this(), block = placed.block] {
    return fmt::format("PE {} block {} of {}", self->request_.pe, block, self->request_.name);
  };
  actor.on_finish = [self = shared_from_this(), at, lane, begin, thread = role->thread] {
    self->finish_block(at, lane, begin, thread);
  };
}

void Kernel::finish_block(const Placement& at, Lane lane, Time begin, Thread thread) {
  if (request_.keeps_places)
    idle_.push_back(at);
  else
    give_back(at);
  if (--left_ == 0)
    for (const Placement& idle : std::exchange(idle_, {})) give_back(idle);
  if (monitor() != nullptr) monitor()->end_block(id_, thread);
  if (sim_.observer != nullptr) sim_.observer->on_kernel(lane, request_.name, begin, sim_.engine.now());
  Pe& pe = device();
  while (!pe.waiting_blocks.empty() && pe.waiting_blocks.front()()) pe.waiting_blocks.pop_front();
  if (left_ == 0) request_.on_finish(lane);
}

}  // namespace tandem::sim
