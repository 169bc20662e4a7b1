#include "operators/all_gather_gemm/shard_norm.h"

#include "collectives/steps/scale_groups.h"
#include "operators/resolve/operator_check.h"

namespace tandem::ops {

namespace {

constexpr Operator kOp = Operator::kAllGatherGemm;

OperatorNorm norm_of(const OperatorOptions& options) {
  OperatorNorm norm = options.norm;
  norm.quantisation = quantisation_of_a(kOp, options);
  return norm;
}

Size scales_of_row(Quantisation quantisation, Size k) {
  if (quantisation == Quantisation::kRow) return 1;
  return quantisation == Quantisation::kGroup ? ceil_div(k, kernels::kScaleGroup) : 0;
}

}  // namespace

ShardNorm::ShardNorm(World& world, const Settings& settings, const Symm<float>& scales)
    : given_row_bytes_(settings.options.k * size_of(given_a_type(kOp, settings.options))),
      row_bytes_(settings.options.k * size_of(settings.options.type)),
      scales_of_row_(scales_of_row(quantisation_of_a(kOp, settings.options), settings.options.k)),
      scales_(scales),
      norms_(world, norm_of(settings.options), given_a_type(kOp, settings.options), settings.options.k,
             settings.rows(world.team(), settings.options.m).shard_rows()) {}

RowsToNorm ShardNorm::rows_to_norm(const OperatorCall& call, Range rows, const Symm<std::byte>& to) const {
  const Size begin = rows.begin * given_row_bytes_;
  const auto* const residual = static_cast<const std::byte*>(call.residual);
  auto* const sum = static_cast<std::byte*>(call.sum);
  RowsToNorm all{.rows = rows.size(),
                 .from = static_cast<const std::byte*>(call.a) + begin,
                 .residual = residual == nullptr ? nullptr : residual + begin,
                 .weight = call.norm_weight,
                 .bias = call.norm_bias,
                 .out = to + rows.begin * row_bytes_,
                 .sum = sum == nullptr ? nullptr : sum + begin,
                 .scales = {}};
  if (scales_of_row_ > 0) all.scales = scales_ + rows.begin * scales_of_row_;
  return all;
}

}  // namespace tandem::ops
