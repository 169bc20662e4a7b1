#include "operators/resolve/operator_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "operators/resolve/operator_defaults.h"
#include "operators/steps/steps.h"
#include "tandem/error.h"

namespace tandem::ops {

void require(bool holds, const char* option, Size given, const std::string& allowed) {
  if (!holds) throw InvalidArgument(fmt::format("{}: {} given, allowed is {}", option, given, allowed));
}

namespace {

/// A product of two sides in bytes has to fit into Size.
constexpr Size kMostOfASide = Size{1} << 30;

/// Requires an enumerator, since values may have been cast from elsewhere.
template <class E>
void require_one_of(const char* what, E given, E last) {
  require(static_cast<int>(given) >= 0 && given <= last, what, static_cast<Size>(given),
          fmt::format("0 to {}", static_cast<int>(last)));
}

void check_block_scales(const OperatorOptions& options, bool on_gpus) {
  if (options.type != DType::kE4M3) throw InvalidArgument("block_scales: given, allowed for fp8_e4m3 alone");
  if (options.a_scale_per_row || options.b_scale_per_column)
    throw InvalidArgument(fmt::format("{}: given with block_scales, allowed is one of them",
                                      options.a_scale_per_row ? "a_scale_per_row" : "b_scale_per_column"));
  if (options.fast_accumulation)
    throw InvalidArgument("fast_accumulation: given with block_scales, allowed is one of them");
  if (!on_gpus) return;
  const DType out = options.result_type();
  if (out != DType::kBF16 && (out != DType::kF16 || is_gated(options.activation)))
    throw InvalidArgument(fmt::format("out_type: {} given, allowed with block_scales{} on GPUs is bf16{}", name(out),
                                      is_gated(options.activation) ? " and a gated activation" : "",
                                      is_gated(options.activation) ? "" : " or f16"));
  constexpr int kTileM = 128, kTileN = 256;
  if (options.tile_m != kTileM || options.tile_n != kTileN)
    throw InvalidArgument(fmt::format("tile_m, tile_n: {}x{} given, allowed with block_scales on GPUs is {}x{}",
                                      options.tile_m, options.tile_n, kTileM, kTileN));
}

void check_types(Operator op, const OperatorOptions& options, bool on_gpus) {
  const bool gather = op == Operator::kAllGatherGemm;
  const bool fp8 = options.type == DType::kE4M3;
  const DType out = options.result_type();
  if (!fp8 && options.type != DType::kBF16 && options.type != DType::kF16 && options.type != DType::kF32)
    throw InvalidArgument(
        fmt::format("type: {} given, allowed for {} are bf16, f16, f32, fp8_e4m3", name(options.type), name(op)));
  if (on_gpus && options.type == DType::kF32)
    throw InvalidArgument(fmt::format("type: f32 given, allowed for {} on GPUs are bf16, f16, fp8_e4m3", name(op)));
  if (!fp8 && out != options.type)
    throw InvalidArgument(fmt::format("out_type: {} given, allowed for {} is the same", name(out), name(options.type)));
  if (fp8 && out != DType::kBF16 && out != DType::kF16 && (out != DType::kE4M3 || !gather))
    throw InvalidArgument(fmt::format("out_type: {} given, allowed for {} of fp8_e4m3 are bf16, f16{}", name(out),
                                      name(op), gather ? ", fp8_e4m3" : " (partial sums travel)"));
  if (!fp8 && (options.a_scale_per_row || options.b_scale_per_column))
    throw InvalidArgument(fmt::format("{}: given, allowed for fp8_e4m3 alone",
                                      options.a_scale_per_row ? "a_scale_per_row" : "b_scale_per_column"));
  if (options.fast_accumulation && !fp8) throw InvalidArgument("fast_accumulation: given, allowed for fp8_e4m3 alone");
  if (options.block_scales) check_block_scales(options, on_gpus);
  if (fp8 && on_gpus && options.b_layout == BLayout::kKxN)
    throw InvalidArgument(
        "b_layout: KxN given, allowed for fp8_e4m3 on GPUs is NxK (the tensor cores read fp8 along k): transpose B, "
        "once where it is constant");
}

/// A gated activation takes whole groups of gates and ups on each PE.
void check_gates(Operator op, const OperatorOptions& options, int pes) {
  if (!is_gated(options.activation)) return;
  constexpr Size kPairs = 2 * kGateGroup;
  if (op != Operator::kAllGatherGemm)
    throw InvalidArgument(
        fmt::format("activation: a gated one given, allowed for {} are the others (partial sums travel)", name(op)));
  require(options.tile_n % kPairs == 0, "tile_n", options.tile_n,
          fmt::format("a multiple of {} with a gated activation", kPairs));
  for (const Size n : options.ns.empty() ? std::vector{options.n} : options.ns)
    for (int pe = 0; pe < pes; ++pe) {
      const Size part = split(n, pes)[pe].size();
      require(part % kPairs == 0, options.ns.empty() ? "n" : "ns", n,
              fmt::format("with a gated activation what gives each of {} PEs a multiple of {}; PE {} has {}", pes,
                          kPairs, pe, part));
    }
}

void require_positive(const char* option, double value) {
  const auto rounded = static_cast<float>(value);
  if (!(rounded > 0) || !std::isfinite(rounded))
    throw InvalidArgument(fmt::format("{}: {} given, allowed are positive finite numbers of f32", option, value));
}

/// The steps of all_gather_gemm before the gather.
void check_norm_of_a(const OperatorOptions& options) {
  if (options.result_type() == DType::kE4M3)
    throw InvalidArgument("out_type: fp8_e4m3 given, allowed for all_gather_gemm with a norm are bf16 and f16");
  if (options.norm.quantisation != Quantisation::kNone)
    throw InvalidArgument(
        fmt::format("quantisation: {} given, allowed for all_gather_gemm is none", name(options.norm.quantisation)));
}

/// The steps of a norm. A part of an operator alone has none of them, but may have the options of the whole.
void check_norm(Operator op, const OperatorOptions& options) {
  const OperatorNorm& norm = options.norm;
  require_one_of("norm", norm.norm, Norm::kLayer);
  require_one_of("quantisation", norm.quantisation, Quantisation::kGroup);
  require_positive("epsilon", norm.epsilon);
  require_positive("scale", norm.scale);
  const bool quantises_a = quantisation_of_a(op, options) == Quantisation::kStatic;
  if (norm.scale != 1 && norm.quantisation != Quantisation::kStatic && !quantises_a)
    throw InvalidArgument(
        fmt::format("scale: {} given with quantisation {}, allowed with static", norm.scale, name(norm.quantisation)));
  if (!norm.any()) return;
  constexpr Size kMostOfARow = Size{1} << 20;
  const bool gathers = op == Operator::kAllGatherGemm;
  if (gathers) check_norm_of_a(options);
  if (!gathers && options.activation != Activation::kNone)
    throw InvalidArgument("activation: given with a norm or a residual, allowed is none");
  if (norm.norm_bias && norm.norm == Norm::kNone)
    throw InvalidArgument("norm_bias: given without a norm, allowed with rms and layer");
  require((gathers ? options.k : options.n) <= kMostOfARow, gathers ? "k" : "n", gathers ? options.k : options.n,
          fmt::format("at most {} with a norm", kMostOfARow));
}

/// GPUs (TMA) read and write rows of 16 bytes. Each PE's part needs them too, or one PE alone would refuse to run.
void check_row_bytes(Operator op, const OperatorOptions& options, int pes) {
  const auto elements = [](DType type) { return Size{16} / size_of(type); };
  const bool b_rows_are_n = options.b_layout == BLayout::kKxN;
  const Size of_each = is_gated(options.activation) ? 2 : 1;  // columns of the product
  const Size n_unit = std::max(of_each * elements(options.result_type()), b_rows_are_n ? elements(options.type) : 1);
  const auto check_parts = [&](const char* option, Size whole, Size unit, bool in_parts) {
    if (!in_parts) return require(whole % unit == 0, option, whole, fmt::format("on GPUs a multiple of {}", unit));
    for (int pe = 0; pe < pes; ++pe) {
      const Size part = split(whole, pes)[pe].size();
      require(part % unit == 0, option, whole,
              fmt::format("on GPUs what gives each of {} PEs a multiple of {}; PE {} has {}", pes, unit, pe, part));
    }
  };
  const bool gathers = op == Operator::kAllGatherGemm;
  check_parts("k", options.k, elements(options.type), !gathers);
  if (options.ns.empty()) check_parts("n", options.n, n_unit, gathers);
  for (const Size n : options.ns) check_parts("ns", n, n_unit, gathers);
}

}  // namespace

void check(Operator op, const OperatorOptions& options, const World& world) {
  const Machine& machine = world.machine();
  require_one_of("op", op, Operator::kGemmAllReduce);
  require_one_of("form", options.form, Form::kCommunicationOnly);
  require_one_of("activation", options.activation, Activation::kGeGlu);
  require_one_of("direction", options.direction, Direction::kPull);
  require_one_of("b_layout", options.b_layout, BLayout::kKxN);
  if (options.copy_by) require_one_of("copy_by", *options.copy_by, CopyBy::kSm);
  if (options.reduction) require_one_of("reduction", *options.reduction, Reduction::kChain);
  require(options.m >= 0, "m", options.m, "0 or more");
  require(options.n >= 1, "n", options.n, "1 or more");
  require(options.k >= 1, "k", options.k, "1 or more");
  const auto most = fmt::format("at most {}", kMostOfASide);
  require(options.m <= kMostOfASide, "m", options.m, most);
  require(options.n <= kMostOfASide, "n", options.n, most);
  require(options.k <= kMostOfASide, "k", options.k, most);
  const Size sum = std::accumulate(options.ns.begin(), options.ns.end(), Size{0});
  if (!options.ns.empty() && op != Operator::kAllGatherGemm)
    throw InvalidArgument(
        fmt::format("ns: a list of {} given, allowed for {} is none: it has one B, of n", options.ns.size(), name(op)));
  for (const Size n : options.ns) require(n >= 1, "ns", n, "1 or more each");
  require(options.ns.empty() || sum == options.n, "ns", sum, fmt::format("n, {}, in all", options.n));
  require(options.shots >= 0 && options.shots <= (op == Operator::kGemmAllReduce ? 2 : 0), "shots", options.shots,
          op == Operator::kGemmAllReduce ? "1, 2, or 0 for what suits the rows" : "0");
  require(options.splits >= 0 && options.splits <= kMostSplits, "splits", options.splits,
          fmt::format("1 to {}, or 0 for what suits", kMostSplits));
  require(options.tile_m >= 1, "tile_m", options.tile_m, "1 or more");
  require(options.tile_n >= 1, "tile_n", options.tile_n, "1 or more");
  require(options.panel_group >= 0, "panel_group", options.panel_group, "0 or more");
  const bool needs_sm = op == Operator::kAllGatherGemm && options.copy_by == CopyBy::kSm;
  const int given = options.communication_sms;
  // A GPU's GEMM takes SMs in pairs, and leaves some to steps beside it.
  const int left = machine.gpu.sm_count - (world.on_gpus() ? 2 + kStepSms : 1);
  require(given == -1 || (given >= (needs_sm ? 1 : 0) && given <= left), "communication_sms", given,
          fmt::format("{} to {} on {}, or -1 for what the transport needs", needs_sm ? 1 : 0, left, machine.name));
  if (options.reduction == Reduction::kChain) {
    if (op == Operator::kAllGatherGemm)
      throw InvalidArgument("reduction: kChain given, allowed for all_gather_gemm is none: it adds nothing up");
    if (options.direction == Direction::kPull)
      throw InvalidArgument("direction: kPull given, allowed for a chain is kPush: each PE sends its sums on");
    if (!options.order.empty() && options.order != "peers_first")
      throw InvalidArgument(
          fmt::format("order: {} given, allowed for a chain is peers_first, in which sums go on", options.order));
  }
  check_types(op, options, world.on_gpus());
  check_gates(op, options, world.num_pes());
  check_norm(op, options);
  if (world.on_gpus()) check_row_bytes(op, options, world.num_pes());
}

}  // namespace tandem::ops
