#pragma once
/// Tuning of whole operators: every configuration is tried as one unit, on all PEs together, and what is quickest is
/// kept in a cache file, from which plans take it (OperatorOptions::use_tuned).
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

/// What a cache entry holds for: a run on other PEs, another machine or another version of the library is another key.
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

  friend bool operator==(const OperatorKey&, const OperatorKey&) = default;
};
/// Returns the key of a problem in this world.
OperatorKey operator_key(const World& world, Operator op, const OperatorOptions& options);

/// An entry of the cache file.
struct TunedOperator {
  OperatorKey key;           ///< the problem
  OperatorOptions options;   ///< key.m, n, k, type and b_layout, and the quickest configuration
  double us = 0;             ///< its time, of the slowest PE
  double sequential_us = 0;  ///< the best time of the sequential form
};

/// Environment variable that names the cache file. Unset: there is none.
inline constexpr const char* kOperatorCacheVariable = "TANDEM_OPERATOR_CACHE";

/// The entry of a cache file. Nothing where the file does not exist or has no such entry, and where it is damaged or
/// cannot be read: then `warning` says so in one line.
std::optional<TunedOperator> find_tuned(const std::string& file, const OperatorKey& key, std::string& warning);
/// Adds an entry to a cache file, or replaces the one with the same key. The file is replaced as a whole, under a lock
/// beside it (FILE.lock), so that processes may write at the same time and readers see the old or the new one. A
/// damaged file is kept as FILE.damaged, and a new one begun. Throws InvalidArgument where the file cannot be written,
/// RuntimeFailure where another process holds the lock for 10 seconds.
void store_tuned(const std::string& file, const TunedOperator& entry);

/// A configuration and what became of it.
struct OperatorTrial {
  OperatorOptions options;  ///< the configuration
  double predicted_us = 0;  ///< by the simulator; 0: not asked
  double us = 0;            ///< slowest PE's, the same number on all PEs; 0: not tried, or failed
  std::string failure;      ///< why it was dropped, on all PEs
};
/// "overlapped ce push, 4 splits, own_first, 128x256, 0 SMs".
std::string describe(Operator op, const OperatorOptions& options);

/// The result of tuning one problem.
struct OperatorTuning {
  OperatorKey key;                    ///< the problem
  std::vector<OperatorTrial> trials;  ///< the quickest first, then those that failed, then those not tried
  double sequential_us = 0;           ///< the quickest of the sequential form

  /// Throws Unsupported where no configuration ran.
  TunedOperator entry() const;
};

/// How tuning runs and times configurations.
struct TuneSetup {
  /// Runs a host program on every PE of a world of its own, and rethrows what went wrong on any of them. A world for
  /// each configuration: buffers live as long as their world, and one that fails takes nothing with it.
  std::function<void(const std::function<void(World&)>&)> in_world;
  /// One call's time on this PE, in us; the default takes the mean of `calls` calls after one to warm up. May differ
  /// between PEs: the slowest counts.
  std::function<double(World&, Stream&, const std::function<void()>& call)> time = {};
  int calls = 3;  ///< timed calls of a configuration
  /// Where set, the simulator predicts all configurations on this machine, and the best `most` of them are tried.
  std::optional<Machine> model = {};
  int most = 24;  ///< configurations to try, if `model` is set
  /// What runs are given besides their matrices: a bias; of fp8 the scales that the problem asks for, or one of each
  /// matrix.
  bool bias = false;
  bool scales = false;  ///< whether fp8 runs get scales
  /// Told after each trial.
  std::function<void(const OperatorTrial&)> watch = {};
};

/// The configurations that tuning tries for a problem, the sequential form among them: with its types, layout and
/// activation.
std::vector<OperatorOptions> operator_candidates(Operator op, const OperatorOptions& problem, bool one_node, int pes);

/// Tries the configurations of a problem (`problem`: what to compute, as operator_candidates). One that throws, on
/// whatever PE, is dropped on all of them. Throws InvalidArgument for a setup without in_world, calls below 1 and a
/// negative `most`.
OperatorTuning tune_operator(Operator op, const OperatorOptions& problem, const TuneSetup& setup);

/// Time of one configuration within a world; collective. All PEs get the same: the slowest one's time, or no time and
/// the reason where any PE could not.
OperatorTrial try_operator(World& world, Operator op, const OperatorOptions& options, const TuneSetup& setup);

}  // namespace tandem
