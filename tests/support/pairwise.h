#pragma once
/// Pairwise covering arrays: few rows in which every allowed pair of values of two factors occurs.

#include <cstddef>
#include <functional>
#include <vector>

namespace tandem::test {

/// Whether value `a` of factor `i` and value `b` of factor `j` may meet in a row (i < j).
using AllowedPair = std::function<bool(std::size_t i, int a, std::size_t j, int b)>;

/// Rows of one value for each factor (0 to levels[f] - 1). Deterministic; greedy: a row begins with the first pair that
/// is not covered yet, and every other factor takes the value that covers most. A pair that no row can hold is left
/// out.
class Pairwise {
 public:
  Pairwise(std::vector<int> levels, AllowedPair allowed) : levels_(std::move(levels)), allowed_(std::move(allowed)) {
    const std::size_t n = levels_.size();
    covered_.resize(n * n);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = i + 1; j < n; ++j)
        covered_[i * n + j].assign(static_cast<std::size_t>(levels_[i] * levels_[j]), false);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = i + 1; j < n; ++j)
        for (int a = 0; a < levels_[i]; ++a)
          for (int b = 0; b < levels_[j]; ++b)
            if (!pair(i, a, j, b) && allowed_(i, a, j, b)) add_row(i, a, j, b);
  }

  const std::vector<std::vector<int>>& rows() const { return rows_; }

 private:
  std::vector<bool>::reference pair(std::size_t i, int a, std::size_t j, int b) {
    return covered_[i * levels_.size() + j][static_cast<std::size_t>(a * levels_[j] + b)];
  }
  bool allowed(std::size_t i, int a, std::size_t j, int b) const {
    return i < j ? allowed_(i, a, j, b) : allowed_(j, b, i, a);
  }

  void add_row(std::size_t i, int a, std::size_t j, int b) {
    std::vector<int> row(levels_.size(), -1);
    row[i] = a;
    row[j] = b;
    for (std::size_t f = 0; f < row.size(); ++f)
      if (row[f] < 0 && (row[f] = best(row, f)) < 0) return;
    for (std::size_t k = 0; k < row.size(); ++k)
      for (std::size_t l = k + 1; l < row.size(); ++l) pair(k, row[k], l, row[l]) = true;
    rows_.push_back(std::move(row));
  }

  int best(const std::vector<int>& row, std::size_t f) {
    int best = -1;
    int most = -1;
    for (int step = 0; step < levels_[f]; ++step) {
      const int value = (step + static_cast<int>(rows_.size())) % levels_[f];  // another first choice in every row
      int gain = 0;
      for (std::size_t k = 0; k < row.size() && gain >= 0; ++k) {
        if (k == f || row[k] < 0) continue;
        if (!allowed(f, value, k, row[k]))
          gain = -1;
        else
          gain += f < k ? !pair(f, value, k, row[k]) : !pair(k, row[k], f, value);
      }
      if (gain > most) {
        most = gain;
        best = value;
      }
    }
    return best;
  }

  std::vector<int> levels_;
  AllowedPair allowed_;
  std::vector<std::vector<bool>> covered_;  // [i * factors + j], for i < j: [a * levels of j + b]
  std::vector<std::vector<int>> rows_;
};

}  // namespace tandem::test
