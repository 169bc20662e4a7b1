#pragma once
/// The test of every link before a world is used: patterns that every PE writes to every other one and reads back from
/// there, by loads and stores.

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
