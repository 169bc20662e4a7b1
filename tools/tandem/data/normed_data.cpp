#include "tools/tandem/data/normed_data.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tools/tandem/data/data.h"
#include "tools/tandem/data/operator_extras.h"
#include "tools/tandem/options/parallel.h"

namespace tandem::cli {
namespace {

constexpr std::uint64_t kStreamOfResidual = 5, kStreamOfNormWeight = 6;
constexpr double kMostOfE4m3 = 448;
constexpr Size kGroup = 128;  // elements with a scale

std::vector<float> normal_values(const OperatorRun& run, std::uint64_t seed, std::uint64_t stream, Size first) {
  std::vector<float> values(static_cast<std::size_t>(columns_of_norm(run)));
  dispatch(run.options.result_type(), [&]<class T>() {
    if constexpr (is_float<T>) {
      const NormalData<T> data(seed);
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = convert<float>(data(stream, first + static_cast<Size>(i)));
    }
  });
  return values;
}

/// One row of the reference.
class Row {
 public:
  Row(const OperatorRun& run, std::vector<double> sums) : norm_(run.options.norm), y_(std::move(sums)) {}

  /// Norms the sums; `typical` becomes the typical size of the results.
  void normalise(const std::vector<float>& weight, double& typical) {
    if (norm_.norm == Norm::kNone) return;
    const auto count = static_cast<double>(y_.size());
    double mean = 0, squares = 0;
    for (const double x : y_) mean += x / count;
    if (norm_.norm == Norm::kRms) mean = 0;
    for (const double x : y_) squares += (x - mean) * (x - mean) / count;
    const double factor = 1 / std::sqrt(squares + norm_.epsilon);
    for (std::size_t i = 0; i < y_.size(); ++i) y_[i] = (y_[i] - mean) * factor * static_cast<double>(weight[i]);
    typical *= factor;
  }

  /// Divides by the scales of a quantised C.
  void quantise(double& typical) {
    const auto n = static_cast<Size>(y_.size());
    if (norm_.quantisation == Quantisation::kNone) return;
    double least = norm_.scale;
    for (const Range part : Tiles({0, n}, norm_.quantisation == Quantisation::kGroup ? kGroup : n)) {
      double greatest = 0;
      for (Size i = part.begin; i < part.end; ++i)
        greatest = std::max(greatest, std::fabs(y_[static_cast<std::size_t>(i)]));
      const double scale = norm_.quantisation == Quantisation::kStatic ? norm_.scale : greatest / kMostOfE4m3;
      if (norm_.quantisation != Quantisation::kStatic) least = part.begin == 0 ? scale : std::min(least, scale);
      for (Size i = part.begin; i < part.end; ++i)
        y_[static_cast<std::size_t>(i)] =
            std::clamp(y_[static_cast<std::size_t>(i)] / scale, -kMostOfE4m3, kMostOfE4m3);
    }
    typical /= least;
  }

  const std::vector<double>& values() const { return y_; }

 private:
  const OperatorNorm& norm_;
  std::vector<double> y_;
};

/// Returns a row's sums over all PEs with the residual, and adds the typical size of a sum to `typical`.
std::vector<double> sums_of(const OperatorRun& run, std::uint64_t seed, Size row, std::vector<double> product,
                            const EpilogueValues& epilogue, std::size_t index, double& typical) {
  const auto or_one = [](const std::vector<float>& scales, std::size_t i) {
    return scales.empty() ? 1.0 : static_cast<double>(scales[i]);
  };
  const std::vector<float> residual = run.options.norm.residual ? residual_row(run, seed, row) : std::vector<float>();
  double greatest = 0;
  for (std::size_t i = 0; i < product.size(); ++i) {
    const double scale = or_one(epilogue.row_scales, index) * or_one(epilogue.column_scales, i);
    greatest = std::max(greatest, scale);
    product[i] *= scale;
    if (!epilogue.bias.empty()) product[i] += static_cast<double>(epilogue.bias[i]);
    if (!residual.empty()) product[i] += static_cast<double>(residual[i]);
  }
  // Elements of all inputs have the standard deviation 1.
  typical = 2 + greatest * std::sqrt(static_cast<double>(run.options.k));
  return product;
}

}  // namespace

std::vector<float> residual_row(const OperatorRun& run, std::uint64_t seed, Size row) {
  return normal_values(run, seed, kStreamOfResidual, row * columns_of_norm(run));
}
std::vector<float> norm_weight(const OperatorRun& run, std::uint64_t seed) {
  return normal_values(run, seed, kStreamOfNormWeight, 0);
}

std::vector<float> normed_rows(const OperatorRun& run, std::uint64_t seed, const std::vector<Size>& rows,
                               const std::byte* a) {
  const auto k = static_cast<std::size_t>(run.options.k);
  const std::vector<float> weight = norm_weight(run, seed);
  std::vector<float> all;
  all.reserve(rows.size() * k);
  dispatch(run.a_type(), [&]<class T>() {
    if constexpr (is_float<T>) {
      for (std::size_t r = 0; r < rows.size(); ++r) {
        const T* const from = reinterpret_cast<const T*>(a) + r * k;
        const std::vector<float> residual =
            run.options.norm.residual ? residual_row(run, seed, rows[r]) : std::vector<float>(k);
        std::vector<double> sums(k);
        for (std::size_t i = 0; i < k; ++i)
          sums[i] = convert<double>(convert<T>(convert<float>(from[i]) + residual[i]));  // rounded once
        Row row(run, std::move(sums));
        double typical = 1;
        row.normalise(weight, typical);
        for (const double y : row.values()) all.push_back(static_cast<float>(y));
      }
    }
  });
  return all;
}

std::vector<std::byte> rounded(DType type, const std::vector<float>& values) {
  std::vector<std::byte> all(values.size() * static_cast<std::size_t>(size_of(type)));
  dispatch(type, [&]<class T>() {
    if constexpr (is_float<T>)
      for (std::size_t i = 0; i < values.size(); ++i) reinterpret_cast<T*>(all.data())[i] = convert<T>(values[i]);
  });
  return all;
}

std::vector<float> widened(DType type, const std::byte* values, Size count) {
  std::vector<float> all(static_cast<std::size_t>(count));
  dispatch(type, [&]<class T>() {
    if constexpr (is_float<T>)
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = convert<float>(reinterpret_cast<const T*>(values)[i]);
  });
  return all;
}

double normed_tolerance(const OperatorRun& run, double tolerance) {
  // Errors of k quantised elements add up as squares: their deviation is 0.4 of the unit, times a typical sum.
  constexpr double kUnits = 3;
  const double of_a = run.quantises_a() ? kUnits * rounding_unit(DType::kE4M3) : 0;
  return tolerance + 2 * rounding_unit(run.options.result_type()) + rounding_unit(run.options.c_type()) + of_a;
}

Mismatch check_normed(const OperatorRun& run, std::uint64_t seed, const NormedRows& given, double tolerance) {
  constexpr Size kColumns = 256;
  const OperatorOptions& o = run.options;
  const bool rows_of_b = given.b_layout == BLayout::kNxK;
  const auto count = static_cast<Size>(given.rows.size());
  std::vector<double> products(static_cast<std::size_t>(count * o.n));
  for_chunks(o.n, kColumns, [&](Range part) {
    const std::byte* const b = given.b + part.begin * (rows_of_b ? o.k : 1) * size_of(given.type);
    host_gemm_tile_f64(given.a, o.k, b, rows_of_b ? o.k : o.n, products.data() + part.begin, o.n, count, part.size(),
                       o.k, given.type, given.b_layout);
  });
  const EpilogueValues epilogue = epilogue_of(run, seed, given.rows, all_of({0, o.n}));
  const std::vector<float> weight = norm_weight(run, seed);
  Mismatch all;
  for (std::size_t r = 0; r < given.rows.size(); ++r) {
    double typical = 0;
    const auto begin = products.begin() + static_cast<std::ptrdiff_t>(r) * o.n;
    Row row(run, sums_of(run, seed, given.rows[r], {begin, begin + o.n}, epilogue, r, typical));
    row.normalise(weight, typical);
    row.quantise(typical);
    for (Size i = 0; i < o.n; ++i) {
      const double expected = row.values()[static_cast<std::size_t>(i)];
      const double found = dispatch(o.c_type(), [&]<class T>() {
        return convert<double>(reinterpret_cast<const T*>(given.c)[static_cast<Size>(r) * o.n + i]);
      });
      const double of_weight =
          o.norm.norm == Norm::kNone ? 1 : std::max(1.0F, std::fabs(weight[static_cast<std::size_t>(i)]));
      const double error = std::fabs(found - expected) / std::max(std::fabs(expected), typical * of_weight);
      ++all.checked;
      all.max_rel_error = std::isfinite(error) ? std::max(all.max_rel_error, error) : INFINITY;
      if (error <= tolerance) continue;
      if (all.wrong++ > 0) continue;
      all.row = given.rows[r];
      all.column = i;
      all.found = found;
      all.expected = expected;
    }
  }
  return all;
}

}  // namespace tandem::cli
