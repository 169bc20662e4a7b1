#include "tools/tandem/options/arguments.h"

#include <fmt/format.h>

#include <algorithm>

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
  if (a.in_real_time()) refuse_simulator_options(a, what);
  if (a.on_gpus()) return;
  refuse_gpu_options(a, what, a.on_host() ? "which has no GPUs" : "which is simulated");
  refuse(a.graph, "--graph", what,
         a.on_host() ? "which has no CUDA graphs" : "because its kernels follow each other as in a graph anyway");
}

bool multiplies_experts(const Arguments& a) { return a.subject == "dispatch_gemm" || a.subject == "gemm_combine"; }

void refuse_options_of_gemms(const Arguments& a, const char* why) {
  refuse(a.shape.has_value(), "--shape", a, why);
  refuse(a.m.has_value(), "--m", a, why);
  refuse(a.out_dtype.has_value(), "--out-dtype", a, why);
  refuse(a.b_layout.has_value(), "--b-layout", a, why);
  refuse(a.bias, "--bias", a, why);
  refuse(a.activation.has_value() && !multiplies_experts(a), "--activation", a, why);
  refuse(a.scales.has_value(), "--scales", a, why);
  refuse(a.fast_accumulation, "--fast-accumulation", a, why);
  refuse(a.transport.has_value(), "--transport", a, why);
  refuse(a.direction.has_value(), "--direction", a, why);
  refuse(a.splits.has_value(), "--splits", a, why);
  refuse(a.shots.has_value(), "--shots", a, why);
  refuse(a.order.has_value(), "--order", a, why);
  refuse(a.tile.has_value() && !multiplies_experts(a), "--tile", a, why);
  refuse(a.communication_sms.has_value() && !multiplies_experts(a), "--communication-sms", a, why);
  refuse(a.compute_only, "--compute-only", a, why);
  refuse(a.communication_only, "--communication-only", a, why);
  refuse(a.decomposed, "--decomposed", a, why);
}

}  // namespace

DType dtype_option(const Arguments& a, DType otherwise) { return a.dtype.empty() ? otherwise : parse_dtype(a.dtype); }

void validate_shared(const Arguments& a) {
  check_count("--iterations", 1, a.iterations);
  check_count("--calls", 1, a.calls);
  check_count("--warmup", 0, a.warmups);
  if (a.backend != "sim" && !a.in_real_time())
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
  refuse_layer_options(a);
  constexpr const char* why = "which is an operator";
  refuse(a.reduction.has_value(), "--op", a, why);
  refuse(a.root.has_value(), "--root", a, why);
  refuse(a.blocks.has_value(), "--blocks", a, why);
  refuse(a.selection.has_value(), "--selection", a, why);
  refuse(a.data.has_value(), "--data", a, why);
  refuse(a.wire.has_value(), "--wire", a, why);
  refuse(a.in_place, "--in-place", a, why);
  refuse(a.buffers.has_value(), "--buffers", a, why);
}

void refuse_sweep_options(const SweepOptions& a) {
  constexpr const char* why = "which is an operator: all its configurations are tried, for the rows of its shape";
  refuse(a.algorithm.has_value(), "--algo", a, why);
  refuse(a.first.has_value(), "-b", a, why);
  refuse(a.last.has_value(), "-e", a, why);
}

void refuse_layer_options(const Arguments& a) {
  const auto allow = [&](bool given, const char* option, const std::vector<std::string>& owners) {
    if (std::find(owners.begin(), owners.end(), a.subject) != owners.end()) return;
    refuse(given, option, a, fmt::format("but to {}", fmt::join(owners, ", ")).c_str());
  };
  const std::string gather = "all_gather_gemm", scatter = "gemm_reduce_scatter", reduce = "gemm_all_reduce";
  const std::string norm = "all_reduce_norm", merge = "merge_heads", exchange = "exchange_heads";
  const std::string dispatch = "dispatch", combine = "combine";
  const std::string dispatch_gemm = "dispatch_gemm", gemm_combine = "gemm_combine";
  const std::vector<std::string> of_experts{dispatch, combine, dispatch_gemm, gemm_combine};
  allow(a.rows.has_value(), "--rows", {norm, exchange});
  allow(a.hidden.has_value(), "--hidden", {norm, dispatch, combine, dispatch_gemm, gemm_combine});
  allow(a.norm.has_value(), "--norm", {norm, gather, scatter, reduce});
  allow(a.quantise.has_value(), "--quantise", {norm, scatter, reduce});
  allow(a.sharded_residual, "--sharded-residual", {norm});
  allow(a.batch.has_value(), "--batch", {merge});
  allow(a.heads.has_value(), "--heads", {merge, exchange});
  allow(a.head_size.has_value(), "--head-size", {merge, exchange});
  allow(a.all_heads, "--all-heads", {merge});
  allow(a.kv_heads.has_value(), "--kv-heads", {exchange});
  allow(a.to.has_value(), "--to", {exchange});
  allow(a.tokens.has_value(), "--tokens", of_experts);
  allow(a.routing.has_value(), "--routing", of_experts);
  allow(a.experts.has_value(), "--experts", of_experts);
  allow(a.top_k.has_value(), "--top-k", of_experts);
  allow(a.tp_size.has_value(), "--tp-size", of_experts);
  allow(a.intermediate.has_value(), "--intermediate", {dispatch_gemm, gemm_combine});
  allow(a.column_chunks.has_value(), "--column-chunks", {gemm_combine});
  allow(a.layout.has_value(), "--layout", {dispatch, combine});
  allow(a.align.has_value(), "--align", of_experts);
}

void refuse_all_but_layer_options(const Arguments& a) {
  refuse_layer_options(a);
  refuse_options_of_gemms(
      a, multiplies_experts(a) ? "whose problem has options of its own" : "which multiplies no matrices");
  refuse(a.reduction.has_value(), "--op", a, "which has no other reduction");
  refuse(a.root.has_value(), "--root", a, "which has no root");
  refuse(a.selection.has_value(), "--selection", a, "which has no selection table");
  refuse(a.data.has_value(), "--data", a, "whose data is exact");
  refuse(a.in_place, "--in-place", a, "which is timed with separate buffers");
  if (a.subject == "dispatch" || a.subject == "combine") return;
  refuse(a.model.has_value() && !multiplies_experts(a), "--model", a, "which multiplies no matrices");
  refuse(a.wire.has_value() && !multiplies_experts(a), "--wire", a, "which sends values of the type");
  refuse(a.blocks.has_value() && multiplies_experts(a), "--blocks", a, "which has --communication-sms");
}

void refuse_operator_options(const Arguments& a) {
  refuse_layer_options(a);
  refuse_options_of_gemms(a, "which is a collective");
  refuse(a.model.has_value(), "--model", a, "which is a collective");
}

}  // namespace tandem::cli
