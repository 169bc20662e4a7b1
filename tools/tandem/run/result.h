#pragma once
/// What a run found out, as a table and as JSON.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "tandem/range.h"

namespace tandem::cli {

/// How a result compares with what was expected.
struct Check {
  Size checked = 0;  ///< elements, over all PEs
  Size wrong = 0;
  /// Largest error over all elements, relative to what docs/reference/cli.md says; nothing where the elements are no
  /// numbers and some are wrong.
  std::optional<double> max_error = 0;
  std::string expectation;  ///< "bit for bit", "within 0.002"

  bool correct() const { return wrong == 0; }
};

/// What docs/reference/cli.md describes key by key; nothing where something does not apply.
struct Result {
  std::string op;
  std::string backend = "sim";
  std::string machine;
  std::string assumption;  ///< made by the prediction beyond the machine model; empty: none
  int pes = 0;
  std::optional<std::string> shape;
  std::optional<Size> bytes;
  std::string dtype;
  std::string algorithm;
  std::string extras;  ///< of operators: what is computed beside the plain product
  std::uint64_t seed = 0;
  bool phantom = false;
  std::optional<Check> check;
  double time_us = 0;
  std::string beyond_fit;  ///< why a prediction was not compared with measurements of its kind; empty where it was
  std::optional<double> sequential_us, ideal_us;
  std::optional<std::uint64_t> trace_hash;

  // For the tables of people alone.
  std::optional<Size> count;
  std::optional<double> bus_factor;  ///< bus bandwidth = this * bytes / time

  /// The times are those of a simulation.
  bool predicted() const { return backend == "sim"; }
  std::optional<double> overlap_percent() const;
  /// GB/s; nothing without bytes or time.
  std::optional<double> algorithm_bandwidth() const;
  std::optional<double> bus_bandwidth() const;
};

nlohmann::ordered_json to_json(const Result& result);
/// A few lines for people.
std::string to_table(const Result& result);

}  // namespace tandem::cli
