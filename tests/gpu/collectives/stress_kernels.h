#pragma once
/// Data of the stress test: an input that changes with every call, and a check of the output, both on the device.

#include "tandem/block.h"

namespace tandem::test {

/// Input of call e: base + e, in whole numbers modulo 2^32.
struct StressFill {
  struct Args {
    const std::uint32_t* base;
    std::uint32_t* in;
    Size count;
    Epochs epochs;
  };
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const auto e = static_cast<std::uint32_t>(block.next_epoch(a.epochs));
    for (const Range tile : block.template tiles<std::uint32_t>(split(a.count, block.count(), 16)[block.index()]))
      block.store(a.in, tile,
                  block.template load<std::uint32_t>(a.base, tile).map([e](std::uint32_t x) { return x + e; }));
  }
};

/// Output of call e: want + factor * e. `differences` stays 0 as long as all is right.
struct StressCheck {
  struct Args {
    const std::uint32_t* want;
    const std::uint32_t* out;
    std::uint32_t* differences;
    Size count;
    std::uint32_t factor;
    Epochs epochs;
  };
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const std::uint32_t add = a.factor * static_cast<std::uint32_t>(block.next_epoch(a.epochs));
    for (const Range tile : block.template tiles<std::uint32_t>(split(a.count, block.count(), 16)[block.index()])) {
      const auto want = block.template load<std::uint32_t>(a.want, tile);
      const auto got = block.template load<std::uint32_t>(a.out, tile);
      const auto wrong = got.zip(want, [add](std::uint32_t x, std::uint32_t y) { return x ^ (y + add); });
      const auto before = block.template load<std::uint32_t>(a.differences, tile);
      block.store(a.differences, tile, before.zip(wrong, [](std::uint32_t x, std::uint32_t y) { return x | y; }));
    }
  }
};

}  // namespace tandem::test
