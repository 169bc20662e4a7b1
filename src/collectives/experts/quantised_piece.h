#pragma once
/// Pieces of rows in fp8 with a scale for each group of elements, made in registers.

#include <cmath>
#include <type_traits>
#include <utility>

#include "collectives/all_reduce_norm/norm_args.h"
#include "tandem/block.h"

namespace tandem::kernels {

/// The scales of a piece of a row.
TANDEM_DEVICE inline Range groups_of(Range piece) {
  return {piece.begin / kScaleGroup, ceil_div(piece.end, kScaleGroup)};
}

/// A piece of a row in fp8, and its scales.
template <class Row, class Scales>
struct QuantisedPiece {
  Row row;
  Scales scales;
};

/// Loads a piece of a row, as bytes or with the layout of fp8.
template <class Q, class Block>
TANDEM_DEVICE auto load_row(Block& block, const Q* row, Range piece) {
  if constexpr (std::is_same_v<Q, std::byte>)
    return block.template load<std::byte>(row, piece);
  else
    return block.template load_as<fp8_e4m3, Q>(row, piece);
}

/// Quantises a piece that was loaded with the layout of fp8.
template <class Block, class Values>
TANDEM_DEVICE auto quantise(Block& block, const Values& loaded) {
  const auto values = loaded.template convert<float>();
  const auto scales = block.template group_greatest<kScaleGroup>(values.map([](float value) { return fabsf(value); }))
                          .map([](float greatest) { return scale_for(greatest); });
  auto row =
      values.zip(scales, [](float value, float scale) { return value * (1.0F / scale); }).template convert<fp8_e4m3>();
  auto firsts = block.template group_firsts<kScaleGroup>(scales);
  return QuantisedPiece<decltype(row), decltype(firsts)>{std::move(row), std::move(firsts)};
}

}  // namespace tandem::kernels
