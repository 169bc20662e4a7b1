#pragma once
/// Exchange of values between the PEs of a world, which may be threads or processes, between runs.

#include <algorithm>
#include <vector>

#include "tandem/world.h"
#include "tools/tandem/run/measure.h"
#include "tools/tandem/run/result.h"

namespace tandem::cli {

/// All its functions are collective over the world.
class Shared {
 public:
  explicit Shared(World& world) : world_(world), words_(world.heap().allocate<double>(kDoubles, "shared words")) {}

  /// Returns every PE's value, by PE.
  std::vector<double> all(double own) {
    world_.copy_in(words_.local(), &own, sizeof own);
    world_.barrier();
    std::vector<double> values(static_cast<std::size_t>(world_.num_pes()));
    for (int pe = 0; pe < world_.num_pes(); ++pe)
      world_.copy_out(&values[static_cast<std::size_t>(pe)], words_.on(pe), sizeof own);
    world_.barrier();
    return values;
  }
  double largest(double own) {
    const auto values = all(own);
    return *std::max_element(values.begin(), values.end());
  }
  double sum(double own) {
    double total = 0;
    for (const double value : all(own)) total += value;
    return total;
  }

  /// Returns the window that holds those of all PEs.
  CallWindow over_all(const CallWindow& own) { return {-largest(-own.begin_us), largest(own.end_us)}; }
  /// Returns the checks of all PEs as one.
  Check over_all(const Check& own) {
    Check all = own;
    all.checked = static_cast<Size>(sum(static_cast<double>(own.checked)));
    all.wrong = static_cast<Size>(sum(static_cast<double>(own.wrong)));
    constexpr double none = -1;
    const std::vector<double> errors = this->all(own.max_error.value_or(none));
    all.max_error = *std::max_element(errors.begin(), errors.end());
    if (*std::min_element(errors.begin(), errors.end()) < 0) all.max_error.reset();
    return all;
  }

  /// Copies PE 0's `value` to every PE.
  template <class T>
  void from_first(T& value) {
    static_assert(sizeof(T) <= kDoubles * sizeof(double));
    if (world_.pe() == 0) world_.copy_in(words_.local(), &value, sizeof value);
    world_.barrier();
    world_.copy_out(&value, words_.on(0), sizeof value);
    world_.barrier();
  }

 private:
  static constexpr Size kDoubles = 64;

  World& world_;
  Symm<double> words_;
};

}  // namespace tandem::cli
