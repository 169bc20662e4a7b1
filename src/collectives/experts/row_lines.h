#pragma once
/// Rows on their way between PEs, as lines of packets. Token t of PE p has a place of its own on every PE.

#include "collectives/experts/routing.h"
#include "tandem/block.h"

namespace tandem::kernels {

/// Blocks are small, since a row is. A block moves one piece of a row at a time.
struct RowLines {
  static constexpr int kThreads = 128;
  static constexpr int kBlocksPerSm = 4;
  static constexpr Size kPieceBytes = 1792;  // what 128 threads hold in lines

  Symm<LL128Line> lines;  // [2][peer][token][piece][lines_of_piece]; the next PE's rows come first
  Signals begun;          // [PE]: the last call that each PE has begun
  Epochs epochs;
  Size row_bytes = 0;
  Size piece_bytes = 0;
  int pieces = 0;
  int data_lines = 0;  // of a piece, before its scales
  int lines_of_piece = 0;

  /// `scales`: whether a line of scales follows each piece.
  template <class Setup>
  static RowLines of(Setup& setup, const Routing& routing, Size row_bytes, bool scales) {
    RowLines rows;
    rows.row_bytes = row_bytes;
    rows.piece_bytes = min(row_bytes, kPieceBytes);
    rows.pieces = static_cast<int>(ceil_div(row_bytes, rows.piece_bytes));
    rows.data_lines = static_cast<int>(packets_for<LL128Line>(rows.piece_bytes));
    rows.lines_of_piece = rows.data_lines + (scales ? 1 : 0);
    const Size tokens = routing.max_tokens * (setup.pes() - 1);
    rows.lines = setup.template symmetric<LL128Line>(2 * tokens * rows.pieces * rows.lines_of_piece, "rows");
    rows.begun = setup.signals(setup.pes(), "begun");
    rows.epochs = setup.epochs();
    return rows;
  }

  /// The lines of piece `i` of rows from PE `from` at PE `to`. It counts the pieces of all tokens.
  TANDEM_DEVICE Symm<LL128Line> at(const Routing& routing, Epoch epoch, int from, int to, Size i) const {
    const int peer = from > to ? from - to - 1 : from - to - 1 + routing.pes;
    const Size slot = static_cast<Size>(epoch % 2) * (routing.pes - 1) + peer;
    return lines + (slot * routing.max_tokens * pieces + i) * lines_of_piece;
  }
  /// The bytes of a row in piece `i`.
  TANDEM_DEVICE Range bytes(Size i) const {
    const Size begin = i % pieces * piece_bytes;
    return {begin, min(begin + piece_bytes, row_bytes)};
  }

  /// Calls f(token, i) for this block's pieces of so many tokens.
  template <class Block, class F>
  TANDEM_DEVICE void for_own(Block& block, Size tokens, const F& f) const {
    for (Size i = block.index(); i < tokens * pieces; i += block.count()) f(i / pieces, i);
  }

  // A routing may serve many calls, in which a PE need not get rows from every other one. So each call waits until all
  // PEs have begun it, and then the previous call has ended everywhere. A slot is written again two calls later.
  template <class Block>
  TANDEM_DEVICE void announce(Block& block, Epoch epoch) const {
    if (block.index() != 0) return;
    for (const int pe : block.pes_from_self()) block.signal_after_reads(begun + block.pe(), epoch, pe);
  }
  template <class Block>
  TANDEM_DEVICE void await_all(Block& block, Epoch epoch) const {
    if (block.index() == 0) block.wait(begun, block.num_pes(), epoch);
  }
};

}  // namespace tandem::kernels
