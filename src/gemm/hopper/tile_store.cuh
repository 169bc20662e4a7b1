#pragma once
/// How a tile leaves a block. Each of the two warpgroups that compute writes its 64 rows to shared memory, 64 columns
/// at a time, and a warp of its own stores them, says when there is room again, and sends the notification. So a
/// warpgroup waits for nothing but room: not for the other one, and not for its stores. Nor for room, where it keeps
/// the rounded sums and writes them while the tensor cores compute its next tile.
///
/// In a chain the storing warp first brings what the tile's sums are added to. Where there are registers for all of a
/// tile, the warpgroup takes it from there near the end of the tile's own computation; else it stays in the room until
/// the sums come.

#include <cutlass/arch/barrier.h>

#include "gemm/hopper/gemm_recorder.cuh"
#include "gemm/hopper/tile_box.cuh"
#include "gemm/hopper/tile_finish.cuh"
#include "gemm/hopper/tile_store_params.cuh"
#include "gemm/hopper/tma.cuh"

namespace tandem::cuda {

/// Element: of C, 16 bits or fp8. Scaled: the sums have scales.
template <class Element, int TileM, int TileN, bool Scaled>
class TileStore {
  static constexpr bool kIsFp8 = sizeof(Element) == 1;
  using Bias = std::conditional_t<kIsFp8, cutlass::bfloat16_t, Element>;
  static constexpr int kGroup = 128;  // threads
  static constexpr int kGroups = 2;
  static constexpr int kRows = TileM / kGroups;
  static constexpr int kCols = TileN % 64 == 0 ? 64 : 32;  // of a box
  static constexpr int kBoxes = TileN / kCols;
  static constexpr int kSlots = 2;
  static constexpr int kSlotBytes = kRows * kCols * static_cast<int>(sizeof(Element));
  static constexpr int kLead = 8;  // tiles that a warpgroup may be ahead: not less than the mainloop has stages
  static_assert(kRows == 64 && sizeof(Element) <= 2 && TileN % kCols == 0 && kBoxes >= kSlots);
  using Box = TileBox<Element, kCols>;
  static constexpr int kPairs = Box::kPairs;
  // Of a thread's 232 registers the next tile's sums take TileN / 2, and addresses and the like about 40.
  static constexpr int kFitting = cute::min(kBoxes, cute::max(0, 192 - TileN / 2) / kPairs);

 public:
  /// Boxes that may be written while the next tile is computed, one each step; for the others there is room, or else
  /// none is left for later.
  static constexpr int kMostPending = Scaled || kIsFp8 || kBoxes - kFitting > kSlots ? 0 : kFitting;
  /// Whether registers hold what is added, too: no tile has both at once, what is added and what is left for later.
  static constexpr bool kKeepsAddends = kMostPending == kBoxes;
  static constexpr int kSlices = 1;  ///< of the depth: a block computes all of it
  /// Where tiles are written late, others may compute a part of the depth.
  using Table = std::conditional_t<(kMostPending > 0), SharedTileTable, TileTable>;
  struct alignas(1024) Storage {
    std::byte slots[kGroups][kSlots][kSlotBytes];
    cutlass::arch::ClusterTransactionBarrier ready[kGroups]
                                                  [kSlots];  ///< there is room, with the addend if there is one
    cutlass::arch::ClusterBarrier written[kGroups][kSlots];
    unsigned stored[kLead];  ///< by how many warps each tile of the last ones was stored, over all tiles at its place
  };

  using Params = TileStoreParams<Bias>;
  using Finish = TileFinish<Bias, kCols, Scaled>;
  static Params params(const Gemm& gemm, const TileTable& table, const Context& context) {
    return tile_store_params<Bias>(gemm, table, context, kRows, kCols);
  }

  __device__ static void prefetch(const Params& params, const TileTable& table) {
    prefetch_tensor_map(&params.c[table.pieces[0].owner]);
  }

  /// By one thread, before a barrier of the block.
  __device__ static void prepare(Storage& storage) {
    for (int group = 0; group < kGroups; ++group)
      for (int slot = 0; slot < kSlots; ++slot) {
        storage.ready[group][slot].init(1);
        storage.written[group][slot].init(kGroup / 32);
      }
    for (unsigned& stored : storage.stored) stored = 0;
    cutlass::arch::fence_barrier_init();
  }

  /// For thread `thread` of one warpgroup, or for the warp that stores for it.
  __device__ TileStore(const Params& params, Storage& storage, int group, int thread)
      : params_(params), storage_(storage), group_(group), thread_(thread) {}

  /// Before the steps of a tile.
  __device__ void begin(const WalkedTile& tile) {
    if (kKeepsAddends)
      awaited_ = __shfl_sync(~0U, adds_to(tile) && !tile.is_empty() && tile.others == 0 ? kBoxes : 0, 0);
  }
  /// After a step, which `left` steps follow: writes a box of the tile before or, near the end, takes one of what is
  /// added. Every other step: the room for two has to do.
  __device__ void use_step(int left) {
    if (pending_ > 0) return write_next();
    if (kKeepsAddends && awaited_ > 0 && left <= 2 * awaited_ + 1) take_addend();
  }

  /// The warpgroup's part of a tile: its sums, of which this thread has some. `later`: the last kMostPending boxes may
  /// be left to use_step, which is then called as often.
  template <class Sums>
  __device__ void write(const WalkedTile& tile, const Sums& sums, bool later) {
    const Activation activation = activation_of(tile);
    const bool adds = adds_to(tile);
    const bool adds_to_rounded = adds && !kKeepsAddends;
    const bool adds_before = adds_to_rounded && activation != Activation::kNone;  // which is of the complete sum
    while (awaited_ > 0) take_addend();
    const Finish finish(params_, thread_);
    const auto of_rows = finish.row_scales(tile.row + group_ * kRows + thread_ / 32 * 16 + thread_ % 32 / 4);
#pragma unroll
    for (int i = 0; i < kBoxes; ++i) {
      float values[kCols / 2];
#pragma unroll
      for (int j = 0; j < kCols / 2; ++j) values[j] = sums(i * (kCols / 2) + j);
      if constexpr (Scaled) finish.scale(values, of_rows, tile.column * TileN + i * kCols);
      finish.add_bias(values, tile.column * TileN + i * kCols);
      if (adds && kKeepsAddends) add_kept(i, values);
      if (adds_before) add(values);
      activate(activation, values);
      if (Scaled && params_.scales.c != nullptr) Finish::scale_all(values, __ldg(params_.scales.c));
      // What is added to sums comes before they are rounded.
      if (i >= kBoxes - kMostPending && later && !adds_to_rounded)
        keep(i - (kBoxes - kMostPending), values);
      else
        write_box([&](std::uint32_t slot) { Box::put(slot, thread_, values, adds_to_rounded && !adds_before); });
    }
    // From one lane, so that the compiler sees that a warp's threads agree: else it takes the tensor cores' descriptors
    // from registers of threads.
    if (kMostPending > 0) pending_ = __shfl_sync(~0U, later && !adds_to_rounded ? kMostPending : 0, 0);
  }

  /// A part of a tile that another block finishes: this thread's sums go there.
  template <class Sums>
  __device__ void give(const WalkedTile& tile, const Sums& sums) {
    use_slot([&](std::uint32_t) { params_.partial.give(tile.place, group_, thread_, sums); });
  }
  /// What other blocks have computed of a tile. The storing warp makes no room before it is there.
  template <class Sums>
  __device__ void add_others(const WalkedTile& tile, Sums& sums) {
    storage_.ready[group_][boxes_ % kSlots].wait(phase());
#pragma unroll 1
    for (int i = 0; i < tile.others; ++i) params_.partial.add(tile.place + i, group_, thread_, sums);
    if (kKeepsAddends) awaited_ = __shfl_sync(~0U, adds_to(tile) ? kBoxes : 0, 0);
  }

  /// All of what is left for later.
  __device__ void write_pending() {
#pragma unroll 1
    while (pending_ > 0) write_next();
  }

  /// The storing warp's part, by one thread: tile by tile.
  __device__ void store(const Table& table, int tile_m, const GemmRecorder& recorder) {
    const int role = 2 + group_;
    for (TileWalk<Table> walk(table); !walk.is_over(); walk.advance()) {
      const WalkedTile tile = walk.tile();
      if (tile.is_empty()) continue;
      if (tile.gives()) {
        tell_given(tile);
        continue;
      }
      for (int i = 0; i < tile.others; ++i) params_.partial.await(tile.place + i, group_, params_.context);
      if (adds_to(tile)) await_addend(tile, table, tile_m, recorder, role);
      if (kKeepsAddends && adds_to(tile)) bring_addends(tile);
      make_ready(tile, 0, boxes_);
      make_ready(tile, 1, boxes_ + 1);
      std::uint64_t begin = 0;
      for (int i = 0; i < kBoxes; ++i, ++boxes_) {
        const unsigned slot = boxes_ % kSlots;
        storage_.written[group_][slot].wait(phase());
        if (i == 0) begin = recorder.now();
        if (tile.piece->owner == params_.chain.copied_owner)
          store_box_with_next(&params_.own_copy, slot_address(slot), col_of(tile, i), row_of(tile));
        for (int copy = 0; copy < params_.copies; ++copy)
          store_box(&params_.c[tile.piece->owner + copy], slot_address(slot), col_of(tile, i), row_of(tile));
        if (i == 0 || i + 1 == kBoxes) continue;
        wait_for_reads<1>();  // of the box before, which has had time
        make_ready(tile, i + 1, boxes_ + 1);
      }
      wait_for_stores();
      recorder.add(role,
                   {RecordKind::kStore, params_.to[tile.piece->owner], Size{kRows} * TileN * Size{sizeof(Element)}},
                   begin);
      notify(tile, recorder, role);
    }
  }

 private:
  // Boxes go through the slots in turn; each barrier changes its phase once for each box of its slot.
  __device__ std::uint32_t phase() const { return boxes_ / kSlots % 2; }
  __device__ std::uint32_t slot_address(unsigned slot) const { return shared_address(storage_.slots[group_][slot]); }
  __device__ bool adds_to(const WalkedTile& tile) const {
    return params_.chain.arrived != nullptr && tile.piece->owner != params_.chain.first_owner;
  }
  __device__ Activation activation_of(const WalkedTile& tile) const {
    const bool complete = params_.chain.arrived == nullptr || tile.piece->owner == params_.chain.last_owner;
    return complete ? params_.activation : Activation::kNone;
  }
  __device__ int row_of(const WalkedTile& tile) const {
    return tile.row - params_.shard_begin[tile.piece->owner] + group_ * kRows;
  }
  __device__ static int col_of(const WalkedTile& tile, int box) { return tile.column * TileN + box * kCols; }

  /// Waits for room and says that it was written; put(slot) writes.
  template <class Put>
  __device__ void write_box(const Put& put) {
    use_slot([&](std::uint32_t slot) {
      put(slot);
      fence_shared_before_tma();
    });
  }
  /// Waits until the slot whose turn it is is ready, and says that use(slot) is over.
  template <class Use>
  __device__ void use_slot(const Use& use) {
    const unsigned slot = boxes_ % kSlots;
    storage_.ready[group_][slot].wait(phase());
    use(slot_address(slot));
    __syncwarp();
    if (thread_ % 32 == 0) storage_.written[group_][slot].arrive();
    ++boxes_;
  }

  /// One box of the tile before.
  __device__ void write_next() {
    write_box([&](std::uint32_t slot) { put_kept<0>(slot); });
    --pending_;
  }

  /// One box of what is added to the sums, to be kept until they are complete.
  __device__ void take_addend() {
    use_slot([&](std::uint32_t slot) {
      take_kept<0>(slot);
      fence_shared_before_tma();  // it brings the next box when told, not when these loads are done
    });
    --awaited_;
  }
  /// The box that is next, if it is `kPlace` or behind it.
  template <int kPlace>
  __device__ void take_kept(std::uint32_t slot) {
    if constexpr (kKeepsAddends && kPlace < kBoxes) {
      if (kPlace != kBoxes - awaited_) return take_kept<kPlace + 1>(slot);
      Box::take(slot, thread_, kept_[kPlace]);
    }
  }
  __device__ void add_kept(int place, float (&values)[kCols / 2]) const {
    if constexpr (kKeepsAddends) {
#pragma unroll
      for (int j = 0; j < kPairs; ++j) {
        const Pair addend = unpacked<Element>(kept_[place][j]);
        values[j * 2] += addend.first;
        values[j * 2 + 1] += addend.second;
      }
    }
  }

  /// Waits for what is added to the box that is written next, and adds it.
  __device__ void add(float (&values)[kCols / 2]) {
    if constexpr (!kIsFp8) {
      const unsigned slot = boxes_ % kSlots;
      storage_.ready[group_][slot].wait(phase());
      Box::add(slot_address(slot), thread_, values);
    }
  }

  __device__ void keep(int place, const float (&values)[kCols / 2]) {
    if constexpr (kMostPending > 0) {
#pragma unroll
      for (int j = 0; j < kPairs; ++j) kept_[place][j] = packed<Element>(values[j * 2], values[j * 2 + 1]);
    }
  }
  /// The box that is next, if it is `kPlace` or behind it. Not a loop: registers have no index.
  template <int kPlace>
  __device__ void put_kept(std::uint32_t slot) const {
    if constexpr (kPlace < kMostPending) {
      if (kPlace == kMostPending - pending_)
        Box::put_pairs(slot, thread_, kept_[kPlace]);
      else
        put_kept<kPlace + 1>(slot);
    }
  }
  /// Lets the warpgroup write box `box` of the tile, the `number`-th of all: its slot's last one was read.
  __device__ void make_ready(const WalkedTile& tile, int box, unsigned number) {
    if (adds_to(tile) && !kKeepsAddends) return load_addend(tile, box, number);
    storage_.ready[group_][number % kSlots].arrive();
  }
  /// The warpgroup computes its next part meanwhile.
  __device__ void tell_given(const WalkedTile& tile) {
    storage_.ready[group_][boxes_ % kSlots].arrive();
    storage_.written[group_][boxes_ % kSlots].wait(phase());
    ++boxes_;
    params_.partial.tell(tile.place, group_);
  }
  /// Hands the warpgroup what is added, box by box as it takes them.
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
    load_box(&params_.begun[tile.piece->owner], slot_address(slot), col_of(tile, box), row_of(tile), &ready);
  }

  __device__ void await_addend(const WalkedTile& tile, const TileTable& table, int tile_m, const GemmRecorder& recorder,
                               int role) const {
    const TablePiece& piece = *tile.piece;
    const Epoch tiles = static_cast<Epoch>((piece.end - piece.begin + tile_m - 1) / tile_m * table.columns);
    const Signal* const word = params_.chain.arrived + piece.slot;
    const Epoch expected = load_relaxed(params_.chain.epoch) * tiles;
    const std::uint64_t begin = recorder.now();
    wait_before_tma(params_.context, word, expected);
    recorder.add(role, {RecordKind::kWait, word, expected, static_cast<unsigned>(Cmp::kGe), 1}, begin);
  }

  /// The tile's stores of this warp are done. Whichever warp is the later one tells.
  __device__ void notify(const WalkedTile& tile, const GemmRecorder& recorder, int role) {
    Signal* const word = params_.word[tile.number];
    if (word == nullptr) return;
    const std::uint64_t begin = recorder.now();
    fence_proxy_async();
    unsigned before = 0;
    asm volatile("atom.acq_rel.cta.shared::cta.add.u32 %0, [%1], 1;"
                 : "=r"(before)
                 : "r"(shared_address(&storage_.stored[told_++ % kLead]))
                 : "memory");
    if (before % 2 == 0) return;
    for (int copy = 0; copy < params_.copies; ++copy) add_release(&params_.word[tile.number + copy]->value, 1);
    recorder.add(role, {RecordKind::kSignal, word, 1, static_cast<unsigned>(SignalOp::kAdd), 1}, begin);
  }

  const Params& params_;
  Storage& storage_;
  const int group_;
  const int thread_;
  unsigned boxes_ = 0;
  unsigned told_ = 0;
  int pending_ = 0;  // boxes of the tile before in kept_
  int awaited_ = 0;  // boxes of what is added to this one that are not there yet
  std::uint32_t kept_[kMostPending > 0 ? kMostPending : 1][kPairs];
};

}  // namespace tandem::cuda
