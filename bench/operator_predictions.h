#pragma once
/// Simulated times of overlapped operators, with the model of the measured machine, against times of GPUs
/// (bench/results). Both are ratios to the time of the GEMM alone.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tandem/error.h"
#include "tandem/operators.h"
#include "tandem/simulation.h"

namespace tandem::bench {

/// One row of bench/results, as far as a simulation needs it.
struct MeasuredOperator {
  Operator op{};
  std::string layer;
  Size m = 0, n = 0, k = 0;
  int pes = 0;
  double us = 0, gemm_us = 0;  ///< gemm: cuBLASLt's
  double ratio = 0;            ///< median of rounds
};

struct OperatorPrediction {
  MeasuredOperator row;
  double us = 0, gemm_us = 0;

  double ratio() const { return us / gemm_us; }
  double error() const { return us / row.us - 1; }
  double ratio_error() const { return ratio() / row.ratio - 1; }
  /// The error of the null model, in which communication costs nothing and the ratio is 1.
  double null_error() const { return 1 / row.ratio - 1; }
};

/// The rows of what plans take by themselves, beside cuBLASLt.
inline std::vector<MeasuredOperator> read_operators(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream) throw InvalidArgument("cannot read " + file.string());
  std::vector<MeasuredOperator> rows;
  try {
    const nlohmann::json results = nlohmann::json::parse(stream);
    for (const auto& row : results.at("rows")) {
      const std::string op = row.at("op");
      if (!row.value("selected", false) || !row.at("peers").contains("cublas")) continue;
      for (const Operator known : {Operator::kAllGatherGemm, Operator::kGemmReduceScatter, Operator::kGemmAllReduce})
        if (op == name(known))
          rows.push_back({known, row.value("layer", ""), row.at("m"), row.at("n"), row.at("k"), row.at("pes"),
                          row.at("tandem_us"), row.at("peers").at("cublas"), 0});
      if (!rows.empty() && rows.back().ratio == 0)
        rows.back().ratio = row.value("ratio", rows.back().us / rows.back().gemm_us);
    }
  } catch (const nlohmann::json::exception& error) {
    throw InvalidArgument(file.string() + ": " + error.what());
  }
  return rows;
}

/// A call in steady state, as GPUs run it by themselves: behind one that brings the PEs together.
inline double predict_us(const Machine& machine, const MeasuredOperator& row) {
  constexpr int calls = 2;
  SimOptions sim;
  sim.phantom = true;
  sim.graph = true;
  sim.plan_for = DeviceKind::kGpu;
  sim.heap_bytes = Size{64} << 30;
  Simulation simulation(machine, row.pes, sim);
  double us = 0;
  simulation.run([&](World& world) {
    // Whole matrices, more than any PE's shard: nothing is stored.
    const auto buffer = [&](Size rows, Size cols, const char* what) {
      return world.heap().allocate_local<bf16>(rows * cols, what);
    };
    bf16* const a = buffer(row.m, row.k, "a");
    bf16* const b = buffer(row.n, row.k, "b");
    bf16* const c = buffer(row.m, row.n, "c");
    const auto plan = make_operator(world, row.op, {.m = row.m, .n = row.n, .k = row.k, .type = DType::kBF16});
    Stream stream = world.make_stream("main");
    const auto run = [&](int times) {
      for (int i = 0; i < times; ++i) plan->run(stream, a, b, c);
      stream.synchronize();
    };
    run(1);
    world.barrier();
    const double begin = world.time_us();
    run(calls);
    us = std::max(us, (world.time_us() - begin) / calls);
  });
  return us;
}

inline std::vector<OperatorPrediction> predict(const Machine& machine, const std::vector<MeasuredOperator>& rows) {
  std::vector<OperatorPrediction> all;
  for (const MeasuredOperator& row : rows) {
    const bool gather = row.op == Operator::kAllGatherGemm;
    const double gemm_us = gemm_alone_us(machine, row.m, gather ? row.n / row.pes : row.n,
                                         gather ? row.k : row.k / row.pes, size_of(DType::kBF16), machine.gpu.sm_count);
    all.push_back({row, predict_us(machine, row), gemm_us});
  }
  return all;
}

/// Prints the median and the worst of some rows' errors.
template <class Error>
void print_errors(const char* what, const std::vector<OperatorPrediction>& rows, Error error) {
  std::vector<OperatorPrediction> sorted = rows;
  std::sort(sorted.begin(), sorted.end(),
            [&](const auto& a, const auto& b) { return std::abs(error(a)) < std::abs(error(b)); });
  const OperatorPrediction& worst = sorted.back();
  fmt::print("  {:<28} median {:>5.1f} %, worst {:>5.1f} % ({} {}x{}x{})\n", what,
             100 * std::abs(error(sorted[sorted.size() / 2])), 100 * std::abs(error(worst)), name(worst.row.op),
             worst.row.m, worst.row.n, worst.row.k);
}

/// How far the predictions of some operators are off, and a model that knows nothing.
inline void print_summary(const std::vector<OperatorPrediction>& all, const std::vector<Operator>& operators) {
  std::vector<OperatorPrediction> some;
  std::string names;
  for (const Operator op : operators) {
    names += (names.empty() ? "" : " and ") + std::string(name(op));
    std::copy_if(all.begin(), all.end(), std::back_inserter(some), [&](const auto& one) { return one.row.op == op; });
  }
  if (some.empty()) return;
  fmt::print("{}, errors of {} rows:\n", names, some.size());
  print_errors("microseconds", some, [](const auto& one) { return one.error(); });
  print_errors("microseconds of the GEMM", some, [](const auto& one) { return one.gemm_us / one.row.gemm_us - 1; });
  print_errors("ratio to the GEMM alone", some, [](const auto& one) { return one.ratio_error(); });
  print_errors("null model: a ratio of 1", some, [](const auto& one) { return one.null_error(); });
}

inline void print_operator_predictions(const Machine& machine, const std::filesystem::path& results) {
  const std::vector<OperatorPrediction> all = predict(machine, read_operators(results));
  if (all.empty()) return fmt::print("none was measured there\n");
  fmt::print("{:<21}{:<19}{:>10}{:>10}{:>9}{:>11}{:>11}{:>10}{:>8}{:>9}\n", "operator", "MxNxK", "GPU us", "model us",
             "error", "cuBLAS us", "model GEMM", "GPU ratio", "model", "error");
  for (const OperatorPrediction& one : all)
    fmt::print("{:<21}{:<19}{:>10.1f}{:>10.1f}{:>+8.1f}%{:>11.1f}{:>11.1f}{:>10.3f}{:>8.3f}{:>+8.1f}%\n",
               name(one.row.op), fmt::format("{}x{}x{}", one.row.m, one.row.n, one.row.k), one.row.us, one.us,
               100 * one.error(), one.row.gemm_us, one.gemm_us, one.row.ratio, one.ratio(), 100 * one.ratio_error());
  print_summary(all, {Operator::kAllGatherGemm, Operator::kGemmReduceScatter});
  print_summary(all, {Operator::kGemmAllReduce});
  print_summary(all, {Operator::kAllGatherGemm, Operator::kGemmReduceScatter, Operator::kGemmAllReduce});
}

}  // namespace tandem::bench
