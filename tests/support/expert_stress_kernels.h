#pragma once
/// Kernels between the calls of a stress test of experts: one that makes a PE late, and one that compares words.

#include "tandem/block.h"

namespace tandem::test {

/// Rewrites memory for up to `most_passes` times in about every fourth call. The number depends on the seed and the
/// call.
struct LateStart {
  struct Args {
    std::uint32_t* words;
    Size count;
    std::uint64_t seed;
    int most_passes;
    Epochs epochs;
  };
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    std::uint64_t x = block.next_epoch(a.epochs) * 0x9E3779B97F4A7C15U + a.seed * 0xC2B2AE3D27D4EB4FU;
    x ^= x >> 30;
    x *= 0xBF58476D1CE4E5B9U;
    x ^= x >> 27;
    if (x % 4 != 0) return;
    const int passes = static_cast<int>((x >> 32) % static_cast<std::uint64_t>(a.most_passes + 1));
    for (int pass = 0; pass < passes; ++pass)
      for (const Range tile : block.template tiles<std::uint32_t>(Range{0, a.count})) {
        const auto words = block.template load<std::uint32_t>(a.words, tile);
        block.store(a.words, tile, words.map([](std::uint32_t word) { return word * 3 + 1; }));
      }
  }
};

/// `differences` stays 0 as long as the words are those of `want`.
struct SameWords {
  struct Args {
    const std::uint32_t* want;
    const std::uint32_t* got;
    std::uint32_t* differences;
    Size count;
  };
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    for (const Range tile : block.template tiles<std::uint32_t>(split(a.count, block.count(), 16)[block.index()])) {
      const auto want = block.template load<std::uint32_t>(a.want, tile);
      const auto got = block.template load<std::uint32_t>(a.got, tile);
      const auto before = block.template load<std::uint32_t>(a.differences, tile);
      const auto wrong = got.zip(want, [](std::uint32_t x, std::uint32_t y) { return x ^ y; });
      block.store(a.differences, tile, before.zip(wrong, [](std::uint32_t x, std::uint32_t y) { return x | y; }));
    }
  }
};

}  // namespace tandem::test
