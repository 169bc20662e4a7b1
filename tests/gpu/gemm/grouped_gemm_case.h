#pragma once
// Grouped GEMMs of the GPU check: what is multiplied, and the memory for it.

#include <fmt/format.h>

#include <string>
#include <vector>

#include "support/collective_values.h"
#include "support/in_threads.h"
#include "tandem/advanced/gemm.h"
#include "tandem/world.h"

namespace tandem::test {

inline constexpr Size kBytes = Size{64} << 20;

/// Scales of fp8 values.
enum class Scales { kNone, kOfRows, kOfBlocks };

struct Case {
  std::vector<std::int32_t> counts;
  Size n = 0, k = 0;
  Size most_rows = 0;
  bool indexed = false, gated = false;
  int column_chunks = 1, together = 8, sms = 0;
  Activation activation = Activation::kNone;
  Scales scales = Scales::kNone;
  int tile_m = 128, tile_n = 256;  // fp8 without gates has 192 of 256
};

inline std::string describe(const Case& c) {
  return fmt::format(
      "{} groups from {} rows, {}x{}, tiles {}x{} most_rows={} chunks={} together={} sms={}{}{} activation={} "
      "scales={}",
      c.counts.size(), c.counts.front(), c.n, c.k, c.tile_m, c.tile_n, c.most_rows, c.column_chunks, c.together, c.sms,
      c.indexed ? " indexed" : "", c.gated ? " gated" : "", static_cast<int>(c.activation), static_cast<int>(c.scales));
}

struct Buffers {
  std::byte *a, *b, *c, *source;
  std::int32_t *counts, *starts, *index;
  float *a_scales, *b_scales, *c_scales;
  Signals arrived, tiles;
  Epoch* epoch;

  explicit Buffers(World& world)
      : a(world.heap().allocate_local<std::byte>(kBytes, "a")),
        b(world.heap().allocate_local<std::byte>(kBytes, "b")),
        c(world.heap().allocate_local<std::byte>(kBytes, "c")),
        source(world.heap().allocate_local<std::byte>(kBytes, "source")),
        counts(world.heap().allocate_local<std::int32_t>(1 << 12, "counts")),
        starts(world.heap().allocate_local<std::int32_t>(1 << 12, "starts")),
        index(world.heap().allocate_local<std::int32_t>(1 << 16, "index")),
        a_scales(world.heap().allocate_local<float>(1 << 16, "scales of a")),
        b_scales(world.heap().allocate_local<float>(1 << 16, "scales of b")),
        c_scales(world.heap().allocate_local<float>(1 << 16, "scales of c")),
        arrived(world.heap().signals(1 << 12, "arrived")),
        tiles(world.heap().signals(64, "tiles")),
        epoch(world.heap().epochs(1, "epoch").words) {}
};

template <class T>
std::vector<T> integers(int matrix, Size count) {
  std::vector<T> values(static_cast<std::size_t>(count));
  in_threads({0, count}, 1, [&](Range some) {
    for (Size i = some.begin; i < some.end; ++i)
      values[static_cast<std::size_t>(i)] =
          convert<T>(static_cast<float>(static_cast<int>(mix(7, 3, matrix, i) % 7) - 3));
  });
  return values;
}

inline std::vector<float> scales(int matrix, Size count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (Size i = 0; i < count; ++i)
    values[static_cast<std::size_t>(i)] = 0.3F + 0.007F * static_cast<float>(mix(7, 3, matrix, i) % 101);
  return values;
}

}  // namespace tandem::test
