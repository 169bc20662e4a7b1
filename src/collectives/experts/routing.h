#pragma once
/// The routing of tokens to experts in device memory: its arrays, and loads of one token's entries.

#include <cstdint>

#include "base/divider.h"
#include "collectives/experts/pe_set.h"
#include "tandem/block.h"

namespace tandem::kernels {

constexpr int kMostTopK = 16;
/// The place of a choice whose expert is here and has no row left for it.
constexpr std::int32_t kNoRoom = -2;

constexpr Size kLineWords = sizeof(LL128Line::data) / 4;
/// Words before a PE's ids in its message, which keep them at a multiple of 16 bytes. The first one is
/// header_of(tokens), and the others are -1.
constexpr Size kHeaderWords = 4;
/// Returns a number that is no expert; the inverse function is itself.
TANDEM_DEVICE constexpr std::int32_t header_of(std::int32_t tokens) { return -3 - tokens; }

/// The arrays of one routing, in 32-bit words. A token's choices lie behind one another.
struct Routing {
  std::int32_t* words = nullptr;
  int pes = 0;
  int experts_here = 0;
  int tp_size = 1;  // neighbouring PEs with the same experts
  int top_k = 0;
  Size max_tokens = 0;
  Size rows = 0;
  Size padded_choices = 0;
  Divider by_experts_here, by_tp_size;

  /// Sets what follows from the other numbers.
  void complete() {
    padded_choices = round_up(kHeaderWords + max_tokens * top_k, kLineWords) - kHeaderWords;
    by_experts_here = Divider(experts_here);
    by_tp_size = Divider(tp_size);
  }
  TANDEM_DEVICE std::int32_t first_expert(int pe) const { return by_tp_size(pe) * experts_here; }
  /// Choices of a PE, padded so that with the words before them they fill lines of packets.
  TANDEM_DEVICE Size choices() const { return padded_choices; }
  TANDEM_DEVICE std::int32_t* tokens() const { return words; }
  TANDEM_DEVICE std::int32_t* counts() const { return tokens() + round_up(pes, 4); }
  TANDEM_DEVICE std::int32_t* starts() const { return counts() + round_up(experts_here, 4); }
  TANDEM_DEVICE std::int32_t* slots() const { return starts() + round_up(experts_here + 1, 4); }
  /// A PE's message: its header, and its ids.
  TANDEM_DEVICE std::int32_t* message(int pe) const {
    return slots() + round_up(rows, 4) + pe * (kHeaderWords + choices());
  }
  TANDEM_DEVICE std::int32_t* ids(int pe) const { return message(pe) + kHeaderWords; }
  /// Valid for choices whose expert is here.
  TANDEM_DEVICE std::int32_t* places(int pe) const { return message(pes) + pe * choices(); }
  TANDEM_DEVICE float* weights(int pe) const { return reinterpret_cast<float*>(places(pes)) + pe * choices(); }
  TANDEM_DEVICE Size bytes() const { return (weights(pes) - reinterpret_cast<float*>(words)) * Size{sizeof(float)}; }
};

/// A token's entries in one of the arrays.
template <class Block, class T>
using Choices = typename Block::template FewOf<T>;

/// Loads a token's ids; and its places, -1 for choices whose expert is not here.
template <class Block>
TANDEM_DEVICE Choices<Block, std::int32_t> load_ids(Block& block, const Routing& r, int pe, Size token) {
  return block.load_few(static_cast<const std::int32_t*>(r.ids(pe) + token * r.top_k), r.top_k);
}
template <class Block>
TANDEM_DEVICE Choices<Block, std::int32_t> load_places(Block& block, const Routing& r, int pe, Size token,
                                                       const Choices<Block, std::int32_t>& ids) {
  const std::int32_t first = r.first_expert(block.pe());
  return block.load_few(static_cast<const std::int32_t*>(r.places(pe) + token * r.top_k), r.top_k)
      .zip(ids, [first, here = r.experts_here](std::int32_t place, std::int32_t id) {
        return id >= first && id < first + here ? place : -1;
      });
}

/// Returns whether any of the token's experts is on this PE.
template <class Places>
TANDEM_DEVICE bool any_here(const Places& places) {
  return places.mask([](std::int32_t place) { return place != -1; }) != 0;
}
/// Returns the bits of a token's choices that have a row here.
template <class Places>
TANDEM_DEVICE std::uint32_t rows_here(const Places& places) {
  return places.mask([](std::int32_t place) { return place >= 0; });
}

/// The rows of a token here, and their weights.
template <class Block>
struct TokenShare {
  Choices<Block, std::int32_t> places;
  Choices<Block, float> weights;
};
template <class Block>
TANDEM_DEVICE TokenShare<Block> share_of(Block& block, const Routing& r, int pe, Size token,
                                         const Choices<Block, std::int32_t>& ids) {
  return {load_places(block, r, pe, token, ids),
          block.load_few(static_cast<const float*>(r.weights(pe) + token * r.top_k), r.top_k)};
}

/// Returns the PEs with an expert of the token.
template <int kWords = kPeWords, class Ids>
TANDEM_DEVICE PeSet<kWords> pes_of(const Routing& routing, const Ids& ids) {
  const auto first_of = [&](std::int32_t id) {
    return static_cast<int>(routing.by_experts_here(id)) * routing.tp_size;
  };
  if constexpr (kWords == 1) {
    return PeSet<1>(
        ids.join([&](std::int32_t id) { return id < 0 ? 0 : PeSet<1>::bits(first_of(id), routing.tp_size); }));
  } else {
    PeSet<kWords> pes;
    for (int i = 0; i < ids.count(); ++i)
      if (ids.at(i) >= 0) pes.add(first_of(ids.at(i)), routing.tp_size);
    return pes;
  }
}

}  // namespace tandem::kernels
