#include "tools/tandem/options/arguments.h"

#include <fmt/format.h>

#include "tandem/error.h"

namespace tandem::cli {
namespace {

void refuse(bool given, const char* option, const std::string& what, const char* why) {
  if (given) throw InvalidArgument(fmt::format("{}: does not apply to {}, {}", option, what, why));
}
void refuse(bool given, const char* option, const Arguments& a, const char* why) {
  refuse(given, option, a.subject, why);
}

void refuse_simulator_options(const Arguments& a, const std::string& what) {
  refuse(!a.machine.empty(), "--machine", what, "whose machine is this one");
  refuse(a.nodes.has_value(), "--nodes", what, "which is one node");
  refuse(a.pes_per_node.has_value(), "--pes-per-node", what, "which is one node");
  refuse(a.phantom, "--phantom", what, "which runs in real time, on real data");
}

void refuse_gpu_options(const Arguments& a, const std::string& what, const char* why) {
  refuse(a.calls.has_value(), "--calls", what, why);
  refuse(a.late, "--late", what, why);
  refuse(a.buffers.has_value(), "--buffers", what, why);
  refuse(a.versus.has_value(), "--vs", what, why);
  refuse(a.nccl.has_value(), "--nccl", what, why);
}

void refuse_options_of_other_backends(const Arguments& a) {
  const std::string what = "--backend " + a.backend;
  if (a.is_measured()) refuse_simulator_options(a, what);
  if (a.on_gpus()) return;
  refuse_gpu_options(a, what, a.on_host() ? "which has no GPUs" : "which is simulated");
  refuse(a.graph, "--graph", what,
         a.on_host() ? "which has no CUDA graphs" : "because its kernels follow each other as in a graph anyway");
}

void refuse_options_of_gemms(const Arguments& a, const char* why) {
  refuse(a.shape.has_value(), "--shape", a, why);
  refuse(a.m.has_value(), "--m", a, why);
  refuse(a.out_dtype.has_value(), "--out-dtype", a, why);
  refuse(a.b_layout.has_value(), "--b-layout", a, why);
  refuse(a.bias, "--bias", a, why);
  refuse(a.activation.has_value(), "--activation", a, why);
  refuse(a.scales.has_value(), "--scales", a, why);
  refuse(a.transport.has_value(), "--transport", a, why);
  refuse(a.direction.has_value(), "--direction", a, why);
  refuse(a.splits.has_value(), "--splits", a, why);
  refuse(a.shots.has_value(), "--shots", a, why);
  refuse(a.order.has_value(), "--order", a, why);
  refuse(a.tile.has_value(), "--tile", a, why);
  refuse(a.communication_sms.has_value(), "--communication-sms", a, why);
  refuse(a.compute_only, "--compute-only", a, why);
  refuse(a.communication_only, "--communication-only", a, why);
  refuse(a.decomposed, "--decomposed", a, why);
}

void refuse_model(const Arguments& a, const char* why) { refuse(a.model.has_value(), "--model", a, why); }

/// The option that all_reduce_norm shares with dispatch and combine.
void refuse_hidden(const Arguments& a) {
  refuse(a.hidden.has_value(), "--hidden", a, "but to all_reduce_norm, dispatch and combine alone");
}

void refuse_options_of_collectives(const Arguments& a, const char* about_reduction) {
  refuse(a.reduction.has_value(), "--op", a, about_reduction);
  refuse(a.root.has_value(), "--root", a, "which has no root");
  refuse(a.selection.has_value(), "--selection", a, "which has no selection table");
  refuse(a.data.has_value(), "--data", a, "whose data is exact");
  refuse(a.in_place, "--in-place", a, "which is timed with separate buffers");
}

}  // namespace

void validate_shared(const Arguments& a) {
  check_count("--iterations", 1, a.iterations);
  check_count("--calls", 1, a.calls);
  check_count("--warmup", 0, a.warmups);
  if (a.backend != "sim" && !a.is_measured())
    throw InvalidArgument(fmt::format("--backend: '{}' given, allowed are sim, cuda, host", a.backend));
  refuse_options_of_other_backends(a);
  if (a.buffers && *a.buffers != "heap" && *a.buffers != "registered" && *a.buffers != "plain")
    throw InvalidArgument(fmt::format("--buffers: '{}' given, allowed are heap, registered, plain", *a.buffers));
  if (a.versus && *a.versus != "nccl" && *a.versus != "nccl+cublas")
    throw InvalidArgument(fmt::format("--vs: '{}' given, allowed is nccl, or nccl+cublas with operators", *a.versus));
  if (a.nccl && !a.versus) throw InvalidArgument("--nccl: does not apply without --vs nccl");
}

void validate_sweep(const SweepOptions& a) {
  if (a.factor < 2) throw InvalidArgument(fmt::format("-f: {} given, allowed is 2 or more", a.factor));
  validate_shared(a);
}

void check_count(const char* option, int least, const std::optional<int>& value) {
  constexpr int most = 1'000'000;
  if (value && (*value < least || *value > most))
    throw InvalidArgument(fmt::format("{}: {} given, allowed is {} to {}", option, *value, least, most));
}

void refuse_collective_options(const Arguments& a) {
  refuse_norm_options(a);
  refuse_experts_options(a);
  refuse_hidden(a);
  constexpr const char* why = "which is an operator";
  refuse(a.reduction.has_value(), "--op", a, why);
  refuse(a.root.has_value(), "--root", a, why);
  refuse(a.blocks.has_value(), "--blocks", a, why);
  refuse(a.selection.has_value(), "--selection", a, why);
  refuse(a.data.has_value(), "--data", a, why);
  refuse(a.in_place, "--in-place", a, why);
  refuse(a.buffers.has_value(), "--buffers", a, why);
}

void refuse_sweep_options(const SweepOptions& a) {
  constexpr const char* why = "which is an operator: all its configurations are tried, for the rows of its shape";
  refuse(a.algorithm.has_value(), "--algo", a, why);
  refuse(a.first.has_value(), "-b", a, why);
  refuse(a.last.has_value(), "-e", a, why);
}

void refuse_norm_options(const Arguments& a) {
  constexpr const char* why = "but to all_reduce_norm alone";
  refuse(a.rows.has_value(), "--rows", a, why);
  refuse(a.norm.has_value(), "--norm", a, why);
  refuse(a.quantise.has_value(), "--quantise", a, why);
  refuse(a.sharded_residual, "--sharded-residual", a, why);
}

void refuse_experts_options(const Arguments& a) {
  constexpr const char* why = "but to dispatch and combine alone";
  refuse(a.tokens.has_value(), "--tokens", a, why);
  refuse(a.routing.has_value(), "--routing", a, why);
  refuse(a.experts.has_value(), "--experts", a, why);
  refuse(a.top_k.has_value(), "--top-k", a, why);
  refuse(a.wire.has_value(), "--wire", a, why);
  refuse(a.layout.has_value(), "--layout", a, why);
  refuse(a.align.has_value(), "--align", a, why);
}

void refuse_all_but_norm_options(const Arguments& a) {
  refuse_experts_options(a);
  refuse_options_of_gemms(a, "which multiplies no matrices");
  refuse_model(a, "which multiplies no matrices");
  refuse_options_of_collectives(a, "which adds");
}

void refuse_all_but_experts_options(const Arguments& a) {
  refuse_norm_options(a);
  refuse_options_of_gemms(a, "which multiplies no matrices");
  refuse_options_of_collectives(a, "which adds if it combines");
}

void refuse_operator_options(const Arguments& a) {
  refuse_norm_options(a);
  refuse_experts_options(a);
  refuse_hidden(a);
  refuse_options_of_gemms(a, "which is a collective");
  refuse_model(a, "which is a collective");
}

}  // namespace tandem::cli
