#include "operators/ring/ring_reduce_scatter.h"

#include <algorithm>

#include "operators/plan/chunk_order.h"
#include "operators/plan/gemm_descriptor.h"
#include "operators/steps/steps.h"
#include "tandem/advanced/gemm_order.h"

namespace tandem::ops {

RingReduceScatter::RingReduceScatter(World& world, const Settings& settings, const std::string& name, bool steps_beside)
    : settings_(settings),
      team_(world.team()),
      rows_(settings.rows(team_, settings.options.m)),
      classes_(rows_, settings.options.tile_m),
      row_bytes_(settings.result_row_bytes()),
      previous_((team_.me + team_.size - 1) % team_.size) {
  if (settings.options.copy_by == CopyBy::kCopyEngine && team_.size > 1) copies_.emplace(world.make_stream("copies"));
  SymmetricHeap& heap = world.heap();
  const Size bytes = rows_.shards * rows_.shard_rows() * row_bytes_;
  staging_ = heap.allocate<std::byte>(bytes, name + " chain");
  arrived_ = heap.signals(tile_words(), name + " arrived");
  computed_ = heap.signals(tile_words(), name + " computed for others");
  const BufferWords buffers = settings.buffers.released ? settings.buffers : make_buffer_words(world);
  steps_.released = buffers.released;
  steps_.acquired = buffers.acquired;
  steps_.last = heap.allocate_local<Epoch>(1, name + " last call");
  steps_.epoch = heap.allocate_local<Epoch>(1, name + " epoch");
  steps_.with_copies = copies_.has_value();
  class_epochs_ = heap.allocate_local<Epoch>(classes_.count(), name + " epochs of tiles");
  if (copies_) partials_ = heap.allocate<std::byte>(bytes, name + " partials").local();
  const int left_free = std::max(settings.options.communication_sms, steps_beside || copies_ ? kStepSms : 0);
  sms_ = std::max(1, world.machine().gpu.sm_count - left_free);
}

void RingReduceScatter::begin(Stream& main, Size m) {
  rows_.rows = m;
  class_ = classes_.of(m);
  steps_.of_class = class_epochs_ + class_;
  main.launch<RingBegin>(kOneWarp, steps_);
  begun_ = main.record();
}

Gemm RingReduceScatter::gemm(const OperatorCall& call, GemmRing own) const {
  Gemm gemm = partial_gemm(settings_, team_, call);
  gemm.sms = sms_;
  gemm.order = TileOrder::kPeersFirst;
  gemm.activation = settings_.options.activation;
  const Signals arrived = of_call(arrived_);
  own.received = staging_.local();
  own.arrived = arrived.local();
  own.forwarded = copies_ ? partials_ : staging_.on(previous_);
  own.forwarded_tiles = copies_ ? of_call(computed_).local() : arrived.on(previous_);
  own.epoch = epoch_of_tiles();
  gemm.destination = own;
  return gemm;
}

void RingReduceScatter::follow(const Gemm& gemm) {
  if (!copies_) return;
  copies_->wait(begun_);
  copies_->launch<RingAwait>(kOneWarp, steps_);
  const Signals computed = of_call(computed_), arrived = of_call(arrived_);
  const TileSequence sequence(gemm);
  for (int step = 0; step + 1 < rows_.shards; ++step) {
    const int owner = sequence.owner(step);
    for (int part = 0; part < rows_.splits; ++part) {
      const int slot = rows_.slot(owner, part);
      const Range chunk = bytes_of(rows_.part(owner, part), row_bytes_);
      if (chunk.empty()) continue;
      const Size begin = owner * rows_.shard_rows() * row_bytes_ + chunk.begin - rows_.shard(owner).begin * row_bytes_;
      copies_->launch<AwaitWord>(kOneWarp, {computed + slot, epoch_of_tiles(), gemm.tiles_of_chunk(owner, part)});
      copies_->copy_async(staging_.on(previous_) + begin, partials_ + begin, chunk.size());
      // The count itself is the signal. It stays unchanged until the next call.
      copies_->write_signal_from(arrived.on(previous_) + slot, &computed.local()[slot].value);
    }
  }
}

void RingReduceScatter::end(Stream& main) {
  if (copies_) main.wait_for(*copies_);
}

}  // namespace tandem::ops
