#include "sim/kernel.h"

#include <fmt/format.h>

#include <algorithm>

namespace tandem::sim {

namespace {

struct Placement {
  int sm = -1;
  int slot = 0;
};

/// A grid in flight; its blocks keep it alive.
class Kernel : public std::enable_shared_from_this<Kernel> {
 public:
  Kernel(Simulator& simulator, KernelRequest request) : sim_(simulator), request_(std::move(request)) {}

  void start() {
    left_ = request_.blocks;
    if (monitor() != nullptr) id_ = monitor()->begin_kernel(request_.stream, request_.name);
    Pe& pe = device();
    for (int block = 0; block < request_.blocks; ++block) {
      auto start_block = [self = shared_from_this(), block] { return self->try_start(block); };
      if (!pe.waiting_blocks.empty() || !start_block()) pe.waiting_blocks.push_back(start_block);
    }
  }

 private:
  Monitor* monitor() const { return sim_.seams.monitor; }
  Pe& device() { return sim_.pes[static_cast<std::size_t>(request_.pe)]; }

  /// Takes room on the emptiest SM that has enough, as the hardware's scheduler spreads blocks.
  Placement place() {
    const auto& limits = sim_.machine.gpu;
    std::vector<Sm>& sms = device().sms;
    int best = -1;
    for (int i = 0; i < static_cast<int>(sms.size()); ++i) {
      const Sm& sm = sms[static_cast<std::size_t>(i)];
      if (sm.threads + request_.threads > limits.max_threads_per_sm || sm.blocks >= limits.max_blocks_per_sm) continue;
      if (best < 0 || sm.threads < sms[static_cast<std::size_t>(best)].threads) best = i;
      if (sm.threads == 0) break;
    }
    if (best < 0) return {};
    if (sim_.seams.schedule != nullptr) best = another_place(best);
    Sm& sm = sms[static_cast<std::size_t>(best)];
    sm.threads += request_.threads;
    ++sm.blocks;
    const auto free = std::find(sm.slots.begin(), sm.slots.end(), false);
    const int slot = static_cast<int>(free - sm.slots.begin());
    if (free == sm.slots.end()) sm.slots.push_back(true);
    sm.slots[static_cast<std::size_t>(slot)] = true;
    return {best, slot};
  }

  /// One of the SMs that have room, as a schedule chooses.
  int another_place(int best) {
    const auto& limits = sim_.machine.gpu;
    std::vector<Sm>& sms = device().sms;
    const int tried = (best + sim_.seams.schedule->choose(static_cast<int>(sms.size()))) % static_cast<int>(sms.size());
    const Sm& sm = sms[static_cast<std::size_t>(tried)];
    const bool has_room =
        sm.threads + request_.threads <= limits.max_threads_per_sm && sm.blocks < limits.max_blocks_per_sm;
    return has_room ? tried : best;
  }

  void give_back(const Placement& at) {
    Sm& sm = device().sms[static_cast<std::size_t>(at.sm)];
    sm.threads -= request_.threads;
    --sm.blocks;
    sm.slots[static_cast<std::size_t>(at.slot)] = false;
  }

  bool try_start(int block) {
    const Placement at = place();
    if (at.sm < 0) return false;
    const Lane lane = sim_.observer == nullptr ? kNoLane
                                               : sim_.add_lane(request_.pe, LaneKind::kSm,
                                                               at.slot == 0 ? fmt::format("sm {}", at.sm)
                                                                            : fmt::format("sm {}.{}", at.sm, at.slot));
    auto role =
        std::make_shared<Role>(sim_, request_.team, request_.pe, block, request_.blocks, request_.threads / 32, lane);
    if (monitor() != nullptr) role->thread = monitor()->begin_block(id_, block);
    const Time begin = sim_.engine.now() + sim_.late(Schedule::Point::kBlockStart, request_.pe);
    if (sim_.observer != nullptr) sim_.observer->on_start(request_.cause.lane, request_.cause.time, lane, begin);
    Actor& actor = sim_.engine.spawn(begin, [self = shared_from_this(), role] {
      self->request_.body(*role);
      role->end_local();
    });
    actor.name = [self = shared_from_this(), block] {
      return fmt::format("PE {} block {} of {}", self->request_.pe, block, self->request_.name);
    };
    actor.on_finish = [self = shared_from_this(), at, lane, begin, thread = role->thread] {
      self->finish_block(at, lane, begin, thread);
    };
    return true;
  }

  void finish_block(const Placement& at, Lane lane, Time begin, Thread thread) {
    give_back(at);
    if (monitor() != nullptr) monitor()->end_block(id_, thread);
    if (sim_.observer != nullptr) sim_.observer->on_kernel(lane, request_.name, begin, sim_.engine.now());
    Pe& pe = device();
    while (!pe.waiting_blocks.empty() && pe.waiting_blocks.front()()) pe.waiting_blocks.pop_front();
    if (--left_ == 0) request_.on_finish(lane);
  }

  Simulator& sim_;
  KernelRequest request_;
  int left_ = 0;
  KernelId id_ = 0;  // the monitor's
};

}  // namespace

void run_kernel(Simulator& simulator, KernelRequest request) {
  std::make_shared<Kernel>(simulator, std::move(request))->start();
}

}  // namespace tandem::sim
