#include "collectives/plan/copy_engine_plan.h"

#include <algorithm>

#include "collectives/plan/copy_engine.h"
#include "collectives/plan/copy_lanes.h"
#include "collectives/plan/plan.h"
#include "tandem/advanced/local_handle.h"
#include "tandem/error.h"

namespace tandem::kernels {

namespace {

constexpr Grid kOneWarp{1, 32};

class CopyEnginePlan final : public CollectivePlan {
 public:
  CopyEnginePlan(World& world, Collective collective, const CollectiveOptions& options, const Team& team,
                 CopyPattern pattern, CopyDirection direction)
      : algorithm_(options.algorithm),
        name_(plan_name(collective, options)),
        team_(team),
        pattern_(pattern),
        direction_(direction),
        max_count_(options.max_count),
        element_bytes_(size_of(options.type)),
        own_part_{options.blocks, options.threads},
        lanes_(world, name_) {
    if (own_by_sms()) world.check_launch<CopyOwnPart>(own_part_);
    PlanSetup setup(world, team, name_, 1, max_count_ * element_bytes_);
    args_ = {setup.slots("ready"), setup.slots("arrived"), setup.epochs(), source(1), targets()};
  }

  void run(Stream& stream, Symm<const std::byte> in, Symm<std::byte> out, Size count) override {
    check_call(name_, in, out, count, max_count_);
    if (direction_ == CopyDirection::kPull && is_local_handle(out))
      throw InvalidArgument("out: memory that peers do not reach given to " + name_ + ", allowed is the heap's");
    stream.launch<CopyEngineBegin>(kOneWarp, args_, team_);
    lanes_.begin_after(stream);
    enqueue_copies(in.of(team_), out.of(team_), count * element_bytes_);
    const bool by_sms = copy_own_part(stream, in.of(team_), out.of(team_), count * element_bytes_);
    if (direction_ == CopyDirection::kPush) {
      // It only waits for the peers, so it does not have to wait for this PE's copies.
      if (!by_sms) stream.launch<CopyEngineEndPush>(kOneWarp, args_, team_);
      lanes_.join(stream);
    } else {
      lanes_.join(stream);
      stream.launch<CopyEngineEndPull>(kOneWarp, args_, team_);
    }
  }

  const std::string& algorithm() const override { return algorithm_; }
  int blocks() const override { return own_part_.blocks; }

 private:
  bool all_peers() const { return pattern_ == CopyPattern::kAllGather || pattern_ == CopyPattern::kAllToAll; }
  /// Returns the PEs to which this PE sends, and from which it receives.
  int targets() const {
    if (all_peers()) return team_.size - 1;
    return target(1) == team_.me ? 0 : 1;
  }
  int target(int step) const {
    if (pattern_ != CopyPattern::kSwap) return (team_.me + step) % team_.size;
    return (team_.me ^ 1) < team_.size ? team_.me ^ 1 : team_.me;
  }
  int source(int step) const {
    return pattern_ == CopyPattern::kRing ? (team_.me + team_.size - step) % team_.size : target(step);
  }

  void enqueue_copies(Symm<const std::byte> in, Symm<std::byte> out, Size bytes) {
    for (int step = 1; step <= targets(); ++step) {
      const int peer = target(step);
      const bool is_push = direction_ == CopyDirection::kPush;
      const int from = is_push ? team_.me : peer;
      const int to = is_push ? peer : team_.me;
      lanes_.copy(place(out, from, to, bytes), chunk(in, out, from, to, bytes), bytes);
      if (is_push) lanes_.signal(args_.arrived.on(peer) + team_.me, args_.epochs.words);
    }
  }

  /// Returns whether SMs copy the bytes that stay on the GPU, if they move at all.
  bool own_by_sms() const { return direction_ == CopyDirection::kPush && own_part_.blocks > 0; }

  /// This copy comes after the others, so that the link does not wait. If SMs do it, it is part of the call's last
  /// kernel.
  bool copy_own_part(Stream& stream, Symm<const std::byte> in, Symm<std::byte> out, Size bytes) {
    if (!all_peers() && targets() > 0) return false;
    std::byte* const to = place(out, team_.me, team_.me, bytes);
    const std::byte* const from = chunk(in, out, team_.me, team_.me, bytes);
    const bool by_sms = own_by_sms() && to != from;
    if (by_sms)
      stream.launch<CopyOwnPart>(own_part_, {args_, to, from, bytes}, team_);
    else
      lanes_.copy_local(to, from, bytes);
    return by_sms;
  }

  /// Returns the destination and the source of PE `from`'s bytes for PE `to`.
  std::byte* place(Symm<std::byte> out, int from, int to, Size bytes) const {
    return out.on(to) + (all_peers() ? from * bytes : 0);
  }
  const std::byte* chunk(Symm<const std::byte> in, Symm<std::byte> out, int from, int to, Size bytes) const {
    if (pattern_ == CopyPattern::kAllToAll) return in.on(from) + to * bytes;
    // In place, each PE's input is another part of the output. The output is one buffer on all PEs, also for pull (see
    // all_gather_algorithms). A call that is in place here is therefore in place there.
    const bool in_place = pattern_ == CopyPattern::kAllGather && in.local() == out.local() + team_.me * bytes;
    return in_place ? out.on(from) + from * bytes : in.on(from);
  }

  std::string algorithm_;
  std::string name_;
  Team team_;
  CopyPattern pattern_;
  CopyDirection direction_;
  Size max_count_;
  Size element_bytes_;
  Grid own_part_;  // 0 blocks: a copy engine does it
  CopyEngineArgs args_{};
  CopyLanes lanes_;
};

}  // namespace

std::unique_ptr<CollectivePlan> make_copy_engine_plan(World& world, Collective collective,
                                                      const CollectiveOptions& options, const Team& team,
                                                      CopyPattern pattern, CopyDirection direction) {
  return std::make_unique<CopyEnginePlan>(world, collective, options, team, pattern, direction);
}

}  // namespace tandem::kernels
