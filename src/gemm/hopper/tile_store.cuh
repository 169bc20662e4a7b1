#pragma once
/// The way of a tile out of a block. Each of the two computing warpgroups writes its 64 rows to shared memory, 64
/// columns at a time. A separate warp stores them, signals when there is room again, and sends the notification. A
/// warpgroup thus waits for room only, and not for the other warpgroup or for its stores. It does not even wait for
/// room if it keeps the rounded sums and writes them while the tensor cores compute its next tile.
///
/// In a ring the storing warp first loads the addend of the tile's sums. If there are registers for all of a tile, the
/// warpgroup takes it near the end of the tile's own computation. Otherwise it stays in shared memory until the sums
/// are there.

#include "gemm/hopper/groups/quantised_rows.cuh"
#include "gemm/hopper/store/storing_warp.cuh"

namespace tandem::cuda {

/// The parameters are those of TileSlots.
template <class Element, int TileM, int TileN, bool Scaled, bool Gated, bool Grouped = false, bool Quantised = false,
          bool Late = !Scaled>
class TileStore : public StoringWarp<TileSlots<Element, TileM, TileN, Scaled, Gated, Grouped, Quantised, Late>> {
  using Slots = TileSlots<Element, TileM, TileN, Scaled, Gated, Grouped, Quantised, Late>;
  using Slots::adds_to;
  using Slots::boxes_;
  using Slots::group_;
  using Slots::has_rows;
  using Slots::kBoxes;
  using Slots::kCols;
  using Slots::kIsFp8;
  using Slots::kKept;
  using Slots::kPairs;
  using Slots::kRows;
  using Slots::kSlots;
  using Slots::params_;
  using Slots::phase;
  using Slots::slot_address;
  using Slots::storage_;
  using typename Slots::Box;

 public:
  using Slots::kKeepsAddends;
  using Slots::kMostPending;
  using typename Slots::Params;
  using typename Slots::Scales;
  using typename Slots::Storage;
  using typename Slots::Table;

  /// For thread `thread` of one warpgroup, or for the warp that stores its tiles.
  __device__ TileStore(const Params& params, Storage& storage, int group, int thread)
      : StoringWarp<Slots>(params, storage, group), thread_(thread), scales_(storage.scales) {}

  /// Called before the steps of a tile.
  __device__ void begin(const WalkedTile& tile) {
    if (kKeepsAddends)
      awaited_ = __shfl_sync(~0U, adds_to(tile) && !tile.is_empty() && tile.others == 0 ? kBoxes : 0, 0);
  }
  /// Called after a step, with `left` steps to follow. It writes a box of the previous tile or, near the end, takes a
  /// box of the addend. That happens every other step, because there is room for two.
  __device__ void use_step(int left) {
    if (pending_ > 0) return write_next();
    if (kKeepsAddends && awaited_ > 0 && left <= 2 * awaited_ + 1) take_addend();
  }

  /// Writes the warpgroup's part of a tile; this thread has some of the sums. With `later` the last kMostPending boxes
  /// may be left to use_step, which is then called as often.
  template <class Tile, class Sums>
  __device__ void write(const Tile& tile, const Sums& sums, bool later) {
    if (!has_rows(tile)) return use_slot([](std::uint32_t) {});
    if constexpr (Quantised) return write_quantised(tile, sums);
    if constexpr (kMostPending == 0 && !Gated)
      if (is_plain()) return write_plain(sums);
    write_boxes(tile, sums, later);
  }

  /// Gives this thread's sums of a part of a tile to the block that completes the tile.
  template <class Sums>
  __device__ void give(const WalkedTile& tile, const Sums& sums) {
    use_slot([&](std::uint32_t) { params_.partial.give(tile.place, group_, thread_, sums); });
  }
  /// Takes other blocks' sums of a tile. The storing warp gives no room before they are there.
  template <class Sums>
  __device__ void add_others(const WalkedTile& tile, Sums& sums) {
    storage_.ready[group_][boxes_ % kSlots].wait(phase());
#pragma unroll 1
    for (int i = 0; i < tile.others; ++i) params_.partial.add(tile.place + i, group_, thread_, sums);
    if (kKeepsAddends) awaited_ = __shfl_sync(~0U, adds_to(tile) ? kBoxes : 0, 0);
  }

  /// Writes all deferred boxes.
  __device__ void write_pending() {
#pragma unroll 1
    while (pending_ > 0) write_next();
  }

  /// Loads the scales of all tiles, by one warp.
  __device__ void load_scales(const Table& table) {
    typename Scales::Loader loader(storage_.scales, params_.scales, params_.m, params_.n);
    for (TileWalk<Table> walk(table); !walk.is_over(); walk.advance()) {
      const auto tile = walk.tile();
      if (!tile.is_empty() && !tile.gives()) loader.load(tile, scales_of_group(tile));
    }
  }

 private:
  __device__ Activation activation_of(const WalkedTile& tile) const {
    const bool complete = params_.ring.arrived == nullptr || tile.chunk->owner == params_.ring.last_owner;
    return complete ? params_.activation : Activation::kNone;
  }
  /// Returns the first of this thread's two rows of a tile. The other one is the eighth below it.
  __device__ int first_row() const { return group_ * kRows + thread_ / 32 * 16 + thread_ % 32 / 4; }

  /// Waits for room, calls put(slot), which writes, and signals that the slot was written.
  template <class Put>
  __device__ void write_box(const Put& put) {
    use_slot([&](std::uint32_t slot) {
      put(slot);
      fence_shared_before_tma();
    });
  }
  /// Waits until the next slot is ready, and signals the end of use(slot).
  template <class Use>
  __device__ void use_slot(const Use& use) {
    const unsigned slot = boxes_ % kSlots;
    storage_.ready[group_][slot].wait(phase());
    use(slot_address(slot));
    __syncwarp();
    if (thread_ % 32 == 0) storage_.written[group_][slot].arrive();
    ++boxes_;
  }

  /// Writes one deferred box of the previous tile.
  __device__ void write_next() {
    write_box([&](std::uint32_t slot) { put_kept<0>(slot); });
    --pending_;
  }

  /// Takes one box of the addend and keeps it until the sums are complete.
  __device__ void take_addend() {
    use_slot([&](std::uint32_t slot) {
      take_kept<0>(slot);
      fence_shared_before_tma();  // the next box is loaded after this signal, not after these loads
    });
    --awaited_;
  }
  /// Takes the next box if it is `kPlace` or later.
  template <int kPlace>
  __device__ void take_kept(std::uint32_t slot) {
    if constexpr (kKeepsAddends && kPlace < kBoxes) {
      if (kPlace != kBoxes - awaited_) return take_kept<kPlace + 1>(slot);
      Box::take(slot, thread_, kept_[kPlace]);
    }
  }
  __device__ void add_kept(int place, float (&values)[kCols / 2]) const {
    if constexpr (kKeepsAddends && !Gated) {
#pragma unroll
      for (int j = 0; j < kPairs; ++j) {
        const Pair addend = unpacked<Element>(kept_[place][j]);
        values[j * 2] += addend.first;
        values[j * 2 + 1] += addend.second;
      }
    }
  }

  /// Waits for the addend of the box that is written next, and adds it.
  __device__ void add(float (&values)[kCols / 2]) {
    if constexpr (!kIsFp8 && !Gated) {
      const unsigned slot = boxes_ % kSlots;
      storage_.ready[group_][slot].wait(phase());
      Box::add(slot_address(slot), thread_, values);
    }
  }

  /// Returns the place of the first scale of the tile's B.
  template <class Tile>
  __device__ auto scales_of_group(const Tile& tile) const {
    if constexpr (Grouped)
      return tile.group * (params_.scales.b_per_column ? params_.n : 1);
    else
      return cute::_0{};
  }

  template <class Tile, class Sums>
  __device__ void write_boxes(const Tile& tile, const Sums& sums, bool later) {
    const Activation activation = activation_of(tile);
    const bool adds = adds_to(tile);
    const bool adds_to_rounded = adds && !kKeepsAddends;
    const bool adds_before = adds_to_rounded && activation != Activation::kNone;  // activations need the complete sum
    if constexpr (kMostPending == kBoxes && !Gated) {
      if (later && !adds && activation == Activation::kNone && (!Scaled || params_.scales.c == nullptr)) {
        if (params_.bias == nullptr) return keep_all<false>(tile, sums);
        return keep_all<true>(tile, sums);
      }
    }
    while (awaited_ > 0) take_addend();
    const auto of_rows = scales_.begin(first_row());
#pragma unroll
    for (int i = 0; i < kBoxes; ++i) {
      float values[kCols / 2];
#pragma unroll
      for (int j = 0; j < kCols / 2; ++j) values[j] = sums(i * (kCols / 2) + j);
      scales_.scale(values, of_rows, i * kCols, thread_);
      add_bias(values, params_.bias, tile.column * TileN + i * kCols, params_.n, thread_);
      if constexpr (Gated) {  // no sum is partial
        write_gated(i, values, later);
      } else {
        if (adds && kKeepsAddends) add_kept(i, values);
        if (adds_before) add(values);
        activate(activation, values);
        if (Scaled && params_.scales.c != nullptr) scale_all(values, __ldg(params_.scales.c));
        // The addend is added before the sums are rounded.
        if (i >= kBoxes - kMostPending && later && !adds_to_rounded)
          keep(i - (kBoxes - kMostPending), values);
        else
          write_box([&](std::uint32_t slot) { Box::put(slot, thread_, values, adds_to_rounded && !adds_before); });
      }
    }
    scales_.end();
    // The value comes from one lane, so that the compiler sees that a warp's threads agree. Otherwise it would take the
    // tensor cores' descriptors from registers of threads.
    if (kMostPending > 0) pending_ = __shfl_sync(~0U, later && !adds_to_rounded ? kMostPending : 0, 0);
  }

  /// Returns whether sums have scales of rows and columns at most before they are stored.
  __device__ bool is_plain() const {
    return params_.ring.arrived == nullptr && params_.activation == Activation::kNone && params_.bias == nullptr &&
           params_.scales.c == nullptr;
  }
  /// Writes a plain tile. As in keep_all, the code is short and in one piece.
  template <class Sums>
  __device__ void write_plain(const Sums& sums) {
    const auto of_rows = scales_.begin(first_row());
#pragma unroll
    for (int i = 0; i < kBoxes; ++i) {
      float values[kCols / 2];
#pragma unroll
      for (int j = 0; j < kCols / 2; ++j) values[j] = sums(i * (kCols / 2) + j);
      scales_.scale(values, of_rows, i * kCols, thread_);
      write_box([&](std::uint32_t slot) { Box::put(slot, thread_, values, false); });
    }
    scales_.end();
  }

  /// Keeps all boxes of a tile whose sums have scales and a bias at most. It is the usual end of a tile, so its code is
  /// short and in one piece. Jumps over code that is seldom used cost a few percent of a tile's time.
  template <bool HasBias, class Tile, class Sums>
  __device__ void keep_all(const Tile& tile, const Sums& sums) {
    const auto of_rows = scales_.begin(first_row());
#pragma unroll
    for (int i = 0; i < kBoxes; ++i) {
      float values[kCols / 2];
#pragma unroll
      for (int j = 0; j < kCols / 2; ++j) values[j] = sums(i * (kCols / 2) + j);
      scales_.scale(values, of_rows, i * kCols, thread_);
      if (HasBias) add_bias(values, params_.bias, tile.column * TileN + i * kCols, params_.n, thread_);
      keep(i, values);
    }
    scales_.end();
    pending_ = kBoxes;
  }

  /// Writes the tile's columns of C, which share a scale, after they are all known.
  template <class Tile, class Sums>
  __device__ void write_quantised(const Tile& tile, const Sums& sums) {
    const auto of_rows = scales_.begin(first_row());
    QuantisedRows<kBoxes, kKept> rows;
#pragma unroll
    for (int i = 0; i < kBoxes; ++i) {
      float values[kCols / 2];
#pragma unroll
      for (int j = 0; j < kCols / 2; ++j) values[j] = sums(i * (kCols / 2) + j);
      scales_.scale(values, of_rows, i * kCols, thread_);
      gate(params_.activation, values, rows.values[i]);
    }
    scales_.end();
    const int columns = params_.n / 2;
    rows.quantise(tile.column * (TileN / 2), columns, thread_);
    const int blocks = static_cast<int>(scale_blocks(columns));
    rows.store_scales(params_.scales.out, tile.row + first_row(), params_.m, tile.column, blocks, thread_);
#pragma unroll
    for (int i = 0; i < kBoxes; ++i)
      write_box([&](std::uint32_t slot) { Box::put(slot, thread_, rows.values[i], false); });
  }

  /// Writes or keeps a box of gated columns.
  __device__ void write_gated(int box, const float (&sums)[kCols / 2], bool later) {
    float values[kKept / 2];
    gate(params_.activation, sums, values);
    if (Scaled && params_.scales.c != nullptr) scale_all(values, __ldg(params_.scales.c));
    if (box >= kBoxes - kMostPending && later)
      keep(box - (kBoxes - kMostPending), values);
    else
      write_box([&](std::uint32_t slot) { Box::put(slot, thread_, values, false); });
  }

  __device__ void keep(int place, const float (&values)[kKept / 2]) {
    if constexpr (kMostPending > 0) {
#pragma unroll
      for (int j = 0; j < kPairs; ++j) kept_[place][j] = packed<Element>(values[j * 2], values[j * 2 + 1]);
    }
  }
  /// Takes the next box if it is `kPlace` or later. This is not a loop, because registers have no index.
  template <int kPlace>
  __device__ void put_kept(std::uint32_t slot) const {
    if constexpr (kPlace < kMostPending) {
      if (kPlace == kMostPending - pending_)
        Box::put_pairs(slot, thread_, kept_[kPlace]);
      else
        put_kept<kPlace + 1>(slot);
    }
  }

  const int thread_;
  int pending_ = 0;  // boxes of the previous tile in kept_
  int awaited_ = 0;  // boxes of this tile's addend that are not here yet
  std::uint32_t kept_[kMostPending > 0 ? kMostPending : 1][kPairs];
  typename Scales::Reader scales_;
};

}  // namespace tandem::cuda
