#include "operators/all_gather_gemm/gathered_scales.h"

#include <algorithm>

#include "tandem/advanced/gemm_scales.h"

namespace tandem::ops {

GatheredScales::GatheredScales(World& world, const Settings& settings) : team_(world.team()) {
  const OperatorOptions& o = settings.options;
  of_row_ = o.block_scales ? scale_blocks(o.k) : o.a_scale_per_row ? 1 : 0;
  if (of_row_ == 0) return;
  const Size most = std::max<Size>(1, settings.rows(team_, o.m).shard_rows()) * of_row_;
  CollectiveOptions options;
  options.type = DType::kF32;
  options.max_count = most;
  gather_ = make_collective(world, Collective::kAllGather, options);
  own_ = world.heap().allocate<float>(most, "all_gather_gemm own scales");
  all_ = world.heap().allocate<float>(team_.size * most, "all_gather_gemm scales");
}

void GatheredScales::gather(Stream& main, const float* given, Size m) {
  if (!gather_) return;
  const Split shards = split(m, team_.size);
  if (given != nullptr) main.copy_async(own_.local(), given, shards[team_.me].size() * of_row_ * Size{sizeof(float)});
  gather_->run(main, own_.as<std::byte>(), all_.as<std::byte>(), shards.step() * of_row_);
}

}  // namespace tandem::ops
