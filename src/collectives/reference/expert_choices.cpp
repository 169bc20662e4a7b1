#include "collectives/reference/expert_choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <random>

#include "tandem/error.h"

namespace tandem::kernels {

namespace {

/// Returns S of "zipf:S", or a negative number for any other text.
double zipf_exponent(const std::string& routing) {
  if (routing.rfind("zipf:", 0) != 0 || routing.size() == 5) return -1;
  char* end = nullptr;
  const double s = std::strtod(routing.c_str() + 5, &end);
  return *end == '\0' && s >= 0 && s <= 10 ? s : -1;
}

/// A number in [0, 1). Distributions of the standard library differ between implementations.
double uniform(std::mt19937_64& engine) { return static_cast<double>(engine() >> 11) * 0x1.0p-53; }

/// Draws different experts by weight, as far as there are enough.
void draw(std::mt19937_64& engine, std::vector<double> weights, std::int32_t* ids, int top_k) {
  for (int k = 0; k < top_k; ++k) {
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    if (total <= 0) {
      ids[k] = -1;
      continue;
    }
    double at = uniform(engine) * total;
    std::size_t expert = 0;
    while (expert + 1 < weights.size() && (at >= weights[expert] || weights[expert] == 0)) at -= weights[expert++];
    while (weights[expert] == 0) --expert;
    ids[k] = static_cast<std::int32_t>(expert);
    weights[expert] = 0;
  }
}

std::mt19937_64 engine_of(int pe, std::uint64_t seed) {
  return std::mt19937_64(seed * 1'000'003 + static_cast<std::uint64_t>(pe) + 1);
}

}  // namespace

void check_expert_routing(const std::string& routing) {
  if (routing == "balanced" || routing == "random" || routing == "one" || routing == "none" || routing == "ragged" ||
      zipf_exponent(routing) >= 0)
    return;
  throw InvalidArgument(fmt::format(
      "routing: no '{}'; there are balanced, random, zipf:S with S from 0 to 10, one, none, ragged", routing));
}

Size tokens_of_pe(const std::string& routing, int pe, Size most, std::uint64_t seed) {
  if (routing != "ragged") return most;
  return pe == 0 ? 0 : static_cast<Size>(engine_of(pe, seed ^ 77)() % static_cast<std::uint64_t>(most + 1));
}

std::vector<std::int32_t> expert_choices(const std::string& routing, int experts, int pes, int top_k, int pe,
                                         Size tokens, std::uint64_t seed) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(tokens * top_k), -1);
  std::mt19937_64 engine = engine_of(pe, seed);
  const double s = routing == "random" ? 0 : zipf_exponent(routing);
  std::vector<double> weights(static_cast<std::size_t>(s >= 0 ? experts : 0));
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = std::pow(static_cast<double>(i + 1), -s);
  for (Size token = 0; token < tokens; ++token) {
    std::int32_t* const of_token = ids.data() + token * top_k;
    if (s >= 0) draw(engine, weights, of_token, top_k);
    for (int k = 0; k < top_k; ++k) {
      const Size number = (pe * tokens + token) * top_k + k;
      if (routing == "balanced") of_token[k] = static_cast<std::int32_t>(number % experts);
      if (routing == "one") of_token[k] = static_cast<std::int32_t>((token + k) % std::max(1, experts / pes));
      if (routing == "ragged")
        of_token[k] = static_cast<std::int32_t>(engine() % static_cast<std::uint64_t>(experts + 1)) - 1;
    }
  }
  return ids;
}

}  // namespace tandem::kernels
