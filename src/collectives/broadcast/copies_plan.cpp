#include "collectives/broadcast/copies_plan.h"

#include <algorithm>

#include "collectives/plan/copy_engine.h"
#include "collectives/plan/copy_lanes.h"
#include "collectives/plan/plan.h"

namespace tandem::kernels {

namespace {

class BroadcastCopiesPlan final : public CollectivePlan {
 public:
  BroadcastCopiesPlan(World& world, const CollectiveOptions& options, const Team& team)
      : algorithm_(options.algorithm),
        name_(plan_name(Collective::kBroadcast, options)),
        team_(team),
        root_(options.root),
        max_count_(options.max_count),
        element_bytes_(size_of(options.type)),
        own_part_{options.blocks, options.threads},
        lanes_(world, name_) {
    if (own_part_.blocks > 0) world.check_launch<CopyOwnPart>(own_part_);
    PlanSetup setup(world, team, name_, 1, max_count_ * element_bytes_);
    ready_ = setup.slots("ready");
    arrived_ = setup.signals(kMostChunks * team.size, "arrived");
    epochs_ = setup.epochs();
  }

  void run(Stream& stream, Symm<const std::byte> in, Symm<std::byte> out, Size count) override {
    check_call(name_, in, out, count, max_count_);
    const Split parts = split(count * element_bytes_, std::max(1, others()), 16);
    const Size chunks = others() < 2 ? 1 : std::clamp<Size>(parts.step() / kChunkBytes, 1, kMostChunks);
    stream.launch<CopyEngineBegin>(kOneWarp, arrival(0, 0, 0), team_);
    lanes_.begin_after(stream);
    if (team_.me == root_) {
      scatter(in.of(team_), out.of(team_), parts, chunks);
      copy_own_part(stream, in.local(), out.local(), parts[parts.parts() - 1].end);
    } else {
      pass_on(out.of(team_), parts, chunks);
    }
    // A PE's last chunk comes after all others.
    if (team_.me != root_)
      stream.launch<CopyEngineEndPush>(kOneWarp, arrival(chunks - 1, (team_.me + 1) % team_.size, others()), team_);
    lanes_.join(stream);
  }

  const std::string& algorithm() const override { return algorithm_; }

 private:
  static constexpr Grid kOneWarp{1, 32};
  static constexpr Size kMostChunks = 8;
  static constexpr Size kChunkBytes = Size{8} << 20;

  int others() const { return team_.size - 1; }
  int other(int i) const { return (root_ + 1 + i) % team_.size; }
  CopyEngineArgs arrival(Size chunk, int first_source, int sources) const {
    return {ready_, arrived_ + chunk * team_.size, epochs_, first_source, sources};
  }
  static Range piece(const Split& parts, int part, Size chunks, Size chunk) {
    return split(parts[part], chunks, 16)[chunk];
  }

  void send(Symm<std::byte> out, const std::byte* from, Range range, int pe, Size chunk) {
    if (!range.empty()) lanes_.copy(out.on(pe) + range.begin, from + range.begin, range.size());
    lanes_.signal(arrived_.on(pe) + (chunk * team_.size + team_.me), epochs_.words);
  }

  void scatter(Symm<const std::byte> in, Symm<std::byte> out, const Split& parts, Size chunks) {
    for (Size c = 0; c < chunks; ++c)
      for (int i = 0; i < others(); ++i) send(out, in.local(), piece(parts, i, chunks, c), other(i), c);
  }

  void copy_own_part(Stream& stream, const std::byte* from, std::byte* to, Size bytes) {
    if (own_part_.blocks > 0 && to != from)
      stream.launch<CopyOwnPart>(own_part_, {arrival(0, 0, 0), to, from, bytes}, team_);
    else
      lanes_.copy_local(to, from, bytes);
  }

  void pass_on(Symm<std::byte> out, const Split& parts, Size chunks) {
    const int mine = (team_.me - root_ - 1 + team_.size) % team_.size;
    for (Size c = 0; c < chunks && others() > 1; ++c) {
      lanes_.copies().launch<CopyEngineEndPush>(kOneWarp, arrival(c, root_, 1), team_);
      // The previous PE is served first: the root is sending to the next one now, and no two copies then meet at a PE.
      for (int step = others() - 1; step > 0; --step)
        send(out, out.local(), piece(parts, mine, chunks, c), other((mine + step) % others()), c);
    }
  }

  std::string algorithm_;
  std::string name_;
  Team team_;
  int root_;
  Size max_count_;
  Size element_bytes_;
  Grid own_part_;  // 0 blocks: a copy engine does it
  Signals ready_;
  Signals arrived_;  // [chunk][PE]: that PE's bytes of the chunk have arrived
  Epochs epochs_;
  CopyLanes lanes_;
};

}  // namespace

std::unique_ptr<CollectivePlan> make_broadcast_copies(World& world, const CollectiveOptions& options,
                                                      const Team& team) {
  return std::make_unique<BroadcastCopiesPlan>(world, options, team);
}

}  // namespace tandem::kernels
