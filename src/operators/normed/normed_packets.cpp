#include "operators/normed/normed_packets.h"

#include "collectives/all_reduce_norm/selection.h"
#include "operators/plan/gemm_descriptor.h"
#include "tandem/advanced/local_handle.h"

namespace tandem::ops {

namespace {

AllReduceNormOptions options_of(const OperatorOptions& o, Size rows) {
  AllReduceNormOptions norm;
  norm.type = o.result_type();
  norm.hidden = o.n;
  norm.max_rows = rows;
  norm.norm = o.norm.norm;
  norm.epsilon = o.norm.epsilon;
  norm.residual = o.norm.residual;
  norm.norm_bias = o.norm.norm_bias;
  norm.sum = o.norm.sum;
  norm.quantisation = o.norm.quantisation;
  norm.scale = o.norm.scale;
  return norm;
}

/// The same with the algorithm. Strategy `packets` takes packets also where all_reduce_norm alone would not.
AllReduceNormOptions options_with_packets(const OperatorOptions& o, Size rows, const World& world) {
  AllReduceNormOptions norm = options_of(o, rows);
  norm.algorithm = kernels::suitable_norm_algorithm(norm, world.team().size, world.machine());
  if (norm.algorithm == "two_shot") norm.algorithm = "one_shot_ll128";
  return norm;
}

}  // namespace

Size rows_of_normed_packets(Operator op, const Settings& settings, const World& world) {
  const OperatorOptions& o = settings.options;
  const Team team = world.team();
  if (op != Operator::kGemmAllReduce || !team.one_node() || team.size == 1) return 0;
  if (o.form == Form::kOverlapped) return settings.all_reduce.packets;
  const AllReduceNormOptions norm = options_of(o, o.m);
  const bool suits = kernels::suitable_norm_algorithm(norm, team.size, world.machine()) != "two_shot";
  return o.form == Form::kSequential && suits ? o.m : 0;
}

NormedPackets::NormedPackets(World& world, const Settings& settings, Size rows) : world_(world), settings_(settings) {
  partials_ = world.heap().allocate<std::byte>(rows * settings.result_row_bytes(), "partials before the norm");
  norm_ = make_all_reduce_norm(world, options_with_packets(settings.options, rows, world));
}

void NormedPackets::run(Stream& main, const OperatorCall& call) const {
  Gemm gemm = partial_gemm(settings_, world_.team(), call);
  gemm.destination = GemmLocal{partials_.local()};
  gemm.rows = {call.m, 1, 1, 1};
  main.gemm(gemm, world_.team());
  const auto local = [this](void* memory) { return local_handle(world_, static_cast<std::byte*>(memory)); };
  norm_->run(main, {.rows = call.m,
                    .in = partials_,
                    .residual = call.residual,
                    .weight = call.norm_weight,
                    .norm_bias = call.norm_bias,
                    .out = local(call.c[0]),
                    .sum = local(call.sum),
                    .scales = local_handle(world_, call.scales)});
}

}  // namespace tandem::ops
