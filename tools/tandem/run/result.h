#pragma once
/// The result of a run, as a table and as JSON.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tandem/advanced/option_choice.h"
#include "tandem/machine.h"
#include "tandem/range.h"

namespace tandem::cli {

/// The comparison of a result with its expectation.
struct Check {
  Size checked = 0;  ///< elements, over all PEs
  Size wrong = 0;
  /// The largest relative error over all elements (docs/reference/cli.md). It is empty if elements are not numbers and
  /// some are wrong.
  std::optional<double> max_error = 0;
  std::string expectation;  ///< "bit for bit", "within 0.002"

  bool correct() const { return wrong == 0; }
};

/// The values that docs/reference/cli.md describes key by key; empty values do not apply.
struct Result {
  std::string op;
  std::string backend = "sim";
  std::string machine;
  std::string assumption;  ///< assumption of the prediction beyond the machine model; empty: none
  int pes = 0;
  std::optional<std::string> shape;
  std::optional<Size> bytes;
  std::string dtype;
  std::string algorithm;
  std::string extras;  ///< operators: computations besides the plain product
  std::uint64_t seed = 0;
  bool phantom = false;
  std::optional<Check> check;
  double time_us = 0;
  std::string beyond_fit;  ///< why a prediction lies outside the measured range; empty if it does not
  std::optional<double> sequential_us, ideal_us;
  std::optional<std::uint64_t> trace_hash;
  std::vector<OptionChoice> options;  ///< of --explain

  // For printed tables and pictures only.
  std::optional<Size> count;
  std::optional<double> bus_factor;  ///< bus bandwidth = this * bytes / time
  std::optional<GemmShape> gemm;     ///< the global product of an overlapped operator

  /// Whether the times are simulated.
  bool predicted() const { return backend == "sim"; }
  std::optional<double> overlap_percent() const;
  /// Returns GB/s, or nothing without bytes or time.
  std::optional<double> algorithm_bandwidth() const;
  std::optional<double> bus_bandwidth() const;
};

nlohmann::ordered_json to_json(const Result& result);
/// Returns a few lines for people.
std::string to_table(const Result& result);

}  // namespace tandem::cli
