#include <algorithm>

#include "operators/gemm_all_reduce/plan.h"
#include "operators/plan/gemm_descriptor.h"
#include "operators/steps/notify_collector.h"
#include "operators/steps/steps.h"
#include "tandem/advanced/gemm_order.h"

namespace tandem::ops {

TwoShot::TwoShot(World& world, const Settings& settings)
    : team_(world.team()),
      form_(settings.options.form),
      order_(settings.order),
      copy_by_(*settings.options.copy_by),
      pushed_(form_ == Form::kOverlapped && settings.options.direction == Direction::kPush),
      row_bytes_(settings.result_row_bytes()),
      activation_(settings.options.activation) {
  if ((form_ == Form::kOverlapped || form_ == Form::kDecomposed) && settings.options.communication_sms > 0)
    additions_.emplace(world.make_stream("additions"));
  if (copy_by_ == CopyBy::kCopyEngine) copies_.emplace(world.make_stream("copies"));
  const int of_others = settings.options.communication_sms + (additions_ && copies_ ? kStepSms : 0);
  gemm_sms_ = std::max(1, world.machine().gpu.sm_count - of_others);
  rows_ = settings.rows(team_, settings.options.m);
  const Size shard_bytes = rows_.shard_rows() * row_bytes_;
  const int most = additions_ ? settings.options.communication_sms : world.machine().gpu.sm_count;
  grid_ = grid_for(shard_bytes, most, kSumThreads);
  SymmetricHeap& heap = world.heap();
  partials_ = heap.allocate<std::byte>(pushed_ ? 0 : settings.options.m * row_bytes_, "gemm_all_reduce partials");
  staging_ = heap.allocate<std::byte>(pushed_ ? team_.size * shard_bytes : 0, "gemm_all_reduce staging");
  sums_ = heap.allocate<std::byte>(shard_bytes, "gemm_all_reduce sums");
  arrived_ = heap.signals(rows_.slots(), "gemm_all_reduce arrived");
  summed_ = heap.signals(rows_.slots(), "gemm_all_reduce summed");
  expected_ = heap.allocate_local<Epoch>(Size{grid_.blocks} * rows_.splits, "gemm_all_reduce expected");
  epochs_ = heap.epochs(1, "gemm_all_reduce epoch");
}

void TwoShot::run(Stream& main, Gemm gemm, void* c) {
  main.launch<NextEpoch>(kOneWarp, {epochs_});
  begun_ = main.record();
  rows_.rows = gemm.m;
  gemm.destination = GemmLocal{partials_.local()};
  if (form_ == Form::kOverlapped) overlap(main, gemm);
  if (form_ == Form::kDecomposed) shard_by_shard(main, gemm);
  if (form_ == Form::kSequential) main.gemm(gemm, team_);
  if (form_ == Form::kSequential || form_ == Form::kCommunicationOnly)
    for (int owner = 0; owner < team_.size; ++owner) notify_collector(main, owner);
  // A GEMM on all SMs must have them before waiting steps of the copies take some.
  if (!additions_) begun_ = main.record();
  if (gemm.out_type == DType::kF32) sum<float>(main, gemm, c);
  if (gemm.out_type == DType::kF16) sum<f16>(main, gemm, c);
  if (gemm.out_type == DType::kBF16) sum<bf16>(main, gemm, c);
  if (copies_) fetch_by_copy_engine(static_cast<std::byte*>(c));
  if (additions_) main.wait_for(*additions_);
  if (copies_) main.wait_for(*copies_);
}

void TwoShot::overlap(Stream& main, Gemm gemm) {
  gemm.rows = rows_;
  gemm.order = order_;
  gemm.sms = gemm_sms_;
  if (pushed_)
    gemm.destination = GemmScatter{staging_, arrived_};
  else
    gemm.destination = GemmLocal{partials_.local(), {arrived_, false}};
  main.gemm(gemm, team_);
}

/// Enqueues one GEMM for each shard, in the same order on all PEs. Each is added while the next is computed.
void TwoShot::shard_by_shard(Stream& main, const Gemm& all) {
  for (int owner = 0; owner < team_.size; ++owner) {
    Gemm chunk = rows_of(all, rows_.shard(owner));
    chunk.sms = gemm_sms_;
    main.gemm(chunk, team_);
    notify_collector(main, owner);
  }
}

void TwoShot::notify_collector(Stream& main, int owner) {
  main.launch<NotifyCollector>(kOneWarp, {arrived_, epochs_.words, rows_.splits, owner, team_.me});
}

template <class T>
void TwoShot::sum(Stream& main, const Gemm& gemm, void* c) {
  if (additions_) additions_->wait(begun_);
  Stream& stream = additions_ ? *additions_ : main;
  typename SumAndFetch<T>::Args args{};
  args.staged = pushed_;
  args.fetch = copy_by_ == CopyBy::kSm;
  args.partials = partials_.as<T>();
  args.staging = staging_.as<T>();
  args.sums = sums_.as<T>();
  args.out = static_cast<T*>(c);
  args.arrived = arrived_;
  args.summed = summed_;
  args.expected = expected_;
  args.epoch = epochs_.words;
  args.rows = rows_;
  args.n = gemm.n;
  // Tiles that the GEMM itself reports are counted one by one; other notifications come once for each chunk.
  args.tile_m = form_ == Form::kOverlapped ? gemm.tile_m : 0;
  args.columns = ceil_div(gemm.n, gemm.tile_n);
  args.activation = activation_;
  stream.launch<SumAndFetch<T>>(grid_, args);
}

void TwoShot::fetch_by_copy_engine(std::byte* c) {
  copies_->wait(begun_);
  for (int part = 0; part < rows_.splits; ++part)
    for (int step = 1; step < team_.size; ++step) {
      const int owner = (team_.me + step) % team_.size;
      const Range piece = bytes_of(rows_.part(owner, part), row_bytes_);
      const Size in_shard = piece.begin - rows_.shard(owner).begin * row_bytes_;
      copies_->launch<AwaitWord>(kOneWarp, {summed_ + rows_.slot(owner, part), epochs_.words, grid_.blocks});
      copies_->copy_async(c + piece.begin, sums_.on(owner) + in_shard, piece.size());
    }
}

}  // namespace tandem::ops
