#include "operators/experts/gemm_combine.h"

#include <algorithm>
#include <vector>

#include "collectives/experts/plan.h"
#include "collectives/plan/plan.h"
#include "operators/experts/chunk_steps.h"

namespace tandem::ops {

namespace {

ProductBuffers buffers_of(const GemmCombineCall& call) {
  return {call.a, call.b, call.y, call.a_scales, call.b_scales, nullptr};
}

}  // namespace

GemmCombine::GemmCombine(World& world, const ExpertGemmOptions& options, ExpertPlan& experts)
    : options_(options),
      experts_(experts),
      team_(world.team()),
      sms_(world.machine().gpu.sm_count),
      product_(world, options,
               {experts.rows(), options.experts.hidden, options.intermediate, Activation::kNone, options.experts.type},
               0, experts_of_pe(options.experts, team_.size)) {
  if (options.gemm_combine == ExpertForm::kSequential) return;
  GemmGroups chunked;
  chunked.column_chunks = options.column_chunks;
  order_ = PanelOrder::of(chunked, options.experts.hidden, tile_columns_to_tokens(options), 1);
  const int last = order_.chunks() - 1;
  if (last > 0) beside_ = sums_of(world, options.communication_sms, columns_of(0).size());
  last_ = sums_of(world, sms_, columns_of(last).size());
  const Size bytes = kernels::RowChunks::kPieceBytes;
  auto* const zeros = world.heap().allocate_local<std::byte>(bytes, "gemm_combine zeros");
  world.copy_in(zeros, std::vector<std::byte>(static_cast<std::size_t>(bytes)).data(), bytes);
  zeros_ = zeros;
  tiles_ = world.heap().signals(order_.chunks(), "gemm_combine tiles").of(team_);
  expected_ = world.heap().epochs(order_.chunks(), "gemm_combine expected tiles").words;
  sums_.emplace(world.make_stream("sums"));
}

/// Blocks of 128 threads, at most two for each SM.
GemmCombine::Sums GemmCombine::sums_of(World& world, int sms, Size columns) const {
  const Size most = options_.experts.max_tokens;
  Sums sums;
  sums.grid = {static_cast<int>(std::clamp<Size>(most, 1, Size{kernels::RowSlots::kBlocksPerSm} * sms)),
               kernels::RowSlots::kThreads};
  kernels::PlanSetup setup(world, team_, "gemm_combine", sums.grid.blocks, most);
  sums.rows = kernels::RowChunks::of(setup, kernels::routing_shape(options_.experts, team_.size),
                                     columns * size_of(options_.experts.type), 0, 0);
  return sums;
}

Range GemmCombine::columns_of(int chunk) const {
  const Size tile = tile_columns_to_tokens(options_);
  return {chunk * order_.chunk_columns * tile, std::min(order_.end_of(chunk) * tile, options_.experts.hidden)};
}

void GemmCombine::enqueue(Stream& main, const GemmCombineCall& call, const kernels::Routing& routing) {
  if (options_.gemm_combine == ExpertForm::kOverlapped) return enqueue_overlapped(main, call, routing);
  product_.make_panels(main, routing);
  main.gemm(product_.gemm(buffers_of(call)), team_);
  experts_.combine(main,
                   {.tokens = call.tokens, .y = call.y, .routing = call.routing, .add = call.add, .out = call.out});
}

/// Sums of a chunk follow its last tile. The last chunk's sums have all SMs.
void GemmCombine::enqueue_overlapped(Stream& main, const GemmCombineCall& call, const kernels::Routing& routing) {
  product_.make_panels(main, routing);
  Gemm gemm = product_.gemm(buffers_of(call));
  main.launch<ExpectTiles>(kOneWarp, {gemm.groups.panel_count, expected_, order_});
  sums_->wait_for(main);
  gemm.groups.column_chunks = options_.column_chunks;
  gemm.destination = GemmLocal{call.y, {tiles_, true}};
  gemm.sms = std::max(1, sms_ - options_.communication_sms);
  main.gemm(gemm, team_);  // first: nothing promises that streams run side by side
  const int last = order_.chunks() - 1;
  for (int chunk = 0; chunk < last; ++chunk) {
    sums_->launch<AwaitTiles>(kOneWarp, {tiles_ + chunk, expected_ + chunk}, team_);
    combine(*sums_, call, routing, beside_, columns_of(chunk));
  }
  main.wait_for(*sums_);
  combine(main, call, routing, last_, columns_of(last));
}

void GemmCombine::combine(Stream& stream, const GemmCombineCall& call, const kernels::Routing& routing,
                          const Sums& sums, Range columns) const {
  if (options_.experts.type == DType::kF16)
    combine_as<f16>(stream, call, routing, sums, columns);
  else
    combine_as<bf16>(stream, call, routing, sums, columns);
}

template <class T>
void GemmCombine::combine_as(Stream& stream, const GemmCombineCall& call, const kernels::Routing& routing,
                             const Sums& sums, Range columns) const {
  typename kernels::CombineByChunks<T>::Args args;
  args.y = static_cast<const T*>(call.y) + columns.begin;
  args.add = call.add == nullptr ? nullptr : static_cast<const T*>(call.add) + columns.begin;
  args.out = static_cast<T*>(call.out) + columns.begin;
  args.zeros = reinterpret_cast<const T*>(zeros_);
  args.hidden = options_.experts.hidden;
  args.routing = routing;
  args.rows = sums.rows;
  args.rows.row_bytes = columns.size() * Size{sizeof(T)};
  stream.launch<kernels::CombineByChunks<T>>(sums.grid, args, team_);
}

}  // namespace tandem::ops
