#pragma once
/// A fused GEMM on CPUs, tile by tile: what a tile waits for, its product, where it goes and whom it tells. The
/// simulator and the host's kernel share it.

#include "tandem/advanced/gemm.h"
#include "tandem/advanced/gemm_order.h"

namespace tandem {

/// Throws InvalidArgument or Unsupported naming the field that no fused GEMM on `most_sms` SMs has.
void check_gemm_fields(const Gemm& gemm, int most_sms);

/// The tiles of a GEMM, in the order of computation. The panels of groups are read when a tile is asked for.
class GemmTiles {
 public:
  /// For a grouped GEMM: the table has to be complete. Throws InvalidArgument for a wrong number of panels.
  explicit GemmTiles(const Gemm& gemm);

  Size count() const { return count_; }
  const TileSequence& sequence() const { return sequence_; }
  /// Returns tile `i` for callers with ascending `i`, see TileSequence::tile. Throws InvalidArgument for a panel of
  /// rows or groups that the GEMM does not have.
  GemmTile tile(Size i, TileSequence::Place& from) const;

 private:
  const Gemm* gemm_;
  TileSequence sequence_;
  PanelOrder order_;
  Size count_;
  int panels_ = 0;
};

/// Returns the most tiles that a GEMM may have.
Size most_tiles(const Gemm& gemm);

/// The addresses and values of one PE's GEMM; `gemm` has to live as long.
class TileWork {
 public:
  explicit TileWork(const Gemm& gemm) : gemm_(gemm) {}

  /// Calls wait(slot) for every chunk of A that the tile's rows touch and that comes from a peer.
  template <class F>
  void for_each_gate(const GemmTile& tile, const F& wait) const {
    const Range rows = tile.rows;
    for (int i = 0; i < gemm_.groups.words; ++i) wait(tile.word + i);
    for (Size row = rows.begin; gemm_.groups.count == 0 && row < rows.end;) {
      const int owner = gemm_.rows.owner_of(row);
      const int part = gemm_.rows.part_of(row);
      if (owner != gemm_.me || gemm_.own_a == nullptr) wait(gemm_.rows.slot(owner, part));
      row = gemm_.rows.part(owner, part).end;
    }
  }
  /// Null stands for a row of zeros.
  const std::byte* a_row(Size row) const;
  const std::byte* b(const GemmTile& tile) const;
  /// Where the rows from `row` that lie in one piece of memory end, at most `end`: at a border of the own shard. A row
  /// with an index is a piece of its own.
  Size end_of_a(Size row, Size end) const;

  /// Whether the ring delivers sums for the tile's rows, to be added.
  bool adds_to_ring(const GemmTile& tile) const { return gemm_.ring_adds_to(gemm_.rows.owner_of(tile.rows.begin)); }
  /// Their chunk, and how many tiles of it arrive in each call.
  int ring_slot(const GemmTile& tile) const;
  Epoch ring_arrivals(const GemmTile& tile) const;
  /// The elements of the ring's sums in row `row` of the tile.
  const std::byte* ring_row(const GemmTile& tile, Size row) const;

  /// The tile's product with the chain's sums, finished and converted to the output type, row by row.
  void multiply(const GemmTile& tile, std::byte* result) const;
  Size bytes_of(const GemmTile& tile) const { return tile.rows.size() * row_bytes(tile); }
  Size row_bytes(const GemmTile& tile) const {
    return columns_after(gemm_.activation, tile.cols.size()) * static_cast<Size>(size_of(gemm_.out_type));
  }
  /// The rows of C that no other tile of these columns may have. A panel has those of a whole tile.
  Range owned_rows(const GemmTile& tile) const {
    if (gemm_.groups.count == 0) return tile.rows;
    return {tile.rows.begin, min(tile.rows.begin + gemm_.tile_m, gemm_.m)};
  }
  /// Copies what `multiply` gave to rows [first_row, ...) of `c`.
  std::byte* row_in(std::byte* c, Size first_row, const GemmTile& tile, Size row) const;

  struct Destination {
    std::byte* c = nullptr;
    Size row = 0;
    Signal* notified = nullptr;   ///< grows by 1 once the tile is visible; null: none
    std::byte* second = nullptr;  ///< another buffer with the same rows; null: none
  };
  /// Calls to(Destination) for each: one, or every PE of the node.
  template <class F>
  void for_each_destination(const GemmTile& tile, const F& to) const {
    const GemmBroadcast* const all = gemm_.destination.broadcast();
    if (all == nullptr) return to(destination(tile));
    const int block = gemm_.me % gemm_.node_size;
    for (int i = 0; i < gemm_.node_size; ++i) {
      const int pe = gemm_.me - block + (block + 1 + i) % gemm_.node_size;
      to(Destination{all->blocks.on(pe), block * gemm_.m + tile.rows.begin,
                     all->notify ? all->notify.on(pe) + block : nullptr, nullptr});
    }
  }

 private:
  Destination destination(const GemmTile& tile) const;
  /// Begin of a row in a buffer with a block for each owner.
  Size row_in_blocks(Size row) const;

  const Gemm& gemm_;
};

}  // namespace tandem
