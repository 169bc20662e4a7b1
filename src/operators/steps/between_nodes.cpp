#include "operators/steps/between_nodes.h"

#include "operators/plan/gemm_descriptor.h"

namespace tandem::ops {

BetweenNodes::BetweenNodes(World& world, const Settings& settings)
    : team_(world.team()),
      form_(settings.options.form),
      chunks_(form_ == Form::kOverlapped || form_ == Form::kDecomposed ? settings.options.splits : 1),
      gemm_sms_(world.machine().gpu.sm_count - (chunks_ > 1 ? settings.options.communication_sms : 0)),
      row_bytes_(settings.result_row_bytes()),
      reductions_(world.make_stream("reductions")) {
  const OperatorOptions& o = settings.options;
  SymmetricHeap& heap = world.heap();
  partials_ = heap.allocate<std::byte>(o.m * row_bytes_, "gemm_all_reduce partials");
  sums_ = heap.allocate<std::byte>(o.m * row_bytes_, "gemm_all_reduce sums");
  CollectiveOptions options;
  options.type = o.result_type();
  options.max_count = split(o.m, chunks_, o.tile_m).step() * o.n;
  if (chunks_ > 1) options.blocks = settings.options.communication_sms;
  all_reduce_ = make_collective(world, Collective::kAllReduce, options);
}

void BetweenNodes::run(Stream& main, const Gemm& gemm, void* c) {
  for (int i = 0; i < chunks_; ++i) {
    const Range rows = split(gemm.m, chunks_, gemm.tile_m)[i];
    if (rows.empty()) continue;
    const Range bytes{rows.begin * row_bytes_, rows.end * row_bytes_};
    Gemm chunk = rows_of(gemm, rows);
    chunk.destination = GemmLocal{partials_.local() + bytes.begin};
    chunk.sms = gemm_sms_;
    if (form_ != Form::kCommunicationOnly) main.gemm(chunk, team_);
    reductions_.wait_for(main);
    all_reduce_->run(reductions_, partials_ + bytes.begin, sums_ + bytes.begin, rows.size() * gemm.n);
    reductions_.copy_async(static_cast<std::byte*>(c) + bytes.begin, sums_.local() + bytes.begin, bytes.size());
  }
  main.wait_for(reductions_);
}

}  // namespace tandem::ops
