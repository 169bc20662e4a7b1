#pragma once
/// The test of every link before a world is used. Every PE writes patterns to every other PE and reads them back, by
/// loads and stores.

#include <cstddef>

#include "tandem/range.h"

namespace tandem::world {

/// Words of each pair, 8 bytes each.
constexpr Size kSelfTestWords = 8192;

/// A region of `pes` times kSelfTestWords words on every PE, at base + pe * stride.
struct SelfTest {
  std::byte* base = nullptr;
  Size stride = 0;  // in bytes
  int pes = 1;
  int me = 0;
  int round = 0;  ///< rounds 0 and 1 write complements
};

}  // namespace tandem::world
