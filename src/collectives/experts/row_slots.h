#pragma once
/// The places of rows between PEs: token t of PE p has one of its own on every PE, in each of several slots.

#include "collectives/experts/routing.h"
#include "tandem/block.h"

namespace tandem::kernels {

/// The part of a call that a kernel does.
enum class CallPart : std::int32_t { kAll, kSend, kReceive };

/// The blocks that do one half of a call, and this block's number among them. Without any, it takes no part.
struct RowMember {
  Size index = 0;
  Size count = 0;
};

/// Blocks are small, since a row is. A block moves one piece of a row at a time.
struct RowSlots {
  static constexpr int kThreads = 128;
  static constexpr int kBlocksPerSm = 4;

  Signals begun;    // [PE]: the last call of which each PE has begun to receive
  Epochs epochs;    // of whole calls, or of sends
  Epochs received;  // of receives
  int slots = 2;
  int lag = 0;  // calls before the present one that all PEs need not have ended when it ends here
  Size row_bytes = 0;
  Size piece_bytes = 0;
  int pieces = 0;
  Divider by_pieces;

  /// `batches`: calls that are in flight between send and receive, 0 for whole calls.
  template <class Setup>
  void prepare(Setup& setup, Size bytes_of_row, Size most_bytes_of_piece, int its_lag, int batches) {
    cut(bytes_of_row, most_bytes_of_piece);
    lag = its_lag;
    slots = lag + (batches == 0 ? 2 : batches + 1);
    begun = setup.signals(setup.pes(), "begun");
    epochs = setup.epochs();
    if (batches > 0) received = setup.epochs();
  }

  void cut(Size bytes_of_row, Size most_bytes_of_piece) {
    row_bytes = bytes_of_row;
    piece_bytes = min(row_bytes, most_bytes_of_piece);
    pieces = static_cast<int>(ceil_div(row_bytes, piece_bytes));
    by_pieces = Divider(pieces);
  }

  template <class Block>
  TANDEM_DEVICE Epoch next_epoch(Block& block, CallPart part) const {
    return block.next_epoch(part == CallPart::kReceive ? received : epochs);
  }
  /// The number of the place for a token of PE `from` at PE `to`, or the other way round. The next PE's come first.
  TANDEM_DEVICE Size place(const Routing& routing, Epoch epoch, int from, int to, Size token) const {
    const int peer = from > to ? from - to - 1 : from - to - 1 + routing.pes;
    const Size slot = static_cast<Size>(epoch % static_cast<Epoch>(slots)) * (routing.pes - 1) + peer;
    return slot * routing.max_tokens + token;
  }
  TANDEM_DEVICE Size places(const Routing& routing) const { return slots * (routing.pes - 1) * routing.max_tokens; }
  /// The pieces of some bytes of a row, which begin with a piece.
  TANDEM_DEVICE Tiles pieces_of(Range bytes) const { return {bytes, piece_bytes}; }

  // A routing may serve many calls, in which a PE need not get rows from every other one. So each call waits until all
  // PEs have started to receive it, or the one `lag` calls before it. They have received the previous one then, and its
  // slot may be written again. The next call but one does so, or with halves the call after all batches are received.
  // With a lag the wait is over at once, since those signals are a call old.
  template <class Block>
  TANDEM_DEVICE void announce(Block& block, Epoch epoch) const {
    if (block.index() != 0) return;
    for (const int pe : block.pes_from_self()) block.signal_after_reads(begun + block.pe(), epoch, pe);
  }
  template <class Block>
  TANDEM_DEVICE void await_all(Block& block, Epoch epoch) const {
    if (block.index() == 0 && epoch > static_cast<Epoch>(lag))
      block.wait(begun, block.num_pes(), epoch - static_cast<Epoch>(lag));
  }
};

}  // namespace tandem::kernels
