#pragma once
/// Rows to the PEs whose experts their tokens chose. Each row crosses once for each PE, not once for each expert.

#include <cmath>
#include <type_traits>

#include "base/gpu_kernel.h"
#include "collectives/all_reduce_norm/norm_args.h"
#include "collectives/experts/row_lines.h"

namespace tandem::kernels {

/// `Q`: the type of rows that are quantised on the way, or std::byte for rows that travel as they are.
template <class Q>
struct DispatchRows {
  using Packet = LL128Line;
  static constexpr bool kEpochFirst = true;
  static constexpr int kThreads = RowLines::kThreads;
  static constexpr int kBlocksPerSm = RowLines::kBlocksPerSm;
  static constexpr bool kQuantises = !std::is_same_v<Q, std::byte>;
  static constexpr Size kQuantised = 896;  // elements that 128 threads hold in lines, seven groups

  struct Args {
    const Q* x = nullptr;       // rows to quantise
    std::byte* rows = nullptr;  // [token][row_bytes]: as they travel
    float* scales = nullptr;    // [token][groups], or null
    std::byte* out = nullptr;
    float* out_scales = nullptr;
    Size groups = 0;  // scales of a row
    bool in_place = false;
    Routing routing;
    RowLines lines;
  };

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch epoch = block.next_epoch(a.lines.epochs);
    const Routing& r = a.routing;
    a.lines.announce(block, epoch);
    a.lines.for_own(block, block.load_scalar(r.tokens() + block.pe()), [&](Size token, Size i) {
      const auto ids = load_choices(block, r.ids(block.pe()) + token * r.top_k, r.top_k, -1);
      if (const std::uint64_t pes = pes_of(r, ids); pes != 0) send(block, a, epoch, pes, token, i);
    });
    for (const int pe : block.peers_from_self())
      a.lines.for_own(block, block.load_scalar(r.tokens() + pe), [&](Size token, Size i) {
        const auto places = load_choices(block, r.places(pe) + token * r.top_k, r.top_k, -1);
        if (any_here(places)) receive(block, a, epoch, places, pe, token, i);
      });
    a.lines.await_all(block, epoch);
  }

 private:
  /// The scales of a piece of a row.
  TANDEM_DEVICE static Range groups_of(Range bytes) {
    return {bytes.begin / kScaleGroup, ceil_div(bytes.end, kScaleGroup)};
  }

  template <class Block>
  TANDEM_DEVICE static void send(Block& block, const Args& a, Epoch epoch, std::uint64_t pes, Size token, Size i) {
    const Range piece = a.lines.bytes(i);
    const Range groups = groups_of(piece);
    if constexpr (kQuantises) quantise(block, a, token, piece);
    const auto row =
        block.template load<std::byte>(static_cast<const std::byte*>(a.rows + token * a.lines.row_bytes), piece);
    for (const int pe : block.peers_from_self())
      if (pes >> pe & 1U)
        block.template ll_put_fragment<std::byte>(a.lines.at(a.routing, epoch, block.pe(), pe, i), row, epoch, pe);
    const bool is_mine = pes >> block.pe() & 1U;
    if (is_mine) {
      const auto places =
          load_choices(block, a.routing.places(block.pe()) + token * a.routing.top_k, a.routing.top_k, -1);
      for_rows(a, places, block.pe(), token,
               [&](Size to_row) { block.store(a.out + to_row * a.lines.row_bytes, piece, row); });
    }
    if (a.scales == nullptr) return;
    const auto scales = block.template load<float>(static_cast<const float*>(a.scales + token * a.groups), groups);
    for (const int pe : block.peers_from_self())
      if (pes >> pe & 1U)
        block.template ll_put_fragment<float>(a.lines.at(a.routing, epoch, block.pe(), pe, i) + a.lines.data_lines,
                                              scales, epoch, pe);
    if (is_mine) {
      const auto places =
          load_choices(block, a.routing.places(block.pe()) + token * a.routing.top_k, a.routing.top_k, -1);
      for_rows(a, places, block.pe(), token,
               [&](Size to_row) { block.store(a.out_scales + to_row * a.groups, groups, scales); });
    }
  }

  /// The piece in fp8, in memory, since fragments of one byte have another layout.
  template <class Block>
  TANDEM_DEVICE static void quantise(Block& block, const Args& a, Size token, Range piece) {
    auto* const row = reinterpret_cast<fp8_e4m3*>(a.rows + token * a.lines.row_bytes);
    for (const Range part : Tiles(piece, kQuantised)) {
      const auto values = block.template load<float>(a.x + token * a.lines.row_bytes, part);
      const auto scales =
          block.template group_greatest<kScaleGroup>(values.map([](float x) { return fabsf(x); })).map([](float x) {
            return scale_for(x);
          });
      block.template store_group_firsts<kScaleGroup>(a.scales + token * a.groups + part.begin / kScaleGroup, scales);
      block.store(row, part, values.zip(scales, [](float x, float scale) { return x * (1.0F / scale); }));
    }
    block.sync();
  }

  template <class Block>
  TANDEM_DEVICE static void receive(Block& block, const Args& a, Epoch epoch, const Choices<std::int32_t>& places,
                                    int pe, Size token, Size i) {
    const Range piece = a.lines.bytes(i);
    const LL128Line* const from = a.lines.at(a.routing, epoch, pe, block.pe(), i).local();
    const auto row = block.template ll_get<std::byte, std::byte>(from, piece.size(), epoch);
    for_rows(a, places, pe, token, [&](Size to) { block.store(a.out + to * a.lines.row_bytes, piece, row); });
    if (a.scales == nullptr) return;
    const Range groups = groups_of(piece);
    const auto scales = block.template ll_get<float, float>(from + a.lines.data_lines, groups.size(), epoch);
    for_rows(a, places, pe, token, [&](Size to) { block.store(a.out_scales + to * a.groups, groups, scales); });
  }

  /// Calls f(row of the output) for each place of a token.
  template <class F>
  TANDEM_DEVICE static void for_rows(const Args& a, const Choices<std::int32_t>& places, int pe, Size token,
                                     const F& f) {
    if (a.in_place) return f(pe * a.routing.max_tokens + token);
    for (const std::int32_t place : places.of)
      if (place >= 0) f(Size{place});
  }
};

TANDEM_GPU_KERNEL(DispatchRows<std::byte>, 128);
TANDEM_GPU_KERNEL(DispatchRows<bf16>, 128);
TANDEM_GPU_KERNEL(DispatchRows<f16>, 128);

}  // namespace tandem::kernels
