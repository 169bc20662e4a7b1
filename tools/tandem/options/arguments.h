#pragma once
/// The command line as typed: each word in its type, without interpretation. A command's own options are in its folder.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tandem/numeric.h"
#include "tandem/range.h"

namespace tandem::cli {

/// The options of a command that writes a result.
struct OutputOptions {
  std::string json;  ///< a file, "-" or, if empty, none

  /// Whether the JSON goes to standard output, which then has nothing else.
  bool json_to_stdout() const { return json == "-"; }
};

/// The options that run, bench and tune share.
struct Arguments : OutputOptions {
  std::string subject;       ///< one OP
  std::string command_line;  ///< "tandem run ...", as results show it

  // The place of the run.
  std::string backend = "sim";
  std::string machine;  ///< empty: h200x4
  std::optional<int> nodes, pes, pes_per_node;
  std::uint64_t seed = 1;
  bool phantom = false;
  std::optional<int> iterations;
  int warmups = 1;

  // For GPUs only.
  bool graph = false, late = false;
  std::optional<int> calls;
  std::optional<std::string> versus, nccl, buffers;

  // The operation.
  std::string dtype;  ///< empty: bf16 for operators, f32 for collectives
  std::optional<std::string> algorithm;

  // Collectives.
  std::optional<std::string> reduction, data, wire;
  std::optional<int> root, blocks;
  bool in_place = false;

  // Calls of include/tandem/layer.
  std::optional<std::string> rows, hidden, norm, quantise;
  std::optional<std::string> batch, heads, kv_heads, head_size, to;
  bool sharded_residual = false, all_heads = false;

  // Calls of experts, which have `hidden`, `model` and `wire`, too.
  std::optional<std::string> tokens, routing, layout, intermediate;
  std::optional<int> experts, top_k, tp_size, align, column_chunks;

  // Operators.
  std::optional<std::string> shape, model, transport, direction, order, tile;
  std::optional<std::string> out_dtype, b_layout, activation, scales;
  bool bias = false, fast_accumulation = false;
  std::optional<Size> m;
  std::optional<int> splits, shots, communication_sms;
  bool compute_only = false, communication_only = false, decomposed = false;

  std::optional<std::string> selection;

  bool on_gpus() const { return backend == "cuda"; }
  bool on_host() const { return backend == "host"; }
  /// Returns whether it runs in real time: the times are no predictions.
  bool in_real_time() const { return on_gpus() || on_host(); }
};

/// The sizes of bench and tune: OP... from -b to -e by factors of -f.
struct SweepOptions : Arguments {
  std::vector<std::string> subjects;
  std::optional<std::string> first, last;
  int factor = 2;
};

/// Returns the type of --dtype, or `otherwise` without one.
DType dtype_option(const Arguments&, DType otherwise);

/// Throws InvalidArgument for values that are invalid for every operation, and for options that the backend does not
/// use.
void validate_shared(const Arguments&);
void validate_sweep(const SweepOptions&);
/// Throws InvalidArgument unless the value, if given, is from `least` to a million.
void check_count(const char* option, int least, const std::optional<int>& value);

/// Throws InvalidArgument with the name of an option that does not apply to an operator (or to a collective).
void refuse_collective_options(const Arguments&);
void refuse_operator_options(const Arguments&);
/// Throws InvalidArgument with the name of an option that applies to other calls of include/tandem/layer than this one,
/// or to none of them.
void refuse_layer_options(const Arguments&);
void refuse_all_but_layer_options(const Arguments&);
/// Does the same for options of `tune` that do not apply to operators.
void refuse_sweep_options(const SweepOptions&);

}  // namespace tandem::cli
