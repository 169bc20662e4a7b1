#pragma once
/// Rows on their way between PEs as lines of packets: the least latency, for few tokens.

#include "collectives/experts/row_slots.h"

namespace tandem::kernels {

struct RowLines : RowSlots {
  using Packet = LL128Line;
  static constexpr Size kPieceBytes = 1792;  // what 128 threads hold in lines
  static constexpr Size kQuantisedBytes = kPieceBytes;
  static constexpr int kPiecesAtOnce = 1;  // in flight, of one row
  static constexpr int kRowsAtOnce = 4;    // likewise, where rows are added
  static constexpr int kLag = 1;           // a third slot hides the latency of signals behind that of packets

  Symm<LL128Line> lines;  // [place][piece][lines_of_piece]
  int data_lines = 0;     // of a piece, before its scales
  int lines_of_piece = 0;

  /// `groups`: scales of a row, those of a piece follow it.
  template <class Setup>
  static RowLines of(Setup& setup, const Routing& routing, Size row_bytes, Size groups, int batches) {
    RowLines rows;
    rows.prepare(setup, row_bytes, kPieceBytes, kLag, batches);
    rows.allocate(setup, routing, groups);
    return rows;
  }
  /// The same for a kernel in which every PE hears of every other one in each call. It needs two slots and no signals.
  template <class Setup>
  static RowLines of_met(Setup& setup, const Routing& routing, Size row_bytes, Size groups, Size piece_bytes) {
    RowLines rows;
    rows.cut(row_bytes, piece_bytes);
    rows.allocate(setup, routing, groups);
    return rows;
  }
  /// About the bytes that `of` allocates for whole calls: those without lines of scales.
  static Size bytes(const Routing& routing, Size row_bytes) {
    return (2 + kLag) * (routing.pes - 1) * routing.max_tokens * packets_for<LL128Line>(row_bytes) *
           Size{sizeof(LL128Line)};
  }

  /// All pieces are sent before any is awaited.
  template <class Block>
  TANDEM_DEVICE static RowMember sender(const Block& block, CallPart part) {
    return part == CallPart::kReceive ? RowMember{} : RowMember{block.index(), block.count()};
  }
  template <class Block>
  TANDEM_DEVICE static RowMember receiver(const Block& block, CallPart part) {
    return part == CallPart::kSend ? RowMember{} : RowMember{block.index(), block.count()};
  }
  TANDEM_DEVICE Size rounds(const RowMember& m) const { return m.count == 0 ? 0 : 1; }
  /// Calls f(token, bytes of its row) for this block's pieces of so many tokens.
  template <class F>
  TANDEM_DEVICE void for_own(const RowMember& m, Size, Size tokens, const F& f) const {
    const auto end = static_cast<std::int32_t>(tokens * pieces);
    for (auto i = static_cast<std::int32_t>(m.index); i < end; i += static_cast<std::int32_t>(m.count)) {
      const std::int32_t token = by_pieces(i);
      const Size begin = (i - token * pieces) * piece_bytes;
      f(token, Range{begin, min(begin + piece_bytes, row_bytes)});
    }
  }

  template <class T, class Block, class Values>
  TANDEM_DEVICE void put(Block& block, const Routing& r, Epoch epoch, int to, Size token, Range bytes,
                         const Values& values) const {
    block.template ll_put_fragment<T>(at(r, epoch, block.pe(), to, token, bytes), values, epoch, to);
  }
  template <class Block, class Values>
  TANDEM_DEVICE void put_scales(Block& block, const Routing& r, Epoch epoch, int to, Size token, Range bytes, Range,
                                const Values& scales) const {
    block.template ll_put_fragment<float>(at(r, epoch, block.pe(), to, token, bytes) + data_lines, scales, epoch, to);
  }
  template <class A, class T, class Block>
  TANDEM_DEVICE auto get(Block& block, const Routing& r, Epoch epoch, int from, Size token, Range bytes) const {
    return block.template ll_get<A, T>(at(r, epoch, from, block.pe(), token, bytes).local(),
                                       bytes.size() / Size{sizeof(T)}, epoch);
  }
  template <class Block>
  TANDEM_DEVICE auto get_scales(Block& block, const Routing& r, Epoch epoch, int from, Size token, Range bytes,
                                Range groups) const {
    return block.template ll_get<float, float>((at(r, epoch, from, block.pe(), token, bytes) + data_lines).local(),
                                               groups.size(), epoch);
  }

  /// Packets carry their own signals.
  template <class Block>
  TANDEM_DEVICE void notify(Block&, const RowMember&, Size, Size, Epoch, int) const {}
  template <class Block>
  TANDEM_DEVICE void await(Block&, const RowMember&, Size, Size, Epoch, int) const {}

 private:
  template <class Setup>
  void allocate(Setup& setup, const Routing& routing, Size groups) {
    data_lines = static_cast<int>(packets_for<LL128Line>(piece_bytes));
    const Size scales = groups > 0 ? ceil_div(piece_bytes, ceil_div(row_bytes, groups)) * Size{sizeof(float)} : 0;
    lines_of_piece = data_lines + static_cast<int>(packets_for<LL128Line>(scales));
    lines = setup.template symmetric<LL128Line>(places(routing) * pieces * lines_of_piece, "rows");
  }
  TANDEM_DEVICE Symm<LL128Line> at(const Routing& r, Epoch epoch, int from, int to, Size token, Range bytes) const {
    return lines + (place(r, epoch, from, to, token) * pieces + bytes.begin / piece_bytes) * lines_of_piece;
  }
};

}  // namespace tandem::kernels
