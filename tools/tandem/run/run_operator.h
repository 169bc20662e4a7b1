#pragma once
/// `tandem run` of an operator.

#include "tandem/operators.h"
#include "tools/tandem/host/host_job.h"
#include "tools/tandem/main/setup.h"
#include "tools/tandem/options/options.h"
#include "tools/tandem/options/progress.h"
#include "tools/tandem/run/pictures.h"
#include "tools/tandem/run/result.h"
#include "tools/tandem/run/run_options.h"

namespace tandem::cli {

struct OperatorRun {
  Operator op = Operator::kAllGatherGemm;
  OperatorOptions options;
  int warmups = 1;
  int iterations = 1;
  bool bias = false;
  bool explain = false;
  bool scales = false;  ///< fp8: scales of A and B, by row and by column as the options demand

  Shape shape() const { return {options.m, options.n, options.k}; }
  /// Returns whether a norm before the gather quantises A and makes its scales.
  bool quantises_a() const {
    return op == Operator::kAllGatherGemm && options.norm.any() && options.type == DType::kE4M3;
  }
  /// Returns the type of A in a PE's memory.
  DType a_type() const { return quantises_a() ? options.result_type() : options.type; }
};

/// Descriptions of an operator and of a form, for people.
const char* summary(Operator op);
const char* summary(Form form);
inline constexpr Operator kOperators[] = {Operator::kAllGatherGemm, Operator::kGemmReduceScatter,
                                          Operator::kGemmAllReduce};
inline constexpr Form kForms[] = {Form::kSuitable,   Form::kOverlapped,  Form::kSequential,
                                  Form::kDecomposed, Form::kComputeOnly, Form::kCommunicationOnly};

/// Returns "KxN, bias, gelu": the computations besides the plain product, or "".
std::string extras_text(const OperatorRun& run);

/// Throws InvalidArgument for options that are invalid or inconsistent.
OperatorRun make_operator_run(Operator op, const Arguments& arguments);
OperatorRun make_operator_run(Operator op, const RunOptions& options);
/// Returns the parts of a Progress for `run_operator`: the calls of the run and of its baselines.
int parts_of(const OperatorRun& run);
/// Runs it on CPUs and checks every element of every PE's result. The time is the slowest PE's.
Result run_operator_on_host(const OperatorRun& run, const HostJob& job);
/// Returns the bytes of A, B, the gathered rows or the staged sums, and C on a PE, which real data needs at least.
double bytes_per_pe(const OperatorRun& run, int pes);
class OperatorMatrices;
/// Runs it, checks every element of every PE's result, and measures the baselines in phantom mode. `given` gives the
/// matrices and checks the result; null: random matrices of the seed.
Result run_operator(const OperatorRun& run, Setup setup, Pictures& pictures, Progress& progress,
                    const OperatorMatrices* given = nullptr);

/// Parses the name of an activation. Throws InvalidArgument with the list of names.
Activation parse_activation(const std::string& text);

}  // namespace tandem::cli
