#pragma once
/// The choices and weights of all PEs as they arrive, in tiles, and the peers' in memory for dispatches and
/// combinations.

#include "collectives/experts/choices/route_lines.h"

namespace tandem::kernels {

struct PeerChoices {
  template <class Block>
  TANDEM_DEVICE static int pe_of(const Block& block, int step) {
    return (block.pe() + step) % block.num_pes();
  }

  /// Returns the choices of the PE that is `step` steps from here.
  template <class Block>
  TANDEM_DEVICE static Size choices_of(Block& block, const RouteArgs& a, Epoch epoch, int step) {
    const auto header = block.template ll_get<std::int32_t, Index>(a.first_at(epoch, step).local(), 1, epoch);
    return Size{header_of(block.pick(header, 0, 1).at(0))} * a.routing.top_k;
  }

  /// Returns the words of a tile of a PE's message. Stores those of peers.
  template <class Block>
  TANDEM_DEVICE static auto receive(Block& block, const RouteArgs& a, Epoch epoch, int step, Size tile, Range words) {
    const Routing& r = a.routing;
    const int pe = pe_of(block, step);
    const LL128Line* const from = (tile == 0 ? a.first_at(epoch, step) : a.rest_at(epoch, pe, tile)).local();
    auto received = block.template ll_get<std::int32_t, Index>(from, words.size(), epoch);
    if (step > 0) block.store(r.message(pe), words, received);
    if (step > 0 && tile == 0) block.store_scalar(r.tokens() + pe, header_of(block.pick(received, 0, 1).at(0)));
    return received;
  }
  template <class Block>
  TANDEM_DEVICE static void receive_weights(Block& block, const RouteArgs& a, Epoch epoch, int step, Size tile,
                                            Size choices) {
    const int pe = pe_of(block, step);
    const Size begin = tile * kRouteTile;
    const Range weights{begin, min(begin + kRouteTile, choices)};
    if (weights.empty()) return;
    block.store(a.routing.weights(pe), weights,
                block.template ll_get<float, float>(a.weights_at(epoch, pe, tile).local(), weights.size(), epoch));
  }
  TANDEM_DEVICE static Range words_of(const RouteArgs& a, Size tile, Size choices) {
    const Size begin = tile * kRouteTile;
    return {begin, tile == 0 ? a.first_words : max(begin, min(begin + kRouteTile, kHeaderWords + choices))};
  }

  /// Keeps the peers' choices, which are of one tile each, and weights for dispatches and combinations. Some blocks
  /// share the peers, and have numbers from 0 on.
  template <class Block>
  TANDEM_DEVICE static void receive_peers(Block& block, const RouteArgs& a, Epoch epoch, int member, int members) {
    for (int step = 1 + member; step < block.num_pes(); step += members) {
      const auto words = receive(block, a, epoch, step, 0, {0, a.first_words});
      receive_weights(block, a, epoch, step, 0, Size{header_of(block.pick(words, 0, 1).at(0))} * a.routing.top_k);
    }
  }
};

}  // namespace tandem::kernels
