#include "kernels/copy_engine_plan.h"

#include <algorithm>
#include <vector>

#include "kernels/copy_engine.h"
#include "kernels/plan.h"

namespace tandem::kernels {

namespace {

constexpr Grid kOneWarp{1, 32};

class CopyEnginePlan final : public CollectivePlan {
 public:
  CopyEnginePlan(World& world, Collective collective, const CollectiveOptions& options, const Team& team, Pieces pieces,
                 CopyDirection direction)
      : algorithm_(options.algorithm),
        name_(plan_name(collective, options)),
        team_(team),
        pieces_(pieces),
        direction_(direction),
        max_count_(options.max_count),
        element_bytes_(size_of(options.type)) {
    PlanSetup setup(world, team, name_, 1, max_count_ * element_bytes_);
    args_ = {setup.slots("ready"), setup.slots("arrived"), setup.epochs()};
    const int streams = std::max(1, std::min(team.size - 1, world.machine().gpu.copy_engines));
    for (int i = 0; i < streams; ++i) copies_.push_back(world.make_stream(name_ + " copies " + std::to_string(i)));
  }

  void run(Stream& stream, Symm<const std::byte> in, Symm<std::byte> out, Size count) override {
    check_count(name_, count, max_count_);
    const Size bytes = count * element_bytes_;
    stream.launch<CopyEngineBegin>(kOneWarp, args_, team_);
    const Event begun = stream.record();
    for (Stream& copies : copies_) copies.wait(begun);
    enqueue_copies(in.of(team_), out.of(team_), bytes);
    for (Stream& copies : copies_) stream.wait_for(copies);
    if (direction_ == CopyDirection::kPush)
      stream.launch<CopyEngineEndPush>(kOneWarp, args_, team_);
    else
      stream.launch<CopyEngineEndPull>(kOneWarp, args_, team_);
  }

  const std::string& algorithm() const override { return algorithm_; }

 private:
  /// The next PE first, so that no two PEs copy to or from the same peer at once; the own piece last.
  void enqueue_copies(Symm<const std::byte> in, Symm<std::byte> out, Size bytes) {
    // In place, each PE's input is another part of the output.
    const bool in_place = pieces_ == Pieces::kSame && in.local() == out.local() + team_.me * bytes;
    for (int step = 1; step <= team_.size; ++step) {
      const int peer = (team_.me + step) % team_.size;
      Stream& copies = copies_[static_cast<std::size_t>(step - 1) % copies_.size()];
      const bool is_push = direction_ == CopyDirection::kPush;
      const int from = is_push ? team_.me : peer;
      const int to = is_push ? peer : team_.me;
      std::byte* const target = out.on(to) + from * bytes;
      const std::byte* const source = in_place                   ? out.on(from) + from * bytes
                                      : pieces_ == Pieces::kSame ? in.on(from)
                                                                 : in.on(from) + to * bytes;
      if (target != source) copies.copy_async(target, source, bytes);
      if (is_push && peer != team_.me) copies.write_signal_from(args_.arrived.on(peer) + team_.me, args_.epochs.words);
    }
  }

  std::string algorithm_;
  std::string name_;
  Team team_;
  Pieces pieces_;
  CopyDirection direction_;
  Size max_count_;
  Size element_bytes_;
  CopyEngineArgs args_{};
  std::vector<Stream> copies_;
};

}  // namespace

std::unique_ptr<CollectivePlan> make_copy_engine_plan(World& world, Collective collective,
                                                      const CollectiveOptions& options, const Team& team, Pieces pieces,
                                                      CopyDirection direction) {
  return std::make_unique<CopyEnginePlan>(world, collective, options, team, pieces, direction);
}

}  // namespace tandem::kernels
