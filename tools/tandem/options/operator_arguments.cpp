// The options of an operator that the arguments describe.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tandem/error.h"
#include "tools/tandem/run/run_operator.h"

namespace tandem::cli {
namespace {

Form parse_form(const std::string& text) {
  std::string names;
  for (const Form form : kForms) {
    if (text == name(form)) return form;
    names += (names.empty() ? "" : ", ") + std::string(name(form));
  }
  throw InvalidArgument(fmt::format("--algo: '{}' given, allowed is one of {}", text, names));
}

Form form_of(const Arguments& a) {
  if (a.algorithm.has_value() + a.compute_only + a.communication_only + a.decomposed > 1)
    throw InvalidArgument("--algo, --compute-only, --communication-only, --decomposed: give one of them");
  if (a.algorithm) return parse_form(*a.algorithm);
  if (a.compute_only) return Form::kComputeOnly;
  if (a.communication_only) return Form::kCommunicationOnly;
  return a.decomposed ? Form::kDecomposed : Form::kSuitable;
}

Shape shape_of(const Arguments& a) {
  if (a.shape.has_value() == a.model.has_value())
    throw InvalidArgument(
        a.shape
            ? fmt::format("--shape, --model: both given to {}, allowed is one (--m sets the rows)", a.subject)
            : fmt::format("{}: give --shape or --model, for example --shape 512x14336x4096 or --model llama3-8b:ffn_up",
                          a.subject));
  Shape shape = a.shape ? parse_shape("--shape", *a.shape) : layer_shape(*a.model);
  if (a.m && *a.m < 0) throw InvalidArgument(fmt::format("--m: {} given, allowed is 0 or more", *a.m));
  shape.m = a.m.value_or(shape.m);
  return shape;
}

/// Parses one of two words.
bool is_second(const char* option, const std::string& text, const char* first, const char* second) {
  if (text != first && text != second)
    throw InvalidArgument(fmt::format("{}: '{}' given, allowed is {} or {}", option, text, first, second));
  return text == second;
}

constexpr std::array kActivations{"none", "relu", "gelu", "silu", "swiglu", "geglu"};

void set_scales(OperatorRun& run, const std::string& text) {
  OperatorOptions& o = run.options;
  constexpr std::array kinds{"tensors", "rows", "columns", "rows+columns", "blocks"};
  if (std::find(kinds.begin(), kinds.end(), text) == kinds.end())
    throw InvalidArgument(fmt::format("--scales: '{}' given, allowed is one of {}", text, fmt::join(kinds, ", ")));
  if (o.type != DType::kE4M3)
    throw InvalidArgument(fmt::format("--scales: given with --dtype {}, allowed for fp8_e4m3 alone", name(o.type)));
  run.scales = true;
  o.a_scale_per_row = text.starts_with("rows");
  o.b_scale_per_column = text.ends_with("columns");
  o.block_scales = text == "blocks";
}

/// A norm comes with a residual, and with the sums as an output.
void set_norm(OperatorNorm& norm, const Arguments& a) {
  norm.residual = norm.sum = true;
  norm.norm = Norm::kRms;
  if (a.norm) norm.norm = parse_norm(*a.norm);
  if (a.quantise) norm.quantisation = parse_quantisation(*a.quantise);
}

/// Sets everything that is computed besides the plain product.
void set_epilogue(OperatorRun& run, const Arguments& a) {
  OperatorOptions& o = run.options;
  o.type = dtype_option(a, o.type);
  if (a.out_dtype) o.out_type = for_option("--out-dtype", "dtype", [&] { return parse_dtype(*a.out_dtype); });
  if (a.b_layout && is_second("--b-layout", *a.b_layout, "NxK", "KxN")) o.b_layout = BLayout::kKxN;
  if (a.activation) o.activation = parse_activation(*a.activation);
  if (a.norm || a.quantise) set_norm(o.norm, a);
  run.bias = a.bias;
  if (a.scales) set_scales(run, *a.scales);
  o.fast_accumulation = a.fast_accumulation;
}

}  // namespace

Activation parse_activation(const std::string& text) {
  for (std::size_t i = 0; i < kActivations.size(); ++i)
    if (text == kActivations.at(i)) return static_cast<Activation>(i);
  throw InvalidArgument(
      fmt::format("--activation: '{}' given, allowed is one of {}", text, fmt::join(kActivations, ", ")));
}

const char* summary(Form form) {
  switch (form) {
    case Form::kSuitable:
      return "overlapped, or sequential where shards do not fill tiles: the default";
    case Form::kOverlapped:
      return "the GEMM waits for, or sends, tile by tile";
    case Form::kSequential:
      return "the collective and the GEMM one after the other: the baseline";
    case Form::kDecomposed:
      return "the GEMM cut into one chunk a shard between stream waits";
    case Form::kComputeOnly:
      return "the GEMM alone";
    case Form::kCommunicationOnly:
      return "the collective alone";
  }
  return "";
}

const char* summary(Operator op) {
  switch (op) {
    case Operator::kAllGatherGemm:
      return "gathers the rows of A from all PEs and multiplies them with the own rows of B";
    case Operator::kGemmReduceScatter:
      return "multiplies the own columns of A and B and sums over all PEs; each gets its rows";
    case Operator::kGemmAllReduce:
      return "multiplies the own columns of A and B and sums over all PEs; each gets all rows";
  }
  return "";
}

std::string extras_text(const OperatorRun& run) {
  const OperatorOptions& o = run.options;
  std::vector<std::string> parts;
  if (o.out_type && o.out_type != o.type) parts.push_back(fmt::format("to {}", name(*o.out_type)));
  if (o.b_layout == BLayout::kKxN) parts.emplace_back("KxN");
  if (run.scales) {
    const char* const of_rows = o.b_scale_per_column ? "rows and columns" : "rows";
    parts.push_back(fmt::format("scales of {}", o.block_scales         ? "blocks"
                                                : o.a_scale_per_row    ? of_rows
                                                : o.b_scale_per_column ? "columns"
                                                                       : "tensors"));
  }
  if (o.fast_accumulation) parts.emplace_back("fast accumulation");
  if (run.bias) parts.emplace_back("bias");
  if (o.norm.any()) parts.push_back(fmt::format("residual, {} norm", name(o.norm.norm)));
  if (run.quantises_a()) parts.emplace_back("A quantised");
  if (o.norm.quantisation != Quantisation::kNone)
    parts.push_back(fmt::format("C in fp8_e4m3 by {}", name(o.norm.quantisation)));
  if (o.activation != Activation::kNone) parts.emplace_back(kActivations.at(static_cast<std::size_t>(o.activation)));
  return fmt::format("{}", fmt::join(parts, ", "));
}

OperatorRun make_operator_run(Operator op, const Arguments& a) {
  refuse_collective_options(a);
  OperatorRun run;
  run.op = op;
  run.warmups = a.warmups;
  run.iterations = a.iterations.value_or(1);
  if (a.shots && op != Operator::kGemmAllReduce)
    throw InvalidArgument(fmt::format("--shots: does not apply to {}, which is no gemm_all_reduce", name(op)));
  OperatorOptions& o = run.options;
  o.form = form_of(a);
  const Shape shape = shape_of(a);
  o.m = shape.m;
  o.n = shape.n;
  o.k = shape.k;
  set_epilogue(run, a);
  if (a.transport && is_second("--transport", *a.transport, "ce", "sm")) o.copy_by = CopyBy::kSm;
  if (a.transport && !o.copy_by) o.copy_by = CopyBy::kCopyEngine;
  o.use_tuned = !a.transport && !a.direction && !a.order && !a.tile && !a.splits && !a.shots && !a.communication_sms;
  if (a.direction && is_second("--direction", *a.direction, "push", "pull")) o.direction = Direction::kPull;
  o.shots = a.shots.value_or(o.shots);
  if (a.shots && (o.shots < 1 || o.shots > 2))
    throw InvalidArgument(fmt::format("--shots: {} given, allowed is 1 or 2", o.shots));
  o.splits = a.splits.value_or(o.splits);
  if (a.splits && (o.splits < 1 || o.splits > 8))
    throw InvalidArgument(fmt::format("--splits: {} given, allowed is 1 to 8", o.splits));
  o.order = a.order.value_or("");
  if (a.tile) {
    const TileSize tile = parse_tile(*a.tile);
    o.tile_m = tile.m;
    o.tile_n = tile.n;
  }
  o.communication_sms = a.communication_sms.value_or(-1);
  if (a.communication_sms && *a.communication_sms < 0)
    throw InvalidArgument(fmt::format("--communication-sms: {} given, allowed is 0 or more", *a.communication_sms));
  return run;
}

OperatorRun make_operator_run(Operator op, const RunOptions& options) {
  if (options.bytes)
    throw InvalidArgument(
        fmt::format("--bytes: does not apply to {}, which is an operator: give --shape or --model", options.subject));
  OperatorRun run = make_operator_run(op, static_cast<const Arguments&>(options));
  run.explain = options.explain;
  return run;
}

}  // namespace tandem::cli
