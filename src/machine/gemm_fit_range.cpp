#include "machine/gemm_fit_range.h"

#include <fmt/format.h>

namespace tandem::detail {

std::string beyond_gemm_fit(const Machine& machine, const GemmShape& problem) {
  constexpr int kFittedBytes = 2;
  const auto& rates = machine.gemm.sustained_tflops.points;
  if (rates.size() < 2) return fmt::format("GEMM times of {} hang on one published rate", machine.name);
  if (problem.element_bytes != kFittedBytes)
    return fmt::format("GEMM rates were fitted to 16-bit types; those of {} bits are a datasheet's ratio",
                       8 * problem.element_bytes);
  if (problem.tflop() > rates.back().first)
    return fmt::format("{:.3g} TFLOP for each PE, GEMM rates were fitted up to {:g}", problem.tflop(),
                       rates.back().first);
  return {};
}

}  // namespace tandem::detail
