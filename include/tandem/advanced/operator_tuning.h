#pragma once
/// Tuning of whole operators. Every configuration is tried as one unit on all PEs together. The fastest is stored in a
/// cache file, where plans find it (OperatorOptions::use_tuned).
///
///   TuneSetup setup;
///   setup.in_world = [&](const auto& program) { Simulation(machine, pes, options).run(program); };
///   const OperatorTuning tuning = tune_operator(op, {.m = 8192, .n = 28672, .k = 4096}, setup);
///   store_tuned(file, tuning.entry());

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tandem/operators.h"

namespace tandem {

/// The key of a cache entry. Other PEs, another machine or another version of the library have another key.
struct OperatorKey {
  Operator op = Operator::kAllGatherGemm;  ///< the operator
  Size m = 0;                              ///< rows of the global problem
  Size n = 0;                              ///< columns of the global problem
  Size k = 0;                              ///< depth of the global problem
  DType type = DType::kBF16;               ///< type of A and B
  BLayout b_layout = BLayout::kNxK;        ///< layout of B
  int pes = 1;                             ///< PEs of the world
  int pes_per_node = 1;                    ///< PEs of a node
  std::string machine;                     ///< World::machine().name
  std::string version;                     ///< of the library
  bool fast_accumulation = false;          ///< whether fp8 products may have less precise sums
  std::string norm = {};                   ///< the steps of OperatorOptions::norm; none: empty

  friend bool operator==(const OperatorKey&, const OperatorKey&) = default;
};
/// Returns the key of a problem in this world.
OperatorKey operator_key(const World& world, Operator op, const OperatorOptions& options);

/// An entry of the cache file.
struct TunedOperator {
  OperatorKey key;           ///< the problem
  OperatorOptions options;   ///< the key's problem without its norm, and the fastest configuration
  double us = 0;             ///< its time, of the slowest PE
  double sequential_us = 0;  ///< the best time of the sequential form
};

/// Environment variable with the name of the cache file. If it is unset, there is no cache.
inline constexpr const char* kOperatorCacheVariable = "TANDEM_OPERATOR_CACHE";

/// Returns the entry of a cache file, or nothing if the file or the entry does not exist. If the file is damaged or
/// cannot be read, it returns nothing and sets `warning` to one line.
std::optional<TunedOperator> find_tuned(const std::string& file, const OperatorKey& key, std::string& warning);
/// Adds an entry to a cache file, or replaces the one with the same key. The file is replaced as a whole, under a lock
/// beside it (FILE.lock). Processes may therefore write at the same time, and readers see the old or the new file. A
/// damaged file is kept as FILE.damaged, and a new one is started. Throws InvalidArgument if the file cannot be
/// written, RuntimeFailure if another process holds the lock for 10 seconds.
void store_tuned(const std::string& file, const TunedOperator& entry);

/// A configuration and its result.
struct OperatorTrial {
  OperatorOptions options;  ///< the configuration
  double predicted_us = 0;  ///< simulated; 0: no prediction
  double us = 0;            ///< of the slowest PE, the same on all PEs; 0: not tried, or failed
  std::string failure;      ///< why it was dropped, the same on all PEs
};
/// Returns "overlapped ce push, 4 splits, own_first, 128x256, 0 SMs".
std::string describe(Operator op, const OperatorOptions& options);

/// The result of tuning one problem.
struct OperatorTuning {
  OperatorKey key;                    ///< the problem
  std::vector<OperatorTrial> trials;  ///< fastest first, then those that failed, then those not tried
  double sequential_us = 0;           ///< the fastest sequential configuration

  /// Throws Unsupported if no configuration ran.
  TunedOperator entry() const;
};

/// How tuning runs and times configurations.
struct TuneSetup {
  /// Runs a host program on every PE of a new world, and rethrows the error of any PE. Each configuration gets its own
  /// world, because buffers live as long as their world and a failed world cannot be used further.
  std::function<void(const std::function<void(World&)>&)> in_world;
  /// Returns the time of one call on this PE in us. The default takes the mean of `calls` calls after one warm-up call.
  /// PEs may return different times; the slowest counts.
  std::function<double(World&, Stream&, const std::function<void()>& call)> time = {};
  int calls = 3;  ///< timed calls of a configuration
  /// If set, the simulator predicts all configurations on this machine, and only the best `most` are tried.
  std::optional<Machine> model = {};
  int most = 24;  ///< configurations to try, if `model` is set
  /// Inputs of the runs besides the matrices: a bias, and for fp8 the scales that the problem has, or one for each
  /// matrix.
  bool bias = false;
  bool scales = false;  ///< whether fp8 runs get scales
  /// Called after each trial.
  std::function<void(const OperatorTrial&)> watch = {};
};

/// Returns the configurations that tuning tries for a problem, with its types, layout and activation. The sequential
/// form is one of them.
std::vector<OperatorOptions> operator_candidates(Operator op, const OperatorOptions& problem, bool one_node, int pes);

/// Tries the configurations of a problem (`problem` as for operator_candidates). A configuration that throws on any PE
/// is dropped on all. Throws InvalidArgument for a setup without in_world, for `calls` below 1 and for a negative
/// `most`.
OperatorTuning tune_operator(Operator op, const OperatorOptions& problem, const TuneSetup& setup);

/// Returns the time of one configuration within a world; collective. All PEs get the same result: the slowest PE's
/// time, or the reason why any PE failed.
OperatorTrial try_operator(World& world, Operator op, const OperatorOptions& options, const TuneSetup& setup);

}  // namespace tandem
