#include "tools/tandem/data/data.h"

#include <cmath>

namespace tandem::cli {
namespace {

std::vector<float> make_quantiles() {
  constexpr std::size_t count = 65536;
  constexpr double root_half = 0.70710678118654752440;
  constexpr double density_at_0 = 0.39894228040143267794;  // 1 / sqrt(2 pi)
  std::vector<float> quantiles(count);
  double x = 0;
  for (std::size_t i = count / 2; i < count; ++i) {
    // Newton's method on the upper tail starts at the previous quantile. It approaches the root from below and never
    // passes it.
    const double tail = 1 - (static_cast<double>(i) + 0.5) / count;
    for (double step = 1; std::abs(step) > 1e-9;) {
      step = (0.5 * std::erfc(x * root_half) - tail) / (density_at_0 * std::exp(-0.5 * x * x));
      x += step;
    }
    quantiles[i] = static_cast<float>(x);
    quantiles[count - 1 - i] = static_cast<float>(-x);
  }
  return quantiles;
}

}  // namespace

const std::vector<float>& normal_quantiles() {
  static const std::vector<float> quantiles = make_quantiles();
  return quantiles;
}

}  // namespace tandem::cli
