#include "collectives/all_reduce_norm/selection.h"

namespace tandem::kernels {

std::string suitable_norm_algorithm(const AllReduceNormOptions& options, int pes) {
  if (options.sharded_residual) return "two_shot";
  // One shot sends each row to n - 1 PEs in packets. Two shots read and write every row once, in more steps. Limit:
  // predictions for hidden 8192 on 2, 4 and 8 PEs of h200x8.
  const Size sent = options.max_rows * options.hidden * size_of(options.type) * (pes - 1);
  if (sent > Size{2} << 20) return "two_shot";
  // Measured on two H200s, bf16, hidden 8192: LL packets are faster for 1 and 4 rows, lines of them for 16.
  return sent <= Size{64} << 10 ? "one_shot_ll" : "one_shot_ll128";
}

std::optional<tune::SelectedChoice> tuned_norm(const World& world, const AllReduceNormOptions& options) {
  tune::Query query;
  query.layer = options.quantisation == Quantisation::kNone ? "all_reduce_norm" : "all_reduce_norm_fp8";
  query.pes = world.team().size;
  query.element_bytes = size_of(options.type);
  query.bytes = options.max_rows * options.hidden * size_of(options.type);
  return tune::choose(world.machine(), "", query, [&](const std::string& algorithm) {
    return !options.sharded_residual || algorithm == "two_shot";
  });
}

}  // namespace tandem::kernels
