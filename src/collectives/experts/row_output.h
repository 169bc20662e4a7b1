#pragma once
/// The rows that a dispatch leaves at their experts, and the pieces of rows that it moves.

#include <cmath>

#include "collectives/all_reduce_norm/norm_args.h"
#include "collectives/experts/routing.h"

namespace tandem::kernels {

struct RowOutput {
  std::byte* rows = nullptr;
  float* scales = nullptr;
  Size row_bytes = 0;
  Size groups = 0;                        // scales of a row
  const std::int32_t* columns = nullptr;  // [groups]: places of a row's scales by group, or null
  Size max_tokens = 0;                    // of the layout in place, else 0

  /// Stores a piece of a token's row to all its places.
  template <class Block, class Values>
  TANDEM_DEVICE void store(Block& block, const Choices<std::int32_t>& places, int pe, Size token, Range piece,
                           const Values& row) const {
    for_rows(places, pe, token, [&](Size to) { block.store(rows + to * row_bytes, piece, row); });
  }
  template <class Block, class Values>
  TANDEM_DEVICE void store_scales(Block& block, const Choices<std::int32_t>& places, int pe, Size token, Range its,
                                  const Values& values) const {
    for_rows(places, pe, token, [&](Size to) {
      if (columns == nullptr)
        block.store(scales + to * groups, its, values);
      else
        block.store_at(scales + to, block.template load<std::int32_t>(columns, its), values);
    });
  }

  /// Calls f(row) for each row of a token here.
  template <class F>
  TANDEM_DEVICE void for_rows(const Choices<std::int32_t>& places, int pe, Size token, const F& f) const {
    if (max_tokens > 0) {
      if (any_here(places)) f(pe * max_tokens + token);
      return;
    }
    std::uint32_t some = 0;
    for_numbers<kMostTopK>([&](auto k) { some |= (places.of[k] >= 0 ? 1U : 0U) << k; });
    for (int k = 0; some >> k != 0; ++k) {
      if ((some >> k & 1U) == 0) continue;
      f(Size{entry_of(places, k)});
    }
  }
};

/// The scales of a piece of a row.
TANDEM_DEVICE inline Range groups_of(Range piece) {
  return {piece.begin / kScaleGroup, ceil_div(piece.end, kScaleGroup)};
}

/// Makes a piece of a row in fp8, and its scales, in memory, since fragments of one byte have another layout. `kStep`:
/// elements that the block holds, a multiple of a group.
template <Size kStep, class T, class Block>
TANDEM_DEVICE void quantise_piece(Block& block, const T* x, std::byte* own, float* its_scales, Range piece) {
  for (const Range part : Tiles(piece, kStep)) {
    const auto values = block.template load<float>(x, part);
    const auto scales = block.template group_greatest<kScaleGroup>(values.map([](float value) { return fabsf(value); }))
                            .map([](float greatest) { return scale_for(greatest); });
    block.template store_group_firsts<kScaleGroup>(its_scales + part.begin / kScaleGroup, scales);
    block.store(reinterpret_cast<fp8_e4m3*>(own), part,
                values.zip(scales, [](float value, float scale) { return value * (1.0F / scale); }));
  }
  block.sync();
}

/// Loads some pieces of a row at once, and calls f(for_loaded) with them; for_loaded(g) calls g(piece, its bytes).
template <class Rows, class Block, class Load, class F>
TANDEM_DEVICE void for_pieces(Block& block, const Rows& rows, Range bytes, const Load& load, const F& f) {
  constexpr int kAtOnce = Rows::kPiecesAtOnce;
  using Bytes = decltype(block.template load<std::byte>(static_cast<const std::byte*>(nullptr), Range{}));
  for (const Range some : Tiles(bytes, kAtOnce * rows.piece_bytes)) {
    const auto piece_of = [&](int i) {
      const Size begin = some.begin + i * rows.piece_bytes;
      return Range{begin, max(begin, min(begin + rows.piece_bytes, some.end))};
    };
    Bytes loaded[kAtOnce];
    for_numbers<kAtOnce>([&](auto i) {
      if (const Range piece = piece_of(i); !piece.empty()) loaded[i] = load(piece);
    });
    f([&](const auto& g) {
      for_numbers<kAtOnce>([&](auto i) {
        if (const Range piece = piece_of(i); !piece.empty()) g(piece, loaded[i]);
      });
    });
  }
}

}  // namespace tandem::kernels
