#pragma once
/// `tandem run` of an operator.

#include "tandem/operators.h"
#include "tools/tandem/host/host_job.h"
#include "tools/tandem/main/setup.h"
#include "tools/tandem/options/arguments.h"
#include "tools/tandem/options/options.h"
#include "tools/tandem/options/progress.h"
#include "tools/tandem/run/pictures.h"
#include "tools/tandem/run/result.h"

namespace tandem::cli {

struct OperatorRun {
  Operator op = Operator::kAllGatherGemm;
  OperatorOptions options;
  int warmups = 1;
  int iterations = 1;
  bool bias = false;
  bool scales = false;  ///< of fp8: of A and B, by row and by column as the options say

  Shape shape() const { return {options.m, options.n, options.k}; }
};

/// What people read about an operator and about a form.
const char* summary(Operator op);
const char* summary(Form form);
inline constexpr Operator kOperators[] = {Operator::kAllGatherGemm, Operator::kGemmReduceScatter,
                                          Operator::kGemmAllReduce};
inline constexpr Form kForms[] = {Form::kSuitable,   Form::kOverlapped,  Form::kSequential,
                                  Form::kDecomposed, Form::kComputeOnly, Form::kCommunicationOnly};

/// "KxN, bias, gelu": what is computed beside the plain product; empty: nothing.
std::string extras_text(const OperatorRun& run);

/// Throws InvalidArgument for options that are none or do not fit together.
OperatorRun make_operator_run(Operator op, const Arguments& arguments);
/// The parts of a Progress that `run_operator` does: the calls of the run and of its baselines.
int parts_of(const OperatorRun& run);
/// Runs it on CPUs and checks every element of every PE's result; the time is the slowest PE's.
Result run_operator_on_host(const OperatorRun& run, const HostJob& job);
/// The bytes of memory for a run's data that a PE needs at least.
double bytes_per_pe(const OperatorRun& run, int pes);
/// Runs it, checks every element of every PE's result, and times the baselines in phantom mode.
Result run_operator(const OperatorRun& run, Setup setup, Pictures& pictures, Progress& progress);

}  // namespace tandem::cli
