#include "collectives/all_reduce_norm/selection.h"

namespace tandem {

namespace kernels {

std::string suitable_norm_algorithm(const AllReduceNormOptions& options, int pes) {
  if (options.sharded_residual) return "two_shot";
  const Size sent = options.max_rows * options.hidden * size_of(options.type) * max(pes - 1, 1);  // by one PE
  if (sent <= (Size{32} << 10)) return "one_shot_ll";
  return sent <= (Size{1} << 20) ? "one_shot_ll128" : "two_shot";
}

}  // namespace kernels

}  // namespace tandem
