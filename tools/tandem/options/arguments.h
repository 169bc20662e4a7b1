#pragma once
/// The command line as typed: each word in its type, without interpretation.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tandem/range.h"
#include "tools/tandem/check/check_arguments.h"

namespace tandem::cli {

enum class Command { kList, kMachines, kRun, kBench, kCheck, kTune, kDoctor, kCalibrate };

struct Arguments {
  Command command = Command::kList;
  std::string subject;                ///< OP of run; NAME or FILE of machines, which may be empty
  std::vector<std::string> subjects;  ///< OP... of bench
  std::string command_line;           ///< "tandem run ...", as results show it

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
  std::optional<int> most;  ///< only for tune

  // The operation.
  std::string dtype;  ///< empty: bf16 for operators, f32 for collectives
  std::optional<std::string> algorithm;

  // Collectives.
  std::optional<std::string> bytes, reduction, data;
  std::optional<int> root, blocks;
  bool in_place = false;

  // all_reduce_norm.
  std::optional<std::string> rows, hidden, norm, quantise;
  bool sharded_residual = false;

  // Operators.
  std::optional<std::string> shape, model, transport, direction, order, tile;
  std::optional<std::string> out_dtype, b_layout, activation, scales;
  bool bias = false;
  std::optional<Size> m;
  std::optional<int> splits, shots, communication_sms;
  bool compute_only = false, communication_only = false, decomposed = false;

  std::optional<std::string> selection;

  bool explain = false;  ///< of run

  // The sweep of bench and tune.
  std::optional<std::string> first, last;
  int factor = 2;

  CheckArguments check;

  // Output files; empty: none.
  std::string json, trace, report, svg;
  std::string out;   ///< for tune and calibrate
  std::string base;  ///< for calibrate; empty: h200x4

  bool on_gpus() const { return backend == "cuda"; }
  bool on_host() const { return backend == "host"; }
  /// Returns whether it runs in real time: the times are no predictions.
  bool is_measured() const { return on_gpus() || on_host(); }
  /// Whether the JSON goes to standard output, which then has nothing else.
  bool json_to_stdout() const { return json == "-"; }
};

/// Converts the words after "tandem": "help run" becomes "run --help". Throws InvalidArgument for "help" of several.
std::vector<std::string> with_help_as_option(std::vector<std::string> words);

/// Throws InvalidArgument with one line for an invalid command line. Returns nothing if the user asked for help, which
/// is printed.
std::optional<Arguments> parse_arguments(const std::vector<std::string>& words);

/// Throws InvalidArgument with the name of an option that does not apply to an operator (or to a collective).
void refuse_collective_options(const Arguments& arguments);
void refuse_operator_options(const Arguments& arguments);
/// Throws InvalidArgument with the name of an option that applies to all_reduce_norm alone, or not to it.
void refuse_norm_options(const Arguments& arguments);
void refuse_all_but_norm_options(const Arguments& arguments);
/// Does the same for options of `tune` that do not apply to operators.
void refuse_sweep_options(const Arguments& arguments);
/// Does the same for options that the chosen backend does not use.
void refuse_options_of_other_backends(const Arguments& arguments);

}  // namespace tandem::cli
