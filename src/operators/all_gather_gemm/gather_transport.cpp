#include "operators/all_gather_gemm/gather_transport.h"

#include <algorithm>

#include "operators/all_gather_gemm/all_gather_pull.h"
#include "operators/steps/rail_send.h"
#include "operators/steps/steps.h"

namespace tandem::ops {

namespace {

constexpr int kRailBlocks = 4;  // one nearly fills a NIC, more hide the cost of posting

/// The senders' order is that in which the receivers' GEMMs consume the rows. With push towards the previous PE, a
/// shard is the next one there. With pull, the puller starts with the PE that it needs first.
ChunkOrder chunk_order(const Team& team, const Settings& settings) {
  const bool ring = settings.order == TileOrder::kRing;
  const bool push = settings.options.direction == Direction::kPush;
  return {team, settings.options.splits, ring == push ? 1 : -1, settings.order == TileOrder::kInterleaved};
}

}  // namespace

GatherTransport::GatherTransport(World& world, const Settings& settings, const ShardNorm* norm)
    : team_(world.team()),
      norm_(norm),
      copy_by_(*settings.options.copy_by),
      direction_(settings.options.direction),
      rows_(settings.rows(team_, settings.options.m)),
      order_(chunk_order(team_, settings)),
      row_bytes_(settings.options.k * size_of(settings.options.type)),
      sms_(std::max(1, settings.options.communication_sms)),
      arrivals_(copy_by_ == CopyBy::kSm ? sms_ : 1),
      full_mesh_(world.machine().link.fabric == Fabric::kFullMesh) {
  SymmetricHeap& heap = world.heap();
  const Size bytes = rows_.shards * rows_.shard_rows() * row_bytes_;
  gathered_ = settings.transport_memory(world, bytes, "all_gather_gemm gathered");
  ready_ = heap.signals(rows_.slots(), "all_gather_gemm ready");
  in_place_ = heap.signals(Size{sms_} * rows_.slots(), "all_gather_gemm in place");
  if (settings.share != nullptr) {
    acquire_ = settings.share->first_step(heap.allocate_local<Epoch>(1, "all_gather_gemm epoch"));
  } else {
    const BufferWords buffers = settings.buffers.released ? settings.buffers : make_buffer_words(world);
    acquire_ = {buffers.released, buffers.acquired, heap.allocate_local<Epoch>(1, "all_gather_gemm last call"),
                heap.allocate_local<Epoch>(1, "all_gather_gemm epoch"),
                team_.one_node() || direction_ == Direction::kPull};
  }
  // Without a GEMM beside them, blocks that copy need no stream of their own, whose events cost time on the host.
  const bool in_main = settings.options.form == Form::kSequential && copy_by_ == CopyBy::kSm && team_.one_node();
  pushes_norm_ = norm_ != nullptr && norm_->can_push() && in_main && direction_ == Direction::kPush;
  if (pushes_norm_) arrivals_ = norm_->arrivals();
  // The links of a mesh are filled concurrently, a port into a switch by one peer after the other.
  const bool concurrent = full_mesh_ && copy_by_ == CopyBy::kCopyEngine;
  const int streams = in_main ? 0 : concurrent ? std::max(1, order_.peers()) : 1;
  for (int i = 0; i < streams; ++i) copies_.push_back(world.make_stream("copies " + std::to_string(i)));
  if (copy_by_ == CopyBy::kCopyEngine && direction_ == Direction::kPull) offers_.emplace(world.make_stream("offers"));
  if (!team_.one_node()) rail_.emplace(world.make_stream("rail"));
}

void GatherTransport::begin(Stream& main, const OperatorCall& call) {
  rows_.rows = call.m;
  normed_.clear();
  // It comes before the GEMM, beside which it might find no SM.
  main.launch<AcquireBuffer>(kOneWarp, acquire_);
  const Event begun = copies_.empty() ? Event() : main.record();
  if (norm_ != nullptr) norm_own(main, call);
  const std::byte* const own = this->own(call);
  if (pushes_norm_) return;
  if (copies_.empty()) return launch_sm_kernel(main, own);
  copies_.front().wait(begun);
  for (std::size_t i = 1; i < copies_.size(); ++i) copies_[i].wait_for(copies_.front());
  send_to_rail(copies_.front(), own);
  if (copy_by_ == CopyBy::kSm) return launch_sm_kernel(copies_.front(), own);
  if (direction_ == Direction::kPush) return push_by_copy_engine(own);
  notify_by_copy_engine(own);
  pull_by_copy_engine();
}

void GatherTransport::await(Stream& main, int first, int shards) {
  main.launch<AwaitShards>(kOneWarp, {ready_, acquire_.epoch, rows_, arrivals_, first, shards});
}

void GatherTransport::place_own(Stream& main, const OperatorCall& call) {
  if (direction_ == Direction::kPull || norm_ != nullptr) return;  // peers read it there, or it was made there
  main.copy_async(place_of_own().local(), call.a, rows_.shard(team_.me).size() * row_bytes_);
}

void GatherTransport::end(Stream& main) {
  for (Stream& copies : copies_) main.wait_for(copies);
  if (offers_) main.wait_for(*offers_);
  if (rail_) main.wait_for(*rail_);
}

void GatherTransport::send_to_rail(Stream& main, const std::byte* own) {
  if (!rail_) return;
  rail_->wait_for(main);
  await_all_normed(*rail_);
  const int messages = (team_.nodes() - 1) * rows_.splits;
  rail_->launch<RailSend>({std::min(kRailBlocks, messages), 32},
                          {own, gathered_, ready_, rows_, row_bytes_, arrivals_});
}

void GatherTransport::push_by_copy_engine(const std::byte* own) {
  for (int hop = 0; hop < order_.hops(); ++hop) {
    const int owner = order_.owner(team_.me, hop);
    for (int i = 0; i < order_.steps(); ++i) {
      const ChunkStep step = order_.at(hop, i);
      Stream& stream = stream_of(step);
      if (hop > 0) await_word(stream, ready_ + rows_.slot(owner, step.part));
      if (hop == 0) await_normed(stream, step.part);
      if (hop == 0)
        copy_chunk(stream, owner, step.part, own, rows_.shard(owner).begin, step.peer);
      else
        copy_chunk(stream, owner, step.part, gathered_.local(), 0, step.peer);
    }
  }
}

void GatherTransport::notify_by_copy_engine(const std::byte* own) {
  offers_->wait_for(copies_.front());
  for (int hop = 0; hop < order_.hops(); ++hop) {
    const int owner = order_.owner(team_.me, hop);
    for (int part = 0; part < rows_.splits; ++part) {
      const int slot = rows_.slot(owner, part);
      const Range chunk = bytes_of(rows_.part(owner, part), row_bytes_);
      if (hop > 0)
        await_word(*offers_, ready_ + slot);
      else if (norm_ != nullptr)
        await_normed(*offers_, part);
      else
        offers_->copy_async(gathered_.local() + chunk.begin,
                            own + (chunk.begin - rows_.shard(owner).begin * row_bytes_), chunk.size());
      for (int i = 1; i < team_.node_size; ++i) {
        const int peer = order_.first_of_node() + (team_.me + i) % team_.node_size;
        offers_->write_signal_from(in_place_.on(peer) + slot, acquire_.epoch);
      }
    }
  }
}

void GatherTransport::pull_by_copy_engine() {
  for (int hop = 0; hop < order_.hops(); ++hop) {
    for (int i = 0; i < order_.steps(); ++i) {
      const ChunkStep step = order_.at(hop, i);
      const int owner = order_.owner(step.peer, hop);
      Stream& stream = stream_of(step);
      await_word(stream, in_place_ + rows_.slot(owner, step.part));
      copy_chunk(stream, owner, step.part, gathered_.on(step.peer), 0, team_.me);
    }
  }
}

void GatherTransport::launch_sm_kernel(Stream& stream, const std::byte* own) {
  const Grid grid{sms_, kSmThreads};
  const bool at_once = full_mesh_ && order_.peers() <= AllGatherPush::kMostRoles;
  const bool push = direction_ == Direction::kPush;
  const AllGatherPush::Args pushed{own, gathered_, ready_, acquire_.epoch, rows_, row_bytes_, order_, at_once};
  if (push && !normed_.empty() && team_.one_node()) return push_normed(stream, pushed);
  await_all_normed(stream);
  if (push) return stream.launch<AllGatherPush>(grid, pushed);
  const std::byte* const outside = norm_ != nullptr ? nullptr : own;
  stream.launch<AllGatherPull>(grid,
                               {outside, gathered_, in_place_, ready_, acquire_.epoch, rows_, row_bytes_, order_});
}

void GatherTransport::copy_chunk(Stream& stream, int owner, int part, const std::byte* from, Size from_row, int to) {
  const Range chunk = bytes_of(rows_.part(owner, part), row_bytes_);
  stream.copy_async(gathered_.on(to) + chunk.begin, from + (chunk.begin - from_row * row_bytes_), chunk.size());
  stream.write_signal_from(ready_.on(to) + rows_.slot(owner, part), acquire_.epoch);
}

void GatherTransport::await_word(Stream& stream, const Signals& word) {
  stream.launch<AwaitWord>(kOneWarp, {word, acquire_.epoch, 1});
}

}  // namespace tandem::ops
