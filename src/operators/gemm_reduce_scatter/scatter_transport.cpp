#include "operators/gemm_reduce_scatter/scatter_transport.h"

#include "operators/steps/notify_collector.h"
#include "operators/steps/steps.h"

namespace tandem::ops {

namespace {

constexpr int kReduceThreads = 1024;

Grid reduction_grid(const Settings& settings, const RowPartition& rows, Size row_bytes, int sm_count) {
  const int most = settings.options.communication_sms > 0 ? settings.options.communication_sms : sm_count;
  return grid_for(rows.shard_rows() * row_bytes, most, kReduceThreads);
}

}  // namespace

ScatterTransport::ScatterTransport(World& world, const Settings& settings)
    : team_(world.team()),
      overlapped_(settings.options.form == Form::kOverlapped),
      copy_by_(*settings.options.copy_by),
      // Whole GEMMs store locally. If SMs move the bytes, the reduction loads them.
      direction_(copy_by_ == CopyBy::kSm && !overlapped_ ? Direction::kPull : settings.options.direction),
      rows_(settings.rows(team_, settings.options.m)),
      row_bytes_(settings.result_row_bytes()),
      activation_(settings.options.activation),
      reducers_(reduction_grid(settings, rows_, row_bytes_, world.machine().gpu.sm_count)) {
  layout_.me = team_.me;
  layout_.node_size = team_.node_size;
  if (copy_by_ == CopyBy::kCopyEngine) copies_.emplace(world.make_stream("copies"));
  if (overlapped_ && settings.options.communication_sms > 0) reduction_.emplace(world.make_stream("reduction"));
  SymmetricHeap& heap = world.heap();
  const bool stored_by_gemm = copy_by_ == CopyBy::kSm && direction_ == Direction::kPush;
  const bool staged = copy_by_ == CopyBy::kCopyEngine || stored_by_gemm;
  const Size all = rows_.shards * shard_bytes();
  partials_ = heap.allocate<std::byte>(stored_by_gemm ? 0 : all, "gemm_reduce_scatter partials");
  staging_ = heap.allocate<std::byte>(staged ? all : 0, "gemm_reduce_scatter staging");
  const Size sums = team_.one_node() ? 0 : team_.nodes() * shard_bytes();
  node_sums_ = heap.allocate<std::byte>(sums, "gemm_reduce_scatter node sums");
  outgoing_ = heap.allocate<std::byte>(sums, "gemm_reduce_scatter outgoing").local();
  computed_ = heap.signals(rows_.slots(), "gemm_reduce_scatter computed");
  expected_computed_ = heap.allocate_local<Epoch>(rows_.slots(), "gemm_reduce_scatter computed before");
  arrived_ = heap.signals(rows_.slots(), "gemm_reduce_scatter arrived");
  const Size sums_of_blocks = Size{reducers_.blocks} * team_.nodes() * rows_.splits;
  expected_arrived_ = heap.allocate_local<Epoch>(sums_of_blocks, "gemm_reduce_scatter arrived before");
  crossed_ = heap.signals(sums_of_blocks, "gemm_reduce_scatter crossed");
  released_ = heap.signals(team_.size, "gemm_reduce_scatter released");
  epochs_ = heap.epochs(1, "gemm_reduce_scatter epoch");
}

void ScatterTransport::begin(Stream& main, Size m) {
  rows_.rows = m;
  main.launch<BeginReleased>(kOneWarp, {released_, epochs_});
  begun_ = main.record();
  published_.clear();
}

GemmDestination ScatterTransport::destination() const {
  const bool push = direction_ == Direction::kPush;
  if (copy_by_ != CopyBy::kSm) return GemmLocal{partials(), {computed_, push}};
  if (push) return GemmScatter{staging_, arrived_};
  return GemmLocal{partials(), {arrived_, false}};
}

void ScatterTransport::follow(const Gemm& gemm) {
  if (!copies_) return;
  if (direction_ == Direction::kPull) return pull(gemm);
  copies_->wait(begun_);
  const TileSequence sequence(gemm);
  for (int step = 0; step < rows_.shards; ++step) {
    const int owner = sequence.owner(step);
    for (int part = 0; part < rows_.splits; ++part) {
      await_computed(rows_.slot(owner, part), gemm.tiles_of_chunk(owner, part));
      push(owner, part);
    }
  }
}

void ScatterTransport::publish(Stream& main, int owner) {
  if (copies_ && direction_ == Direction::kPush) {
    copies_->wait_for(main);
    for (int part = 0; part < rows_.splits; ++part) push(owner, part);
    return;
  }
  const Signals words = copy_by_ == CopyBy::kSm ? arrived_ : computed_;
  main.launch<NotifyCollector>(
      kOneWarp, {words, epochs_.words, rows_.splits, layout_.collector(owner), layout_.block_at_collector(owner)});
  if (copies_) published_.push_back(main.record());
}

void ScatterTransport::finish(Stream& main, void* out, const Gemm& gemm) {
  if (copies_ && direction_ == Direction::kPull && !overlapped_) pull(gemm);
  if (reduction_) reduction_->wait(begun_);
  // A reduction on all SMs would leave no place for the steps of the copies, for which it waits.
  if (copies_ && !reduction_) main.wait_for(*copies_);
  Stream& stream = reduction_ ? *reduction_ : main;
  if (gemm.out_type == DType::kF32) launch_reduction<float>(stream, out, gemm);
  if (gemm.out_type == DType::kF16) launch_reduction<f16>(stream, out, gemm);
  if (gemm.out_type == DType::kBF16) launch_reduction<bf16>(stream, out, gemm);
  if (reduction_) main.wait_for(*reduction_);
  if (reduction_ && copies_) main.wait_for(*copies_);
  main.launch<Release>(kOneWarp, {released_, epochs_.words});
}

void ScatterTransport::push(int owner, int part) {
  const int collector = layout_.collector(owner);
  const int block = layout_.block_at_collector(owner);
  const Range chunk = bytes_of(rows_.part(owner, part), row_bytes_);
  const Size in_shard = chunk.begin - rows_.shard(owner).begin * row_bytes_;
  if (collector != team_.me)  // the own sums are read in place
    copies_->copy_async(staging_.on(collector) + block * shard_bytes() + in_shard, partials_.local() + chunk.begin,
                        chunk.size());
  copies_->write_signal_from(arrived_.on(collector) + rows_.slot(block, part), epochs_.words);
}

void ScatterTransport::pull(const Gemm& gemm) {
  if (published_.empty()) copies_->wait(begun_);
  const int local = team_.me % team_.node_size;
  const int first = team_.me - local;
  for (int step = 1; step <= team_.nodes(); ++step) {
    const int owner = (team_.me + step * team_.node_size) % team_.size;
    // The previous PE computes this PE's rows first, then the PE before it, and this PE last.
    for (int back = 1; back <= team_.node_size; ++back) {
      const int source = (local - back + team_.node_size) % team_.node_size;
      const int block = owner - local + source;
      // A GEMM on all SMs must have them before a step waits here, and the source may wait likewise. There is no
      // deadlock: a PE that has computed as many shards does not wait for one that has not.
      if (!published_.empty())
        copies_->wait(published_[static_cast<std::size_t>((step - 1) * team_.node_size + back - 1)]);
      for (int part = 0; part < rows_.splits; ++part) {
        const Range chunk = bytes_of(rows_.part(owner, part), row_bytes_);
        const Size in_shard = chunk.begin - rows_.shard(owner).begin * row_bytes_;
        await_computed(rows_.slot(block, part), overlapped_ ? gemm.tiles_of_chunk(owner, part) : 1);
        if (source != local)
          copies_->copy_async(staging_.local() + block * shard_bytes() + in_shard,
                              partials_.on(first + source) + chunk.begin, chunk.size());
        copies_->write_signal_from(arrived_.local() + rows_.slot(block, part), epochs_.words);
      }
    }
  }
}

void ScatterTransport::await_computed(int slot, Size arrivals) {
  copies_->launch<AwaitCount>(kOneWarp, {computed_ + slot, expected_computed_ + slot, arrivals});
}

template <class T>
void ScatterTransport::launch_reduction(Stream& stream, void* out, const Gemm& gemm) {
  const bool by_sm = copy_by_ == CopyBy::kSm;
  typename ReduceShards<T>::Args args{};
  args.partials_at = !by_sm                           ? PartialsAt::kStagingButOwn
                     : direction_ == Direction::kPush ? PartialsAt::kStaging
                                                      : PartialsAt::kPeers;
  args.partials = partials_.as<T>();
  args.staging = staging_.as<T>();
  args.node_sums = node_sums_.as<T>();
  args.outgoing = reinterpret_cast<T*>(outgoing_);
  args.out = static_cast<T*>(out);
  args.arrived = arrived_;
  args.expected = expected_arrived_;
  args.crossed = crossed_;
  args.epoch = epochs_.words;
  args.rows = rows_;
  args.n = gemm.n;
  // Tiles that the GEMM itself reports are counted one by one; copies and other notifications come once for each chunk.
  args.tile_m = by_sm && overlapped_ ? gemm.tile_m : 0;
  args.columns = ceil_div(gemm.n, gemm.tile_n);
  args.activation = activation_;
  stream.launch<ReduceShards<T>>(reducers_, args);
}

}  // namespace tandem::ops
