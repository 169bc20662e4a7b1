#include "collectives/reference/quantised.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tandem::kernels {

namespace {

constexpr double kSlack = 1e-4;  // roundings of f32, relative to a code's step

/// Returns x, rounded up to 16 significant bits.
float rounded_up(float x) {
  constexpr int kBits = 16;
  int exponent = 0;
  const double significand = std::frexp(static_cast<double>(x), &exponent);
  return static_cast<float>(std::ldexp(std::ceil(std::ldexp(significand, kBits)), exponent - kBits));
}

float code_of(WireFormat wire, float quotient) {
  if (wire == WireFormat::kInt8) return static_cast<float>(std::lrint(quotient));  // no negative 0
  return static_cast<float>(fp8_e4m3(quotient));
}

/// Returns half of the distance between codes around a code: the error of a value in units of its scale.
double half_step(WireFormat wire, float code) {
  constexpr double kInt = 0.5, kLeastFp8 = 1.0 / 1024, kRelative = 1.0 / 16;
  if (wire == WireFormat::kInt8) return kInt;
  return std::max(kLeastFp8, std::abs(static_cast<double>(code)) * kRelative);
}

}  // namespace

std::vector<double> pass_through_wire(WireFormat wire, std::vector<float>& values) {
  std::vector<double> bounds;
  float greatest = 0;
  bool is_finite = true;
  for (const float x : values) {
    is_finite = is_finite && std::isfinite(x);
    greatest = std::max(greatest, std::abs(x));
  }
  constexpr float kLeast = 1e-30F, kGreatestFp8 = 448, kGreatestInt = 127;
  float scale = 1;
  if (greatest >= kLeast) scale = rounded_up(greatest / (wire == WireFormat::kFp8 ? kGreatestFp8 : kGreatestInt));
  const float inverse = 1.0F / scale;
  for (float& x : values) {
    const float code = is_finite ? code_of(wire, x * inverse) : std::numeric_limits<float>::quiet_NaN();
    x = code * scale;
    if (!is_finite)
      bounds.push_back(std::numeric_limits<double>::quiet_NaN());
    else if (greatest < kLeast)
      bounds.push_back(static_cast<double>(kLeast));
    else
      bounds.push_back(half_step(wire, code) * static_cast<double>(scale) * (1 + kSlack));
  }
  return bounds;
}

QuantisedGroup quantised_group(const QuantisedCall& call, int pe, Size first) {
  const bool gathers = call.collective == Collective::kAllGather;
  const Size in_part = gathers ? first % call.count : first;
  const Size begin = in_part + (call.collective == Collective::kReduceScatter ? pe * call.count : 0);
  const auto size = static_cast<std::size_t>(std::min(kWireGroup, call.count - in_part));
  QuantisedGroup group{std::vector<float>(size), std::vector<double>(size), std::vector<double>(size)};
  const int source = gathers ? static_cast<int>(first / call.count) : 0;
  for (int from = source; from < (gathers ? source + 1 : call.pes); ++from) {
    std::vector<float> values(size);
    for (std::size_t i = 0; i < size; ++i) {
      values[i] = call.input(from, begin + static_cast<Size>(i));
      group.exact[i] += static_cast<double>(values[i]);
    }
    const std::vector<double> bounds = pass_through_wire(call.wire, values);
    for (std::size_t i = 0; i < size; ++i) {
      group.values[i] = from == source ? values[i] : group.values[i] + values[i];
      const double rounding = from == source ? 0 : std::ldexp(std::abs(static_cast<double>(group.values[i])), -24);
      group.bounds[i] += bounds[i] + rounding;
    }
  }
  if (call.collective == Collective::kAllReduce) {
    const std::vector<double> bounds = pass_through_wire(call.wire, group.values);
    for (std::size_t i = 0; i < size; ++i) group.bounds[i] += bounds[i];
  }
  return group;
}

}  // namespace tandem::kernels
