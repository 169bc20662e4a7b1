#include "operators/plan/gemm_descriptor.h"

namespace tandem::ops {

namespace {

Gemm descriptor_of(const Settings& settings, const Team& team, const OperatorCall& call, std::size_t i) {
  const OperatorOptions& o = settings.options;
  Gemm gemm;
  gemm.m = call.m;
  gemm.type = o.type;
  gemm.out_type = o.result_type();
  gemm.tile_m = o.tile_m;
  const bool is_narrow = o.form == Form::kSequential && call.m <= settings.narrow_rows;
  gemm.tile_n = is_narrow ? kNarrowFp8TileN : o.tile_n;
  gemm.panel_group = o.panel_group;
  gemm.b = call.b[i];
  gemm.b_layout = o.b_layout;
  gemm.bias = call.bias.empty() ? nullptr : call.bias[i];
  gemm.activation = o.activation;
  gemm.scales.a = call.a_scale;
  gemm.scales.a_per_row = o.a_scale_per_row;
  gemm.scales.b = call.b_scale.empty() ? nullptr : call.b_scale[i];
  gemm.scales.b_per_column = o.b_scale_per_column;
  gemm.scales.blocks = o.block_scales;
  gemm.fast_accumulation = o.fast_accumulation;
  gemm.scales.c = call.c_scale.empty() ? nullptr : call.c_scale[i];
  gemm.workspace = settings.workspace;
  gemm.rows = settings.rows(team, call.m);
  gemm.me = team.me;
  gemm.node_size = team.node_size;
  return gemm;
}

}  // namespace

Gemm gathered_gemm(const Settings& settings, const Team& team, const OperatorCall& call, std::size_t i) {
  const OperatorOptions& o = settings.options;
  Gemm gemm = descriptor_of(settings, team, call, i);
  gemm.n = split(o.ns.empty() ? o.n : o.ns[i], team.size)[team.me].size();
  gemm.k = o.k;
  gemm.destination = GemmLocal{call.c[i]};
  return gemm;
}

Gemm partial_gemm(const Settings& settings, const Team& team, const OperatorCall& call) {
  const OperatorOptions& o = settings.options;
  Gemm gemm = descriptor_of(settings, team, call, 0);
  gemm.n = o.n;
  gemm.k = split(o.k, team.size)[team.me].size();
  gemm.a = call.a;
  gemm.activation = Activation::kNone;
  if (team.me != 0 && gemm.bias != nullptr) gemm.bias = settings.no_bias;
  return gemm;
}

Gemm rows_of(const Gemm& all, Range rows) {
  Gemm some = all;
  some.m = rows.size();
  some.a = static_cast<const std::byte*>(all.a) + rows.begin * all.k * size_of(all.type);
  const Size row_bytes = columns_after(all.activation, all.n) * size_of(all.out_type);
  some.destination = GemmLocal{static_cast<std::byte*>(all.destination.c()) + rows.begin * row_bytes};
  if (all.scales.a != nullptr) some.scales.a = all.scales.a + rows.begin * all.scales.of_row(all.k);
  some.order = TileOrder::kRowMajor;
  return some;
}

}  // namespace tandem::ops
