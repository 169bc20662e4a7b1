#include "collectives/reference/norm_example.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "collectives/all_reduce_norm/check.h"
#include "collectives/all_reduce_norm/norm_args.h"

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

float weight_at(Size column) { return std::ldexp(1.0F, mixed(kWeight, 0, 0, column, 0, 1)); }

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
  return bytes(1, [&](Size, Size column) { return weight_at(column); });
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

void NormExample::add_sums(Row& row, Size number) const {
  for (Size i = 0; i < options_.hidden; ++i) {
    float sum = input(0, number, i);
    for (int pe = 1; pe < pes_; ++pe) sum += input(pe, number, i);
    if (options_.bias) sum += static_cast<float>(antisymmetric(kBias, 0, 0, i, options_.hidden, 0, 2));
    if (options_.residual) sum += residual_at(number, i);
    row.sum.push_back(rounded(sum));
  }
}

void NormExample::add_norm(Row& row) const {
  const auto count = static_cast<float>(options_.hidden);
  float mean = 0;
  float squares = 0;
  if (options_.norm == Norm::kLayer) {
    for (const float x : row.sum) mean += x;
    mean /= count;
  }
  for (const float x : row.sum) squares += (x - mean) * (x - mean);
  const float factor = 1.0F / std::sqrt(squares / count + static_cast<float>(options_.epsilon));
  for (Size i = 0; i < options_.hidden; ++i) {
    float y = row.sum[static_cast<std::size_t>(i)];
    if (options_.norm != Norm::kNone) y = (y - mean) * factor * weight_at(i);
    if (options_.norm_bias) y += static_cast<float>(mixed(kNormBias, 0, 0, i, 0, 3));
    row.y.push_back(y);
  }
}

void NormExample::add_scales(Row& row) const {
  const Size group = options_.quantisation == Quantisation::kGroup ? kScaleGroup : options_.hidden;
  for (const Range part : Tiles({0, options_.hidden}, group)) {
    float greatest = 0;
    for (Size i = part.begin; i < part.end; ++i)
      greatest = std::max(greatest, std::abs(row.y[static_cast<std::size_t>(i)]));
    const bool is_static = options_.quantisation == Quantisation::kStatic;
    row.scales.insert(row.scales.end(), static_cast<std::size_t>(part.size()),
                      is_static ? static_cast<float>(options_.scale) : scale_for(greatest));
  }
}

NormExample::Row NormExample::row(Size number) const {
  Row row;
  add_sums(row, number);
  add_norm(row);
  add_scales(row);
  return row;
}

bool NormExample::is(float got, float expected, float relative, float absolute) const {
  return fractions_ ? std::abs(got - expected) <= relative * std::abs(expected) + absolute : got == expected;
}

float NormExample::scale_of(const std::byte* scales, Size row, Size column, float expected) const {
  const Size of_row = scales_of_row(options_);
  if (of_row == 0) return expected;
  float scale;
  const Size at = row * of_row + (of_row > 1 ? column / kScaleGroup : 0);
  std::memcpy(&scale, scales + at * Size{sizeof(float)}, sizeof(float));
  return scale;
}

namespace {

void count(NormErrors& errors, bool is_right, const char* what, Size row, Size column, float got, float expected) {
  ++errors.checked;
  if (is_right) return;
  if (errors.wrong++ == 0)
    errors.first = fmt::format("{} of row {}, element {}: {} instead of {}", what, row, column, got, expected);
}

}  // namespace

void NormExample::check_columns(NormErrors& errors, const Row& expected, Size row, Range columns,
                                const std::byte* out) const {
  for (Size i = columns.begin; i < columns.end; ++i) {
    const float got = element(out, row * columns.size() + i - columns.begin);
    const auto at = static_cast<std::size_t>(i);
    const float scale = expected.scales[at];
    const float y = options_.quantisation == Quantisation::kNone
                        ? rounded(expected.y[at])
                        : rounded(convert<float>(convert<fp8_e4m3>(expected.y[at] * (1.0F / scale))) * scale);
    count(errors, is(got, y, 0.02F, 1e-4F), "out", row, i, got, y);
  }
}

void NormExample::check_out(NormErrors& errors, const Row& expected, Size row, const std::byte* out,
                            const std::byte* scales) const {
  if (options_.quantisation == Quantisation::kNone)
    return check_columns(errors, expected, row, {0, options_.hidden}, out);
  for (Size i = 0; i < options_.hidden; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const Size place = row * options_.hidden + i;
    const float scale = scale_of(scales, row, i, expected.scales[at]);
    if (!is(scale, expected.scales[at], 1e-4F, 0)) {
      count(errors, false, "scale", row, i, scale, expected.scales[at]);
      continue;
    }
    const auto got = convert<float>(fp8_e4m3::from_bits(std::to_integer<std::uint8_t>(out[place])));
    const auto y = convert<float>(convert<fp8_e4m3>(expected.y[at] * (1.0F / scale)));
    count(errors, is(got, y, 0.13F, 0.01F), "fp8 out", row, i, got, y);
  }
}

void NormExample::check_sum(NormErrors& errors, const Row& expected, Size row, const std::byte* sum) const {
  for (Size i = 0; i < options_.hidden; ++i) {
    const float got = element(sum, row * options_.hidden + i);
    const float x = expected.sum[static_cast<std::size_t>(i)];
    count(errors, got == x, "sum", row, i, got, x);
  }
}

NormErrors NormExample::errors(int pe, const std::byte* out, const std::byte* sum, const std::byte* scales) const {
  const Range own = held(pe);
  NormErrors errors;
  for (Size r = 0; r < rows_; ++r) {
    const Row expected = row(r);
    if (options_.sum && r >= own.begin && r < own.end) check_sum(errors, expected, r - own.begin, sum);
    check_out(errors, expected, r, out, scales);
  }
  return errors;
}

NormErrors NormExample::errors_of_own(int pe, const std::byte* out, const std::byte* sum,
                                      const std::byte* scales) const {
  const Range own = split(rows_, pes_)[pe];
  NormErrors errors;
  for (Size r = own.begin; r < own.end; ++r) {
    const Row expected = row(r);
    if (options_.sum) check_sum(errors, expected, r - own.begin, sum);
    check_out(errors, expected, r - own.begin, out, scales);
  }
  return errors;
}

NormErrors NormExample::errors_of_sum(int pe, const std::byte* sum) const {
  const Range own = held(pe);
  NormErrors errors;
  for (Size r = own.begin; r < own.end && options_.sum; ++r) check_sum(errors, row(r), r - own.begin, sum);
  return errors;
}

NormErrors NormExample::errors_of_columns(Range columns, const std::byte* out) const {
  NormErrors errors;
  for (Size r = 0; r < rows_; ++r) check_columns(errors, row(r), r, columns, out);
  return errors;
}

}  // namespace tandem::kernels
