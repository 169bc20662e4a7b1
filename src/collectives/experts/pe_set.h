#pragma once
/// Sets of PEs in registers.

#include <cstdint>

#include "tandem/block.h"

namespace tandem::kernels {

/// GPUs have a bit for each PE in two registers.
constexpr int kMostPesOnGpus = 64;
constexpr int kMostPes = 1024;
#ifdef __CUDACC__
constexpr int kPeWords = kMostPesOnGpus / 64;
#else
constexpr int kPeWords = kMostPes / 64;
#endif

/// A set of PEs, a bit each.
template <int kWords = kPeWords>
class PeSet {
 public:
  PeSet() = default;
  TANDEM_DEVICE explicit PeSet(std::uint64_t bits) : words_{bits} {}
  /// The bits of `count` neighbouring PEs, at least one.
  TANDEM_DEVICE static std::uint64_t bits(int first, int count) { return ~std::uint64_t{0} >> (64 - count) << first; }

  TANDEM_DEVICE void add(int pe) { word(*this, pe) |= bit(pe); }
  /// Adds `count` neighbouring PEs, at least one.
  TANDEM_DEVICE void add(int first, int count) {
    if constexpr (kIsOne)
      words_[0] |= bits(first, count);
    else
      for (int pe = first; pe < first + count; ++pe) add(pe);
  }
  TANDEM_DEVICE bool has(int pe) const { return (word(*this, pe) & bit(pe)) != 0; }
  TANDEM_DEVICE bool empty() const {
    std::uint64_t any = 0;
    for (const std::uint64_t word : words_) any |= word;
    return any == 0;
  }
  TANDEM_DEVICE PeSet without(const PeSet& others) const {
    PeSet set;
    for (int i = 0; i < kWords; ++i) set.words_[i] = words_[i] & ~others.words_[i];
    return set;
  }

 private:
  static constexpr bool kIsOne = kWords == 1;  // its place is known to the compiler
  template <class Set>
  TANDEM_DEVICE static auto& word(Set& set, int pe) {
    return set.words_[kIsOne ? 0 : pe / 64];
  }
  TANDEM_DEVICE static std::uint64_t bit(int pe) { return std::uint64_t{1} << (kIsOne ? pe : pe % 64); }

  std::uint64_t words_[kWords] = {};
};

}  // namespace tandem::kernels
