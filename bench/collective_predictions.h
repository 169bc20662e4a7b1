#pragma once
/// Collectives in the simulator, with the model of the measured machine, against what GPUs took (bench/results).

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/median.h"
#include "tandem/advanced/collective_traits.h"
#include "tandem/error.h"
#include "tandem/simulation.h"
#include "tools/tandem/options/parallel.h"

namespace tandem::bench {

/// One row of bench/results, as far as a simulation needs it.
struct MeasuredCollective {
  Collective collective{};
  Size bytes = 0;
  int pes = 0;
  DType type{};
  std::string algorithm;
  int blocks = 0;
  bool in_place = false;
  double us = 0;
};

struct Prediction {
  MeasuredCollective row;
  double us = 0;

  double error() const { return us / row.us - 1; }
};

/// The rows of what the library selects by itself, captured in graphs; not of plain buffers, which are copied.
inline std::vector<MeasuredCollective> read_selected(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream) throw InvalidArgument("cannot read " + file.string());
  std::vector<MeasuredCollective> rows;
  try {
    const nlohmann::json results = nlohmann::json::parse(stream);
    for (const auto& row : results.at("rows")) {
      if (!row.value("selected", false) || !row.value("graph", false) || !row.contains("bytes")) continue;
      if (row.value("buffers", "heap") == "plain") continue;
      rows.push_back({parse_collective(row.at("op")), row.at("bytes"), row.at("pes"),
                      parse_dtype(row.at("dtype").get<std::string>()), row.at("algorithm"), row.value("blocks", 0),
                      row.at("in_place"), row.at("tandem_us")});
    }
  } catch (const nlohmann::json::exception& error) {
    throw InvalidArgument(file.string() + ": " + error.what());
  }
  return rows;
}

/// A call in steady state, in a graph: calls back to back, after some that bring the PEs together.
inline double predict_us(const Machine& machine, const MeasuredCollective& row) {
  constexpr int first_calls = 2, calls = 10;
  SimOptions sim;
  sim.phantom = true;
  sim.heap_bytes = Size{64} << 30;
  Simulation simulation(machine, row.pes, sim);
  double us = 0;
  simulation.run([&](World& world) {
    CollectiveOptions options;
    options.type = row.type;
    options.algorithm = row.algorithm;
    options.blocks = row.blocks;
    const bool shared = input_elements(row.collective, 1, 2, 0, 0) + output_elements(row.collective, 1, 2, 0, 0) > 2;
    const Size count = row.bytes / size_of(row.type) / (shared ? row.pes : 1);
    options.max_count = count;
    const auto plan = make_collective(world, row.collective, options);
    const auto in = world.heap().allocate<std::byte>(row.bytes, "in");
    const auto out = world.heap().allocate<std::byte>(row.bytes, "out");
    Stream stream = world.make_stream("main");
    const auto run = [&](int times) {
      for (int i = 0; i < times; ++i) plan->run(stream, in, out, count);
      stream.synchronize();
    };
    run(first_calls);
    world.barrier();
    const double begin = world.time_us();
    run(calls);
    us = std::max(us, (world.time_us() - begin) / calls);
  });
  return us;
}

inline std::vector<Prediction> predict(const Machine& machine, const std::vector<MeasuredCollective>& rows) {
  std::vector<Prediction> all(rows.size());
  cli::for_chunks(static_cast<Size>(rows.size()), 1, [&](Range piece) {
    const auto i = static_cast<std::size_t>(piece.begin);
    all[i] = {rows[i], predict_us(machine, rows[i])};
  });
  return all;
}

/// Returns the median absolute error of a model that knows two calls of each collective on as many PEs. It takes the
/// fastest call's time, and beyond it the rate of the largest call. It is exact for these two calls.
inline double null_error(const std::vector<Prediction>& all) {
  std::vector<double> errors;
  for (const Prediction& one : all) {
    const MeasuredCollective* quickest = &one.row;
    const MeasuredCollective* largest = &one.row;
    for (const Prediction& other : all) {
      if (other.row.collective != one.row.collective || other.row.pes != one.row.pes) continue;
      if (other.row.us < quickest->us) quickest = &other.row;
      if (other.row.bytes > largest->bytes) largest = &other.row;
    }
    const double us = quickest->us + static_cast<double>(one.row.bytes) * (largest->us - quickest->us) /
                                         static_cast<double>(largest->bytes);
    errors.push_back(std::abs(us / one.row.us - 1));
  }
  return median(std::move(errors));
}

/// Errors of the absolute times.
inline double median_error(const std::vector<Prediction>& all) {
  std::vector<double> errors;
  for (const Prediction& one : all) errors.push_back(std::abs(one.error()));
  return median(std::move(errors));
}

/// Returns the probable reason of a row's deviation.
inline const char* likely_reason(const MeasuredCollective& row) {
  if (traits(row.collective).has_root())
    return "a root does not wait, so calls overlap; the costs were fitted to PEs that meet";
  if (row.algorithm.find("ll") != std::string::npos && row.algorithm != "pull")
    return "packets: the model knows one latency, GPUs read a line again until it has come";
  if (reduces(row.collective)) return "one rate of a block stands for all sums";
  return "near the link's rate: what fills it differs between kernels";
}

/// The table of one machine: a line a size, then what the errors are.
inline void print_predictions(const std::vector<Prediction>& all) {
  constexpr std::size_t worst_shown = 10;
  fmt::print("{:<16}{:>12} {:>4}  {:<24}{:>10}{:>10}{:>9}\n", "collective", "bytes", "PEs", "algorithm/blocks",
             "GPU us", "model us", "error");
  for (const Prediction& one : all)
    fmt::print("{:<16}{:>12} {:>4}  {:<24}{:>10.2f}{:>10.2f}{:>+8.1f}%\n",
               fmt::format("{}{}", name(one.row.collective), one.row.in_place ? " *" : ""), one.row.bytes, one.row.pes,
               fmt::format("{}/{}", one.row.algorithm, one.row.blocks), one.row.us, one.us, 100 * one.error());
  if (all.empty()) return;
  std::vector<Prediction> worst = all;
  std::sort(worst.begin(), worst.end(),
            [](const auto& a, const auto& b) { return std::abs(a.error()) > std::abs(b.error()); });
  worst.resize(std::min(worst.size(), worst_shown));
  fmt::print("median error {:.1f} % of {} rows (* in place); null model (least time, largest rate) {:.1f} %; worst:\n",
             100 * median_error(all), all.size(), 100 * null_error(all));
  for (const Prediction& one : worst)
    fmt::print("  {:+.1f} % {} of {} bytes on {} PEs, {}; likely: {}\n", 100 * one.error(), name(one.row.collective),
               one.row.bytes, one.row.pes, one.row.algorithm, likely_reason(one.row));
}

inline void print_predictions(const Machine& machine, const std::filesystem::path& results) {
  print_predictions(predict(machine, read_selected(results)));
}

}  // namespace tandem::bench
