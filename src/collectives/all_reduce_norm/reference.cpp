#include "collectives/all_reduce_norm/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "collectives/all_reduce_norm/check.h"
#include "collectives/all_reduce_norm/norm_row.h"

namespace tandem::kernels {

namespace {

enum Vector : unsigned { kIn, kResidual, kBias, kNormBias, kWeight, kMean };

/// Returns an integer in [-most, most].
int mixed(unsigned vector, int number, Size row, Size column, int pe, int most) {
  std::uint64_t x = 0x9E3779B97F4A7C15ULL * (vector + 1);
  for (const std::uint64_t part : {static_cast<std::uint64_t>(number), static_cast<std::uint64_t>(row),
                                   static_cast<std::uint64_t>(column), static_cast<std::uint64_t>(pe)})
    x = (x ^ part) * 0xBF58476D1CE4E5B9ULL, x ^= x >> 29;
  return static_cast<int>(x % static_cast<unsigned>(2 * most + 1)) - most;
}

/// Returns the same, with the opposite sign in the other half of a row.
int antisymmetric(unsigned vector, int number, Size row, Size column, Size hidden, int pe, int most) {
  const Size mirrored = hidden - 1 - column;
  if (column == mirrored) return 0;
  const int value = mixed(vector, number, row, std::min(column, mirrored), pe, most);
  return column < mirrored ? value : -value;
}

}  // namespace

NormExample::NormExample(const AllReduceNormOptions& options, int pes, Size rows, int number, bool fractions)
    : options_(options), pes_(pes), rows_(rows), number_(number), fractions_(fractions) {}

float NormExample::rounded(float value) const {
  return dispatch(options_.type, [&]<class T>() { return convert<float>(convert<T>(value)); });
}

float NormExample::element(const std::byte* buffer, Size i) const {
  return dispatch(options_.type, [&]<class T>() {
    T value;
    std::memcpy(&value, buffer + i * Size{sizeof(T)}, sizeof(T));
    return convert<float>(value);
  });
}

float NormExample::input(int pe, Size row, Size column) const {
  const auto value = static_cast<float>(antisymmetric(kIn, number_, row, column, options_.hidden, pe, 3));
  return rounded(fractions_ ? value / 7 : value);
}

float NormExample::residual_at(Size row, Size column) const {
  const auto value = static_cast<float>(antisymmetric(kResidual, number_, row, column, options_.hidden, 0, 4) +
                                        mixed(kMean, number_, row, 0, 0, 5));
  return rounded(fractions_ ? value / 11 : value);
}

template <class F>
std::vector<std::byte> NormExample::bytes(Size rows, const F& value) const {
  return dispatch(options_.type, [&]<class T>() {
    std::vector<std::byte> all(static_cast<std::size_t>(rows * options_.hidden) * sizeof(T));
    for (Size i = 0; i < rows * options_.hidden; ++i) {
      const T element = convert<T>(static_cast<float>(value(i / options_.hidden, i % options_.hidden)));
      std::memcpy(all.data() + i * Size{sizeof(T)}, &element, sizeof(T));
    }
    return all;
  });
}

Range NormExample::held(int pe) const { return options_.sharded_residual ? split(rows_, pes_)[pe] : Range{0, rows_}; }

std::vector<std::byte> NormExample::in(int pe) const {
  return bytes(rows_, [&](Size row, Size column) { return input(pe, row, column); });
}
std::vector<std::byte> NormExample::residual(int pe) const {
  const Range own = held(pe);
  return bytes(own.size(), [&](Size row, Size column) { return residual_at(own.begin + row, column); });
}
// Vectors are the same for all calls, as weights are.
std::vector<std::byte> NormExample::weight() const {
  return bytes(1, [&](Size, Size column) { return std::ldexp(1.0F, mixed(kWeight, 0, 0, column, 0, 1)); });
}
std::vector<std::byte> NormExample::bias() const {
  return bytes(1, [&](Size, Size column) { return antisymmetric(kBias, 0, 0, column, options_.hidden, 0, 2); });
}
std::vector<std::byte> NormExample::norm_bias() const {
  return bytes(1, [&](Size, Size column) { return mixed(kNormBias, 0, 0, column, 0, 3); });
}

Size NormExample::out_bytes() const {
  return rows_ * options_.hidden * (options_.quantisation == Quantisation::kNone ? size_of(options_.type) : 1);
}
Size NormExample::sum_bytes(int pe) const {
  return options_.sum ? held(pe).size() * options_.hidden * size_of(options_.type) : 0;
}
Size NormExample::scales_bytes() const { return rows_ * scales_of_row(options_) * Size{sizeof(float)}; }

NormExample::Row NormExample::row(Size number) const {
  const Size hidden = options_.hidden;
  Row row;
  float total = 0;
  for (Size i = 0; i < hidden; ++i) {
    float sum = input(0, number, i);
    for (int pe = 1; pe < pes_; ++pe) sum += input(pe, number, i);
    if (options_.bias) sum += static_cast<float>(antisymmetric(kBias, 0, 0, i, hidden, 0, 2));
    if (options_.residual) sum += residual_at(number, i);
    row.sum.push_back(rounded(sum));
    total += options_.norm == Norm::kRms ? row.sum.back() * row.sum.back() : row.sum.back();
  }
  const auto count = static_cast<float>(hidden);
  const float mean = options_.norm == Norm::kLayer ? total / count : 0;
  if (options_.norm == Norm::kLayer) {
    total = 0;
    for (const float x : row.sum) total += (x - mean) * (x - mean);
  }
  const float factor = 1.0F / std::sqrt(total / count + static_cast<float>(options_.epsilon));
  for (Size i = 0; i < hidden; ++i) {
    float y = row.sum[static_cast<std::size_t>(i)];
    if (options_.norm != Norm::kNone) y = (y - mean) * factor * std::ldexp(1.0F, mixed(kWeight, 0, 0, i, 0, 1));
    if (options_.norm_bias) y += static_cast<float>(mixed(kNormBias, 0, 0, i, 0, 3));
    row.y.push_back(y);
  }
  const Size group = options_.quantisation == Quantisation::kGroup ? kScaleGroup : hidden;
  for (Size i = 0; i < hidden; ++i) {
    float greatest = 0;
    const Size begin = i / group * group;
    if (i > begin) {
      row.scales.push_back(row.scales.back());
      continue;
    }
    for (Size k = begin; k < std::min(begin + group, hidden); ++k)
      greatest = std::max(greatest, std::abs(row.y[static_cast<std::size_t>(k)]));
    row.scales.push_back(options_.quantisation == Quantisation::kStatic ? static_cast<float>(options_.scale)
                                                                        : scale_for(greatest));
  }
  return row;
}

std::string NormExample::wrong(int pe, const std::byte* out, const std::byte* sum, const std::byte* scales) const {
  const Range own = held(pe);
  const Size of_row = scales_of_row(options_);
  const auto differs = [&](const char* what, Size r, Size i, float got, float want) {
    return fmt::format("{} of row {}, element {}: {} instead of {}", what, r, i, got, want);
  };
  for (Size r = 0; r < rows_; ++r) {
    const Row want = row(r);
    for (Size i = 0; i < options_.hidden; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const Size place = r * options_.hidden + i;
      if (options_.sum && r >= own.begin && r < own.end) {
        const float got = element(sum, (r - own.begin) * options_.hidden + i);
        if (got != want.sum[at]) return differs("sum", r, i, got, want.sum[at]);
      }
      float scale = want.scales[at];
      if (of_row > 0) {
        const Size which = r * of_row + (of_row > 1 ? i / kScaleGroup : 0);
        float got;
        std::memcpy(&got, scales + which * Size{sizeof(float)}, sizeof(float));
        if (fractions_ ? std::abs(got - scale) > 1e-4F * scale : got != scale)
          return differs("scale", r, i, got, scale);
        scale = got;
      }
      if (options_.quantisation == Quantisation::kNone) {
        const float got = element(out, place);
        const float expected = rounded(want.y[at]);
        if (fractions_ ? std::abs(got - expected) > 0.02F * std::abs(expected) + 1e-4F : got != expected)
          return differs("out", r, i, got, expected);
      } else {
        const auto got = convert<float>(fp8_e4m3::from_bits(std::to_integer<std::uint8_t>(out[place])));
        const auto expected = convert<float>(convert<fp8_e4m3>(want.y[at] * (1.0F / scale)));
        if (fractions_ ? std::abs(got - expected) > 0.13F * std::abs(expected) + 0.01F : got != expected)
          return differs("fp8 out", r, i, got, expected);
      }
    }
  }
  return "";
}

}  // namespace tandem::kernels
