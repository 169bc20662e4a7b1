#include "collectives/all_reduce_norm/selection.h"

#include "collectives/all_reduce_norm/row_parts.h"

namespace tandem::kernels {

namespace {

/// Returns whether blocks of a GPU gain by sharing rows. One block takes 5 to 6 us for a row of 8192 elements on an
/// H200, so instructions bind. The blocks of a CPU share few threads.
bool shares_rows(const AllReduceNormOptions& options, const Machine& machine) {
  const Size element_bytes = size_of(options.type);
  const int blocks = options.blocks > 0 ? options.blocks : machine.gpu.sm_count;
  return machine.processor == Processor::kGpu && count_row_parts(options.hidden, element_bytes) > 1 &&
         can_split_rows(options.hidden, blocks, element_bytes);
}

}  // namespace

std::string suitable_norm_algorithm(const AllReduceNormOptions& options, int pes, const Machine& machine) {
  if (options.sharded_residual) return "two_shot";
  // One shot sends each row to n - 1 PEs in packets. Two shots read and write every row once, in more steps. Limit:
  // predictions for hidden 8192 on 2, 4 and 8 PEs of h200x8, and times of two H200s.
  const Size sent = options.max_rows * options.hidden * size_of(options.type) * (pes - 1);
  if (sent > Size{2} << 20) return "two_shot";
  // Lines of packets are faster than LL packets there for every number of rows, if rows are split.
  if (shares_rows(options, machine)) return "split_ll128";
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
