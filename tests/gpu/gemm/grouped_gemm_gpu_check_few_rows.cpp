// Grouped GEMMs with the tiles for few rows of each group.

#include "gpu/gemm/grouped_gemm_check.h"

namespace tandem::test {

namespace {

/// The tiles for few rows. There are boxes of every size, groups with more rows than a tile, blocks with many tiles,
/// and depths that end within a step.
template <class T>
void check_type(World& world, Stream& stream, Stream& copies, Buffers& buffers, int rounds) {
  constexpr int kTileRows = 64;
  const std::vector<std::int32_t> ragged{0, 1, 7, 8, 9, 0, 15, 16, 17, 24, 31, 32, 33, 40, 0, 63, 64, 65, 70, 3};
  std::vector<std::int32_t> all(kTileRows + 1), many(300);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int32_t>(i);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<std::int32_t>(i % 3);
  const auto check = [&](Case c) {
    c.tile_m = kTileRows;
    c.tile_n = 128;
    attempt(fmt::format("few rows, {} {}", name(dtype_of<T>()), describe(c)),
            [&] { return Check<T>(world, stream, buffers, c).run(nullptr, 1); });
  };
  for (const bool indexed : {false, true})
    for (const Activation activation :
         {Activation::kNone, Activation::kRelu, Activation::kSwiGlu, Activation::kGeGlu}) {
      check({.counts = all, .n = 528, .k = 264, .indexed = indexed, .activation = activation});
      check({.counts = ragged,
             .n = 1536,
             .k = 1032,
             .indexed = indexed,
             .column_chunks = 3,
             .together = 2,
             .sms = 5,
             .activation = activation});
      check({.counts = many, .n = 272, .k = 72, .indexed = indexed, .column_chunks = 2, .activation = activation});
      check({.counts = {1, 0, 32}, .n = 16, .k = 8, .indexed = indexed, .sms = 1, .activation = activation});
      check({.counts = {0, 30, 64, 33},
             .n = 400,
             .k = 4104,
             .most_rows = 64,
             .indexed = indexed,
             .activation = activation});
    }
  check({.counts = {0, 0}, .n = 256, .k = 64});
  check({.counts = {0, 500, 0}, .n = 264, .k = 192, .activation = Activation::kRelu});
  for (const Activation activation : {Activation::kNone, Activation::kSwiGlu}) {
    const Case late{.counts = ragged,
                    .n = 528,
                    .k = 264,
                    .gated = true,
                    .column_chunks = 2,
                    .activation = activation,
                    .tile_m = kTileRows,
                    .tile_n = 128};
    Check<T> run(world, stream, buffers, late);
    for (int round = 0; round < rounds; ++round)
      attempt("few rows arrive: " + describe(late), [&] { return run.run(&copies, late_rounds++); });
  }
}

template <class Out>
void check_fp8(World& world, Stream& stream, Buffers& buffers, Case c) {
  c.tile_m = 32;
  c.tile_n = sizeof(Out) == 1 ? 256 : 128;
  attempt(fmt::format("few rows, fp8 to {} {}", name(dtype_of<Out>()), describe(c)),
          [&] { return Check<fp8_e4m3, Out>(world, stream, buffers, c).run(nullptr, 1); });
}

/// Depths end within a step and within a block, and widths within a tile. C has two or three blocks of columns, and
/// part of one.
void check_fp8_types(World& world, Stream& stream, Buffers& buffers) {
  const std::vector<std::int32_t> ragged{0, 1, 8, 9, 16, 0, 17, 31, 32, 33, 3, 70};
  for (const Scales of : {Scales::kNone, Scales::kOfRows, Scales::kOfBlocks})
    for (const bool indexed : {false, true})
      for (const Size k : {16, 272, 1040, 2176}) {
        Case c{.counts = ragged, .n = 528, .k = k, .indexed = indexed, .column_chunks = 2, .together = 2, .scales = of};
        check_fp8<bf16>(world, stream, buffers, c);
        c.sms = 3;
        c.activation = Activation::kSwiGlu;
        check_fp8<bf16>(world, stream, buffers, c);
        c.n = 544;
        check_fp8<fp8_e4m3>(world, stream, buffers, c);
        c.n = 768;
        c.activation = Activation::kGeGlu;
        check_fp8<fp8_e4m3>(world, stream, buffers, c);
      }
}

}  // namespace

void check_few_rows(World& world, Stream& stream, Stream& copies, Buffers& buffers, int rounds) {
  check_type<bf16>(world, stream, copies, buffers, rounds);
  check_type<f16>(world, stream, copies, buffers, rounds);
  check_fp8_types(world, stream, buffers);
}

}  // namespace tandem::test
