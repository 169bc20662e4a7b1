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

#include "gemm/cuda/device_wait.cuh"
#include "gemm/cuda/finish.cuh"
#include "gemm/cuda/gemm_recorder.cuh"
#include "gemm/cuda/gemm_targets.h"
#include "gemm/cuda/tensor_map.h"
#include "gemm/cuda/tile_walk.cuh"
#include "gemm/cuda/tma.cuh"

namespace tandem::cuda {

/// What the chain brings, as the kernel reads it.
struct DeviceChain {
  const Signal* arrived = nullptr;  ///< [slot]; null: no chain
  const Epoch* epoch = nullptr;
  int first_owner = -1;   ///< whose sums begin here: nothing is added to them
  int copied_owner = -1;  ///< whose rows are stored twice
  int last_owner = -1;    ///< whose sums end here: they are activated
  Context context;
};

/// Element: of C, 16 bits or fp8. Scaled: the sums have scales.
template <class Element, int TileM, int TileN, bool Scaled>
class TileStore {
  static constexpr bool kIsFp8 = sizeof(Element) == 1;
  using Bias = std::conditional_t<kIsFp8, cutlass::bfloat16_t, Element>;
  static constexpr int kGroup = 128;  // threads
  static constexpr int kGroups = 2;
  static constexpr int kRows = TileM / kGroups;
  static constexpr int kCols = TileN % 64 == 0 ? 64 : 32;                         // of a box
  static constexpr int kPieces = kCols * static_cast<int>(sizeof(Element)) / 16;  // of 16 bytes, in a row of a box
  static constexpr int kBoxes = TileN / kCols;
  static constexpr int kSlots = 2;
  static constexpr int kSlotBytes = kRows * kCols * static_cast<int>(sizeof(Element));
  static constexpr int kLead = 8;  // tiles that a warpgroup may be ahead: not less than the mainloop has stages
  static_assert(kRows == 64 && sizeof(Element) <= 2 && TileN % kCols == 0 && kBoxes >= kSlots);
  static constexpr int kPairs = kCols / 4;  // of sums that a thread has in a box, each a register
  // Of a thread's 232 registers the next tile's sums take TileN / 2, and addresses and the like about 40.
  static constexpr int kFitting = cute::min(kBoxes, cute::max(0, 192 - TileN / 2) / kPairs);

 public:
  /// Boxes that may be written while the next tile is computed, one each step; for the others there is room, or else
  /// none is left for later.
  static constexpr int kMostPending = Scaled || kIsFp8 || kBoxes - kFitting > kSlots ? 0 : kFitting;
  /// Whether registers hold what is added, too: no tile has both at once, what is added and what is left for later.
  static constexpr bool kKeepsAddends = kMostPending == kBoxes;
  static constexpr int kSlices = 1;  ///< of the depth: a block computes all of it
  struct alignas(1024) Storage {
    std::byte slots[kGroups][kSlots][kSlotBytes];
    cutlass::arch::ClusterTransactionBarrier ready[kGroups]
                                                  [kSlots];  ///< there is room, with the addend if there is one
    cutlass::arch::ClusterBarrier written[kGroups][kSlots];
    unsigned stored[kLead];  ///< by how many warps each tile of the last ones was stored, over all tiles at its place
  };

  struct Params {
    CUtensorMap c[kMostShards];      ///< by owner: its rows, which clip its last tiles; or by copy: all rows
    CUtensorMap begun[kMostShards];  ///< likewise, what the chain brings
    CUtensorMap own_copy;            ///< of the own rows
    std::byte* to[kMostShards];      ///< what `c` is of
    int shard_begin[kMostShards];
    Signal* word[kMostPieces];  ///< by the piece's place in the table, or by copy; null: nobody is told
    int copies;                 ///< of each tile: 1, or with Gemm::c_at_all one for each PE of the node
    DeviceChain chain;
    const Bias* bias;
    int m, n;
    Activation activation;
    GemmScales scales;
  };

  static Params params(const Gemm& gemm, const TileTable& table, const Context& context) {
    Params params{};
    params.bias = static_cast<const Bias*>(gemm.bias);
    params.m = static_cast<int>(gemm.m);
    params.n = static_cast<int>(gemm.n);
    params.activation = gemm.activation;
    params.scales = gemm.scales;
    params.copies = 1;
    if (gemm.c_at_all) {
      set_copies(params, gemm);
      return params;
    }
    const TileSequence sequence(gemm);
    for (int owner = 0; owner < sequence.owners(); ++owner) {
      const Range rows = sequence.rows_of_owner(owner);
      params.shard_begin[owner] = static_cast<int>(rows.begin);
      if (rows.empty()) continue;
      const auto map = [&](const std::byte* data) {
        return tensor_map(data, gemm.out_type, rows.size(), gemm.n, kRows, kCols);
      };
      params.to[owner] = destination_of(gemm, owner, rows.begin);
      params.c[owner] = map(params.to[owner]);
      if (owner == gemm.me && gemm.chain.own_copy != nullptr) {
        params.own_copy = map(gemm.chain.own_copy);
        params.chain.copied_owner = owner;
      }
      if (gemm.chain_adds_to(owner))
        params.begun[owner] = map(gemm.chain.begun + owner * gemm.rows.shard_rows() * gemm.n * size_of(gemm.out_type));
    }
    for (int i = 0; i < table.count; ++i) params.word[i] = notified_by(gemm, table.pieces[i]);
    if (gemm.chain.begun == nullptr) return params;
    params.chain.arrived = gemm.chain.arrived;
    params.chain.epoch = gemm.chain.epoch;
    params.chain.first_owner = (gemm.me + 1) % gemm.rows.shards;
    params.chain.last_owner = gemm.me;
    params.chain.context = context;
    return params;
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
    if (kKeepsAddends) awaited_ = __shfl_sync(~0U, adds_to(tile) && !tile.is_empty() ? kBoxes : 0, 0);
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
    const RowScales of_rows = row_scales(tile.row + group_ * kRows + thread_ / 32 * 16 + thread_ % 32 / 4);
#pragma unroll
    for (int i = 0; i < kBoxes; ++i) {
      float values[kCols / 2];
#pragma unroll
      for (int j = 0; j < kCols / 2; ++j) values[j] = sums(i * (kCols / 2) + j);
      if constexpr (Scaled) scale(values, of_rows, tile.column * TileN + i * kCols);
      add_bias(values, tile.column * TileN + i * kCols);
      if (adds && kKeepsAddends) add_kept(i, values);
      if (adds_before) add(values);
      activate(activation, values);
      if (Scaled && params_.scales.c != nullptr) scale_all(values, __ldg(params_.scales.c));
      // What is added to sums comes before they are rounded.
      if (i >= kBoxes - kMostPending && later && !adds_to_rounded)
        keep(i - (kBoxes - kMostPending), values);
      else
        write_box([&](std::uint32_t slot) { put(slot, values, adds_to_rounded && !adds_before); });
    }
    // From one lane, so that the compiler sees that a warp's threads agree: else it takes the tensor cores' descriptors
    // from registers of threads.
    if (kMostPending > 0) pending_ = __shfl_sync(~0U, later && !adds_to_rounded ? kMostPending : 0, 0);
  }

  /// All of what is left for later.
  __device__ void write_pending() {
#pragma unroll 1
    while (pending_ > 0) write_next();
  }

  /// The storing warp's part, by one thread: tile by tile.
  __device__ void store(const TileTable& table, int tile_m, const GemmRecorder& recorder) {
    const int role = 2 + group_;
    for (TileWalk walk(table); !walk.is_over(); walk.advance()) {
      const WalkedTile tile = walk.tile();
      if (tile.is_empty()) continue;
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
  /// One block of rows, all of one owner.
  static void set_copies(Params& params, const Gemm& gemm) {
    params.copies = gemm.node_size;
    for (int i = 0; i < gemm.node_size; ++i) {
      const CopyOfTiles copy = copy_of_tiles(gemm, i);
      params.to[i] = copy.to;
      params.c[i] = tensor_map(copy.to, gemm.out_type, gemm.m, gemm.n, kRows, kCols);
      params.word[i] = copy.word;
    }
  }

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

  // A thread's sums of 64 columns, as wgmma leaves them ("Register Fragments" of wgmma.mma_async in the PTX ISA): of
  // each 8 columns two neighbours of one row and two of the eighth row below it.

  /// Of this thread's two rows.
  struct RowScales {
    float first = 1, second = 1;
  };
  __device__ RowScales row_scales(int row) const {
    if (!Scaled || params_.scales.a == nullptr) return {};
    const auto of_row = [&](int r) {
      return __ldg(params_.scales.a + (params_.scales.a_per_row ? min(r, params_.m - 1) : 0));
    };
    return {of_row(row), of_row(row + 8)};
  }
  __device__ void scale(float (&values)[kCols / 2], const RowScales& of_rows, int first_col) const {
    const auto of_col = [&](int col) {
      if (params_.scales.b == nullptr) return 1.0F;
      return __ldg(params_.scales.b + (params_.scales.b_per_column ? min(col, params_.n - 1) : 0));
    };
#pragma unroll
    for (int j = 0; j < kCols / 8; ++j) {
      const int col = first_col + j * 8 + thread_ % 4 * 2;
      const float first = of_col(col);
      const float second = of_col(col + 1);
      values[j * 4] *= of_rows.first * first;
      values[j * 4 + 1] *= of_rows.first * second;
      values[j * 4 + 2] *= of_rows.second * first;
      values[j * 4 + 3] *= of_rows.second * second;
    }
  }

  __device__ void add_bias(float (&values)[kCols / 2], int first_col) const {
    if (params_.bias == nullptr) return;
#pragma unroll
    for (int j = 0; j < kCols / 8; ++j) {
      const int col = first_col + j * 8 + thread_ % 4 * 2;
      if (col >= params_.n) break;
      const Pair pair = unpacked<Bias>(__ldg(reinterpret_cast<const unsigned*>(params_.bias + col)));
      values[j * 4] += pair.first;
      values[j * 4 + 1] += pair.second;
      values[j * 4 + 2] += pair.first;
      values[j * 4 + 3] += pair.second;
    }
  }
  __device__ static void scale_all(float (&values)[kCols / 2], float scale) {
#pragma unroll
    for (float& value : values) value *= scale;
  }

  /// Where the tensor map's swizzle wants a 16-byte piece of a row: eight rows of 128 bytes, or sixteen of 64, go
  /// through all places.
  __device__ static std::uint32_t offset_of(int row, int piece) {
    return static_cast<std::uint32_t>((row * kPieces + (piece ^ (row * kPieces / 8 % kPieces))) * 16);
  }

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
      const int row = thread_ / 32 * 16 + thread_ % 16;
#pragma unroll
      for (int j = 0; j < kPairs; j += 4) {
        const MatrixWords words = load_matrices(slot + offset_of(row, j / 2 + thread_ % 32 / 16));
#pragma unroll
        for (int i = 0; i < 4; ++i) kept_[kPlace][j + i] = words.word[i];
      }
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
      const int row = thread_ / 32 * 16 + thread_ % 16;
#pragma unroll
      for (int j = 0; j < kCols / 8; j += 2) {
        const MatrixWords words = load_matrices(slot_address(slot) + offset_of(row, j + thread_ % 32 / 16));
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const Pair addend = unpacked<Element>(words.word[i]);
          values[j * 4 + i * 2] += addend.first;
          values[j * 4 + i * 2 + 1] += addend.second;
        }
      }
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
        put_pairs(slot, kept_[kPlace]);
      else
        put_kept<kPlace + 1>(slot);
    }
  }
  __device__ void put_pairs(std::uint32_t slot, const std::uint32_t (&pairs)[kPairs]) const {
    const int lane = thread_ % 32;
    const int row = thread_ / 32 * 16 + lane % 16;
#pragma unroll
    for (int j = 0; j < kPairs; j += 4)
      store_matrices(slot + offset_of(row, j / 2 + lane / 16), {pairs[j], pairs[j + 1], pairs[j + 2], pairs[j + 3]});
  }

  /// Writes them to the slot, `adds`: added to what is there.
  __device__ void put(std::uint32_t slot, float (&values)[kCols / 2], bool adds) const {
    const int lane = thread_ % 32;
    if constexpr (kIsFp8) {
      const int row = thread_ / 32 * 16 + lane / 4;  // and the eighth below it, whose pieces are at the same places
#pragma unroll
      for (int j = 0; j < kCols / 8; ++j) {
        const std::uint32_t at = slot + offset_of(row, j / 2) + static_cast<std::uint32_t>(j % 2 * 8 + lane % 4 * 2);
        store_pair(at, packed<Element>(values[j * 4], values[j * 4 + 1]));
        store_pair(at + 8 * kCols, packed<Element>(values[j * 4 + 2], values[j * 4 + 3]));
      }
    } else {
      const int row = thread_ / 32 * 16 + lane % 16;
#pragma unroll
      for (int j = 0; j < kCols / 8; j += 2) {
        const std::uint32_t at = slot + offset_of(row, j + lane / 16);
        MatrixWords words;
        if (adds) words = load_matrices(at);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const Pair addend = adds ? unpacked<Element>(words.word[i]) : Pair{0, 0};
          words.word[i] =
              packed<Element>(values[j * 4 + i * 2] + addend.first, values[j * 4 + i * 2 + 1] + addend.second);
        }
        store_matrices(at, words);
      }
    }
  }

  /// Lets the warpgroup write box `box` of the tile, the `number`-th of all: its slot's last one was read.
  __device__ void make_ready(const WalkedTile& tile, int box, unsigned number) {
    if (adds_to(tile) && !kKeepsAddends) return load_addend(tile, box, number);
    storage_.ready[group_][number % kSlots].arrive();
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
    wait_before_tma(params_.chain.context, word, expected);
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
