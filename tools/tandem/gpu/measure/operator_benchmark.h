#pragma once
/// Measures an operator on GPUs, one PE's part. Four programs alternate, and results are checked in samples: Tandem's
/// plan, its sequential form, cuBLASLt alone on the gathered problem, and NCCL followed by cuBLASLt.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gemm/hopper/host/cublas_lt.h"
#include "tools/tandem/data/data.h"
#include "tools/tandem/data/operator_data.h"
#include "tools/tandem/data/operator_extras.h"
#include "tools/tandem/gpu/measure/collective_benchmark.h"
#include "tools/tandem/run/run_operator.h"

namespace tandem::cli {

/// The measurements for one number of rows.
struct GpuOperator {
  Size m = 0;
  std::string strategy;      ///< the strategy (OperatorPlan::strategy)
  double us = 0;             ///< median over the rounds, of the slowest PE
  double spread = 0;         ///< (most - least) / median over the rounds
  double sequential_us = 0;  ///< 0: not measured
  std::map<std::string, double> peers;
  Check check;  ///< over all PEs
  std::vector<OptionChoice> choices;
};

/// Bytes of heap that a PE needs for a run.
Size operator_heap(const OperatorRun& run, int pes);

/// Returns the number of calls that take about 60 ms.
int calls_of(const OperatorRun& run, int pes);

/// Measures operators. All its functions are collective over the world, and all PEs get the same results.
class OperatorBenchmark {
 public:
  /// Makes a plan for the run's rows. Without `nccl` (null) there are no baselines of other libraries.
  OperatorBenchmark(World& world, Shared& shared, NcclPeer* nccl, const GpuMethod& method, const OperatorRun& run);
  ~OperatorBenchmark();

  /// Measures runs of `m` rows, at least 1 and at most the plan's.
  GpuOperator measure(Size m);
  /// Returns the plan's options, with every choice made.
  const OperatorOptions& options() const { return plan_->options(); }

 private:
  struct Program;
  /// The GEMM of this PE.
  struct Local {
    OperatorShard shard;
    cuda::PlainGemm gemm;
  };

  void add_peers(std::vector<Program>& programs, const Local& local);
  /// Fills both matrices of a PE, or the whole of A. `width` is the row length of the whole matrix.
  void fill(DType type, std::byte* to, std::uint64_t stream, Size width, Range rows, Range columns) const;
  Check check(Program& program, const Local& local);
  void check_samples(const std::byte* c, const Local& local, Check& check) const;
  Size c_bytes(const OperatorShard& shard) const;
  std::vector<std::byte> given_a(const std::vector<Size>& rows) const;
  std::vector<std::byte> copied(const std::byte* c, const Local& local, const std::vector<Size>& rows,
                                const std::vector<Size>& columns) const;
  template <class T>
  void check_typed(const std::byte* c, const Local& local, Check& check) const;

  World& world_;
  Shared& shared_;
  NcclPeer* nccl_;
  GpuMethod method_;
  OperatorRun run_;
  Stream stream_;
  cudaStream_t cuda_stream_;
  std::byte *a_, *b_, *c_;
  OperatorExtras extras_;
  std::unique_ptr<OperatorPlan> plan_, sequential_;
  std::unique_ptr<cuda::CublasLt> cublas_;
  void *whole_ = nullptr, *product_ = nullptr;  // for other libraries: the gathered A, a GEMM's result
};

}  // namespace tandem::cli
