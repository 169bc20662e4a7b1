#pragma once
/// The warp that stores a warpgroup's tiles from shared memory, signals room, and sends notifications.

#include "gemm/hopper/gemm_profiler.cuh"
#include "gemm/hopper/store/tile_slots.cuh"

namespace tandem::cuda {

/// Slots is a TileSlots. In a ring the warp also loads the addend of a tile's sums.
template <class Slots>
class StoringWarp : public Slots {
 public:
  using typename Slots::Params;
  using typename Slots::Storage;
  using typename Slots::Table;

  /// Runs the storing warp's part by one thread, tile by tile.
  __device__ void store(const Table& table, int tile_m, const GemmProfiler& profiler) {
    const int role = 2 + group_;
    for (TileWalk<Table> walk(table); !walk.is_over(); walk.advance()) {
      const auto tile = walk.tile();
      if (tile.is_empty()) continue;
      if (tile.gives()) {
        signal_partial_sums(tile);
        continue;
      }
      if (!has_rows(tile)) {
        pass_slot();
        notify(tile, profiler, role);
        continue;
      }
      for (int i = 0; i < tile.others; ++i) params_.partial.await(tile.place + i, group_, params_.context);
      if (adds_to(tile)) await_addend(tile, table, tile_m, profiler, role);
      if (kKeepsAddends && adds_to(tile)) bring_addends(tile);
      make_ready(tile, 0, boxes_);
      make_ready(tile, 1, boxes_ + 1);
      std::uint64_t begin = 0;
      for (int i = 0; i < kBoxes; ++i, ++boxes_) {
        const unsigned slot = boxes_ % kSlots;
        storage_.written[group_][slot].wait(phase());
        if (i == 0) begin = profiler.now();
        if (tile.chunk->owner == params_.ring.copied_owner)
          store_box_with_next(&params_.own_copy, slot_address(slot), col_of(tile, i), row_of(tile));
        for (int copy = 0; copy < params_.copies; ++copy)
          store_box(&params_.c[tile.chunk->owner + copy], slot_address(slot), col_of(tile, i), row_of(tile));
        if (i == 0 || i + 1 == kBoxes) continue;
        wait_for_reads<1>();  // the previous box has had time
        make_ready(tile, i + 1, boxes_ + 1);
      }
      // The end of the kernel awaits the stores, too.
      if (params_.word[tile.number] == nullptr)
        wait_for_reads<0>();
      else
        wait_for_stores();
      profiler.add(role, {RecordKind::kStore, params_.to[tile.chunk->owner], Size{kBoxes} * kSlotBytes}, begin);
      notify(tile, profiler, role);
    }
  }

 protected:
  __device__ StoringWarp(const Params& params, Storage& storage, int group) : Slots(params, storage, group) {}
  using Slots::adds_to;
  using Slots::boxes_;
  using Slots::col_of;
  using Slots::group_;
  using Slots::has_rows;
  using Slots::kBoxes;
  using Slots::kKeepsAddends;
  using Slots::kLead;
  using Slots::kSlotBytes;
  using Slots::kSlots;
  using Slots::params_;
  using Slots::phase;
  using Slots::row_of;
  using Slots::slot_address;
  using Slots::storage_;

 private:
  /// Lets the warpgroup write box `box` of the tile, the `number`-th of all: the previous contents of its slot were
  /// read.
  __device__ void make_ready(const WalkedTile& tile, int box, unsigned number) {
    if (adds_to(tile) && !kKeepsAddends) return load_addend(tile, box, number);
    storage_.ready[group_][number % kSlots].arrive();
  }
  /// Waits until the warpgroup has used the next slot, of which nothing is stored.
  __device__ void pass_slot() {
    storage_.ready[group_][boxes_ % kSlots].arrive();
    storage_.written[group_][boxes_ % kSlots].wait(phase());
    ++boxes_;
  }
  /// The warpgroup computes its next part meanwhile.
  __device__ void signal_partial_sums(const WalkedTile& tile) {
    pass_slot();
    params_.partial.signal(tile.place, group_);
  }
  /// Hands the addend to the warpgroup, box by box as it takes them.
  __device__ void bring_addends(const WalkedTile& tile) {
    for (int i = 0; i < kSlots; ++i) load_addend(tile, i, boxes_ + i);
    for (int i = 0; i < kBoxes; ++i, ++boxes_) {
      storage_.written[group_][boxes_ % kSlots].wait(phase());
      if (i + kSlots < kBoxes) load_addend(tile, i + kSlots, boxes_ + kSlots);
    }
  }
  __device__ void load_addend(const WalkedTile& tile, int box, unsigned number) {
    const unsigned slot = number % kSlots;
    auto& ready = storage_.ready[group_][slot];
    ready.arrive_and_expect_tx(kSlotBytes);
    load_box(&params_.received[tile.chunk->owner], slot_address(slot), col_of(tile, box), row_of(tile), &ready);
  }

  __device__ void await_addend(const WalkedTile& tile, const TileTable& table, int tile_m, const GemmProfiler& profiler,
                               int role) const {
    const TableChunk& chunk = *tile.chunk;
    const Epoch tiles = static_cast<Epoch>((chunk.end - chunk.begin + tile_m - 1) / tile_m * table.columns);
    const Signal* const word = params_.ring.arrived + chunk.slot;
    const Epoch expected = load_relaxed(params_.ring.epoch) * tiles;
    const std::uint64_t begin = profiler.now();
    wait_before_tma(params_.context, word, expected);
    profiler.add(role, {RecordKind::kWait, word, expected, static_cast<unsigned>(Cmp::kGe), 1}, begin);
  }

  /// Called when the tile's stores of this warp are done. The later of the two warps sends the notification.
  __device__ void notify(const WalkedTile& tile, const GemmProfiler& profiler, int role) {
    Signal* const word = params_.word[tile.number];
    if (word == nullptr) return;
    const std::uint64_t begin = profiler.now();
    if (!is_second_to_store(storage_.stored[signals_sent_++ % kLead])) return;
    for (int copy = 0; copy < params_.copies; ++copy) add_release(&params_.word[tile.number + copy]->value, 1);
    profiler.add(role, {RecordKind::kSignal, word, 1, static_cast<unsigned>(SignalOp::kAdd), 1}, begin);
  }

  unsigned signals_sent_ = 0;
};

}  // namespace tandem::cuda
