#pragma once
/// Measures overlapped operators on all GPUs of a world. Candidates, cuBLASLt alone on the gathered problem, and NCCL
/// followed by cuBLASLt alternate, replay by replay of their graphs. PyTorch takes part, too.

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "gemm/hopper/host/cublas_lt.h"
#include "gpu/gemm_shapes.h"
#include "gpu/normal_data.h"
#include "gpu/operators_bench_torch.h"
#include "gpu/timed_graph.h"
#include "tandem/operators.h"
#include "tools/tandem/gpu/measure/nccl.h"

namespace tandem::bench {

struct Settings {
  std::string out, nccl = "libnccl.so.2", cublaslt, torch, op, only, command = "operators_bench";
  int rounds = 9;
  int calls = 20;
  bool all = false;
  std::vector<Layer> shapes{};       ///< in place of the layers
  std::vector<std::string> tries{};  ///< further candidates, see operators_bench.cpp
};

/// A layer's global problem, for one operator.
struct Problem {
  Operator op{};
  Layer layer{};
};

/// Returns the problems that the settings select. A model's layer is left out unless its parts have rows of 16 bytes on
/// each of `pes` PEs.
std::vector<Problem> problems(const Settings& settings, int pes);

/// A program that takes turns, as all PEs see it.
struct Result {
  std::string name;
  std::string form;        ///< of Tandem's; empty: a peer
  bool selected = false;   ///< what a plan takes by itself
  std::vector<double> us;  ///< of a call of the slowest PE, round by round
  Size wrong = 0;
};

struct Row {
  Problem problem;
  std::vector<Result> results;  ///< peers first
};

/// Its time over that of cuBLASLt alone, round by round.
std::vector<double> ratios_of(const Row& row, const Result& result);

/// The baselines beside Tandem; null: not available.
struct Peers {
  const cli::NcclLibrary* nccl = nullptr;
  TorchPeer* torch = nullptr;
};

/// One PE's part of all problems; collective. Rows are added by all PEs together, each handed to `done` by one PE.
void measure(World& world, const Settings& settings, const Peers& peers, std::vector<Row>& rows, std::mutex& mutex,
             const std::function<void()>& done);

}  // namespace tandem::bench
