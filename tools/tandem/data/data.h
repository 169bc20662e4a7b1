#pragma once
/// Test data that is a pure function of (seed, stream, index), so that a check can compute any element again.

#include <cstdint>
#include <vector>

#include "tandem/numeric.h"

namespace tandem::cli {

/// Returns 64 random bits: the finalizer of SplitMix64 (Steele, Lea, Flood 2014) over the three numbers.
inline std::uint64_t random_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  const auto finalize = [](std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  };
  constexpr std::uint64_t golden = 0x9E3779B97F4A7C15U;
  return finalize(finalize(seed * golden + stream) + index * golden);
}

/// Quantiles of the standard normal distribution at (i + 1/2) / 65536.
const std::vector<float>& normal_quantiles();

/// Standard normal values, rounded to type T. There are 65536 different values; 64 random bits give four of them.
template <class T>
class NormalData {
 public:
  explicit NormalData(std::uint64_t seed) : seed_(seed) {
    for (const float value : normal_quantiles()) table_.push_back(convert<T>(value));
  }

  T operator()(std::uint64_t stream, Size index) const {
    const auto i = static_cast<std::uint64_t>(index);
    return pick(random_bits(seed_, stream, i / 4), i % 4);
  }
  /// Writes the elements `first`, `first + 1`, ... of a stream.
  void fill(std::uint64_t stream, Size first, T* to, Size count) const {
    Size i = 0;
    for (; i < count && (first + i) % 4 != 0; ++i) to[i] = (*this)(stream, first + i);
    for (; i + 4 <= count; i += 4) {
      const std::uint64_t bits = random_bits(seed_, stream, static_cast<std::uint64_t>(first + i) / 4);
      for (std::uint64_t j = 0; j < 4; ++j) to[i + static_cast<Size>(j)] = pick(bits, j);
    }
    for (; i < count; ++i) to[i] = (*this)(stream, first + i);
  }

 private:
  T pick(std::uint64_t bits, std::uint64_t which) const { return table_[(bits >> (16 * which)) & 0xFFFFU]; }

  std::uint64_t seed_;
  std::vector<T> table_;
};

}  // namespace tandem::cli
