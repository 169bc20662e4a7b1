#pragma once
/// Reduce-scatter and all-reduce for large sizes. Copy engines bring every peer's values for this PE's shard into
/// staging, chunk by chunk. Kernels sum the chunks that have arrived. For an all-reduce copy engines then distribute
/// the sums.
///
/// Fixed order: in[0] + in[1] + ... + in[n-1], rounded to T once. Each link carries (n-1)/n of the input, twice in an
/// all-reduce, at the copy engines' rate. The staging is as large as the shards of all peers. Each chunk is half as
/// long as the previous one, so there are few copies, and little is left to sum at the end. In-place allowed. One node
/// only.

#include <algorithm>
#include <vector>

#include "collectives/plan/copy_engine.h"
#include "collectives/plan/copy_lanes.h"
#include "collectives/plan/plan.h"
#include "collectives/steps/reduce_copies.h"

namespace tandem::kernels {

/// Returns the chunks of `shard` elements: at most kMostChunks, each twice as long as the next.
inline std::vector<Range> halving_chunks(Size shard, Size element_bytes) {
  constexpr Size kMostChunks = 4;
  constexpr Size kLeastBytes = Size{2} << 20;
  Size chunks = 1;
  while (chunks < kMostChunks && shard * element_bytes / ((Size{2} << chunks) - 1) >= kLeastBytes) ++chunks;
  const Size unit = round_up(ceil_div(shard, (Size{1} << chunks) - 1), 16);
  std::vector<Range> ranges;
  for (Size i = 0, at = 0; i < chunks; ++i) {
    const Size end = std::min(shard, at + (unit << (chunks - 1 - i)));
    ranges.push_back({at, end});
    at = end;
  }
  return ranges;
}

template <class T>
class CopiedReducePlan final : public CollectivePlan {
 public:
  CopiedReducePlan(World& world, Collective collective, const CollectiveOptions& options, const Team& team)
      : algorithm_(options.algorithm),
        name_(plan_name(collective, options)),
        team_(team),
        gathers_(collective == Collective::kAllReduce),
        grid_{plan_blocks(world, collective, options, team), options.threads},
        max_count_(options.max_count),
        lanes_(world, name_) {
    world.check_launch<CopiedReduce<T>>(grid_);
    PlanSetup setup(world, team, name_, 1, max_count_);
    const Size shard = gathers_ ? split(max_count_, team.size, 16).step() : max_count_;
    capacity_ = round_up(shard, 16);
    staging_ = setup.template symmetric<T>(team.size * capacity_, "staging");
    args_.staging = staging_.local();
    args_.capacity = capacity_;
    args_.scales = setup.template symmetric<Accumulator<T>>(2, "scales");
    args_.ready = setup.slots("ready");
    arrived_ = setup.signals(kMostChunks * team.size, "arrived");
    gathered_ = setup.slots("gathered");
    args_.epochs = setup.epochs();
    args_.op = options.op;
    args_.scale = convert<Accumulator<T>>(options.scale);
  }

  void run(Stream& stream, Symm<const std::byte> in_bytes, Symm<std::byte> out_bytes, Size count) override {
    check_call(name_, in_bytes, out_bytes, count, max_count_, alignof(T));
    const auto in = in_bytes.of(team_).template as<const T>();
    const auto out = out_bytes.of(team_).template as<T>();
    const Split shards = gathers_ ? split(count, team_.size, 16) : Split({0, count * team_.size}, team_.size);
    const std::vector<Range> chunks = halving_chunks(shards.step(), sizeof(T));
    stream.launch<CopiedReduceBegin<T>>({1, 32}, args_, team_);
    lanes_.begin_after(stream);
    for (std::size_t c = 0; c < chunks.size(); ++c) collect(in, shards, chunks[c], c);
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      sum(stream, in, out, shards[team_.me], chunks[c], c);
      if (gathers_) spread(stream, out, clip(shards[team_.me], chunks[c]), c + 1 == chunks.size());
    }
    if (gathers_) {
      const CopyEngineArgs end{args_.ready, gathered_, args_.epochs, (team_.me + 1) % team_.size, team_.size - 1};
      stream.launch<CopyEngineEndPush>({1, 32}, end, team_);
    }
    lanes_.join(stream);
  }

  const std::string& algorithm() const override { return algorithm_; }
  int blocks() const override { return grid_.blocks; }

 private:
  static constexpr Size kMostChunks = 4;

  static Range clip(Range shard, Range chunk) {
    return {std::min(shard.begin + chunk.begin, shard.end), std::min(shard.begin + chunk.end, shard.end)};
  }
  static const std::byte* bytes(const T* data) { return reinterpret_cast<const std::byte*>(data); }
  static std::byte* bytes(T* data) { return reinterpret_cast<std::byte*>(data); }

  /// Copies every peer's part of a chunk to its staging.
  void collect(Symm<const T> in, const Split& shards, Range chunk, std::size_t c) {
    for (int step = 1; step < team_.size; ++step) {
      const int peer = (team_.me + step) % team_.size;
      const Range range = clip(shards[peer], chunk);
      if (!range.empty())
        lanes_.copy(bytes(staging_.on(peer) + team_.me * capacity_ + chunk.begin), bytes(in.local() + range.begin),
                    range.size() * Size{sizeof(T)});
      lanes_.signal(arrived_.on(peer) + word(c, team_.me), args_.epochs.words);
    }
  }

  void sum(Stream& stream, Symm<const T> in, Symm<T> out, Range shard, Range chunk, std::size_t c) {
    CopiedReduceArgs<T> args = args_;
    args.own = in.local() + shard.begin;
    args.out = gathers_ ? out.local() + shard.begin : out.local();
    args.range = {std::min(chunk.begin, shard.size()), std::min(chunk.end, shard.size())};
    args.arrived = arrived_ + word(c, 0);
    stream.launch<CopiedReduce<T>>(grid_, args, team_);
  }

  /// Copies the sums of a chunk to every peer.
  void spread(Stream& stream, Symm<T> out, Range range, bool is_last) {
    lanes_.copies().wait_for(stream);
    for (int step = 1; step < team_.size; ++step) {
      const int peer = (team_.me + step) % team_.size;
      if (!range.empty())
        lanes_.copy(bytes(out.on(peer) + range.begin), bytes(out.local() + range.begin),
                    range.size() * Size{sizeof(T)});
      if (is_last) lanes_.signal(gathered_.on(peer) + team_.me, args_.epochs.words);
    }
  }

  Size word(std::size_t chunk, int pe) const { return static_cast<Size>(chunk) * team_.size + pe; }

  std::string algorithm_;
  std::string name_;
  Team team_;
  bool gathers_;
  Grid grid_;
  Size max_count_;
  Size capacity_ = 0;
  Symm<T> staging_;   // [PE][capacity]
  Signals arrived_;   // [chunk][PE]: that PE's values of the chunk are in the staging
  Signals gathered_;  // [PE]: that PE's sums are in the output
  CopiedReduceArgs<T> args_{};
  CopyLanes lanes_;
};

/// A factory, as Algorithm::make.
template <Collective kCollective>
std::unique_ptr<CollectivePlan> make_copied_reduce(World& world, const CollectiveOptions& options, const Team& team) {
  return dispatch(options.type, [&]<class T>() -> std::unique_ptr<CollectivePlan> {
    return std::make_unique<CopiedReducePlan<T>>(world, kCollective, options, team);
  });
}

}  // namespace tandem::kernels
