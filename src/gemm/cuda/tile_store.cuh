#pragma once
/// How a tile leaves a block. Each of the two warpgroups that compute writes its 64 rows to shared memory, 64 columns
/// at a time, and a warp of its own stores them, says when there is room again, and sends the notification. So a
/// warpgroup waits for nothing but room: not for the other one, and not for its stores.
///
/// In a chain the storing warp first brings to the room what the tile's sums are added to.

#include <cutlass/arch/barrier.h>
#include <cutlass/numeric_conversion.h>

#include "gemm/cuda/activation.cuh"
#include "gemm/cuda/device_wait.cuh"
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
  int first_owner = -1;  ///< whose sums begin here: nothing is added to them
  Context context;
};

/// Element: of C, 16 bits.
template <class Element, int TileM, int TileN>
class TileStore {
  static constexpr int kGroup = 128;  // threads
  static constexpr int kGroups = 2;
  static constexpr int kRows = TileM / kGroups;
  static constexpr int kCols = 64;  // of a box: rows of 128 bytes
  static constexpr int kBoxes = TileN / kCols;
  static constexpr int kSlots = 2;
  static constexpr int kSlotBytes = kRows * kCols * static_cast<int>(sizeof(Element));
  static constexpr int kLead = 8;  // tiles that a warpgroup may be ahead: not less than the mainloop has stages
  static_assert(kRows == 64 && sizeof(Element) == 2 && kBoxes % kSlots == 0);

 public:
  struct alignas(1024) Storage {
    std::byte slots[kGroups][kSlots][kSlotBytes];
    cutlass::arch::ClusterTransactionBarrier ready[kGroups]
                                                  [kSlots];  ///< there is room, with the addend if there is one
    cutlass::arch::ClusterBarrier written[kGroups][kSlots];
    unsigned stored[kLead];  ///< by how many warps each tile of the last ones was stored, over all tiles at its place
  };

  struct Params {
    CUtensorMap c[kMostShards];      ///< by owner: its rows, which clip its last tiles
    CUtensorMap begun[kMostShards];  ///< likewise, what the chain brings
    int shard_begin[kMostShards];
    Signal* word[kMostPieces];  ///< by the piece's place in the table; null: nobody is told
    DeviceChain chain;
    const Element* bias;
    int n;
    Activation activation;
  };

  static Params params(const Gemm& gemm, const TileTable& table, const Context& context) {
    Params params{};
    params.bias = static_cast<const Element*>(gemm.bias);
    params.n = static_cast<int>(gemm.n);
    params.activation = gemm.activation;
    const TileSequence sequence(gemm);
    for (int owner = 0; owner < sequence.owners(); ++owner) {
      const Range rows = sequence.rows_of_owner(owner);
      params.shard_begin[owner] = static_cast<int>(rows.begin);
      if (rows.empty()) continue;
      const auto map = [&](const std::byte* data) {
        return tensor_map(data, gemm.out_type, rows.size(), gemm.n, kRows, kCols);
      };
      params.c[owner] = map(destination_of(gemm, owner, rows.begin));
      if (gemm.chain_adds_to(owner))
        params.begun[owner] = map(gemm.chain.begun + owner * gemm.rows.shard_rows() * gemm.n * size_of(gemm.out_type));
    }
    for (int i = 0; i < table.count; ++i) params.word[i] = notified_by(gemm, table.pieces[i]);
    if (gemm.chain.begun == nullptr) return params;
    params.chain.arrived = gemm.chain.arrived;
    params.chain.epoch = gemm.chain.epoch;
    params.chain.first_owner = (gemm.me + 1) % gemm.rows.shards;
    params.chain.context = context;
    return params;
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

  /// For one warpgroup, or for the warp that stores for it.
  __device__ TileStore(const Params& params, Storage& storage, int group)
      : params_(params), storage_(storage), group_(group) {}

  /// The warpgroup's part of a tile: its sums, of which `thread` of the group has some.
  template <class Sums>
  __device__ void write(const WalkedTile& tile, const Sums& sums, int thread) {
    const bool adds = adds_to(tile);
#pragma unroll
    for (int i = 0; i < kBoxes; ++i) {
      float values[kCols / 2];
#pragma unroll
      for (int j = 0; j < kCols / 2; ++j) values[j] = sums(i * (kCols / 2) + j);
      finish(values, tile.column * TileN + i * kCols, thread);
      const int slot = i % kSlots;
      storage_.ready[group_][slot].wait(phase());
      put(shared_address(storage_.slots[group_][slot]), values, thread, adds);
      fence_shared_before_tma();
      __syncwarp();
      if (thread % 32 == 0) storage_.written[group_][slot].arrive();
      ++boxes_;
    }
  }

  /// The storing warp's part, by one thread: tile by tile.
  __device__ void store(const TileTable& table, int tile_m, const GemmRecorder& recorder) {
    const int role = 2 + group_;
    for (TileWalk walk(table); !walk.is_over(); walk.advance()) {
      const WalkedTile tile = walk.tile();
      if (tile.is_empty()) continue;
      if (adds_to(tile)) await_addend(tile, table, tile_m, recorder, role);
      make_ready(tile, 0);
      make_ready(tile, 1);
      std::uint64_t begin = 0;
      for (int i = 0; i < kBoxes; ++i) {
        storage_.written[group_][i % kSlots].wait(phase());
        if (i == 0) begin = recorder.now();
        store_box(&params_.c[tile.piece->owner], slot_address(i), col_of(tile, i), row_of(tile));
        // The box before it has had time to be read.
        if (i > 0 && i + 1 < kBoxes) {
          wait_for_reads<1>();
          make_ready(tile, i + 1);
        }
        ++boxes_;
      }
      wait_for_stores();
      recorder.add(role, {RecordKind::kStore, params_.word[tile.number], Size{kRows} * TileN * Size{sizeof(Element)}},
                   begin);
      notify(tile, recorder, role);
    }
  }

 private:
  // Boxes go through the slots in turn; each barrier changes its phase once for each box of its slot.
  __device__ std::uint32_t phase() const { return boxes_ / kSlots % 2; }
  __device__ std::uint32_t slot_address(int box) const { return shared_address(storage_.slots[group_][box % kSlots]); }
  __device__ bool adds_to(const WalkedTile& tile) const {
    return params_.chain.arrived != nullptr && tile.piece->owner != params_.chain.first_owner;
  }
  __device__ int row_of(const WalkedTile& tile) const {
    return tile.row - params_.shard_begin[tile.piece->owner] + group_ * kRows;
  }
  __device__ static int col_of(const WalkedTile& tile, int box) { return tile.column * TileN + box * kCols; }

  // A thread's sums of 64 columns, as wgmma leaves them ("Register Fragments" of wgmma.mma_async in the PTX ISA): of
  // each 8 columns two neighbours of one row and two of the eighth row below it.

  __device__ void finish(float (&values)[kCols / 2], int first_col, int thread) const {
    if (params_.bias != nullptr) {
#pragma unroll
      for (int j = 0; j < kCols / 8; ++j) {
        const int col = first_col + j * 8 + thread % 4 * 2;
        if (col >= params_.n) break;
        const Pair pair = unpacked(__ldg(reinterpret_cast<const unsigned*>(params_.bias + col)));
        values[j * 4] += pair.first;
        values[j * 4 + 1] += pair.second;
        values[j * 4 + 2] += pair.first;
        values[j * 4 + 3] += pair.second;
      }
    }
    activate(params_.activation, values);
  }

  struct Pair {
    float first, second;
  };
  __device__ static Pair unpacked(std::uint32_t bits) {
    Element pair[2];
    __builtin_memcpy(pair, &bits, sizeof bits);
    return {static_cast<float>(pair[0]), static_cast<float>(pair[1])};
  }
  __device__ static std::uint32_t packed(float first, float second) {
    cutlass::Array<float, 2> values;
    values[0] = first;
    values[1] = second;
    const auto pair = cutlass::NumericArrayConverter<Element, float, 2>::convert(values);
    std::uint32_t bits = 0;
    __builtin_memcpy(&bits, &pair, sizeof bits);
    return bits;
  }

  /// Writes them to the slot, `adds`: added to what is there. The tensor map's swizzle wants 16-byte piece c of row r
  /// at place c ^ (r % 8).
  __device__ static void put(std::uint32_t slot, float (&values)[kCols / 2], int thread, bool adds) {
    const int lane = thread % 32;
    const int row = thread / 32 * 16 + lane % 16;
#pragma unroll
    for (int j = 0; j < kCols / 8; j += 2) {
      const int piece = j + lane / 16;
      const std::uint32_t at = slot + static_cast<std::uint32_t>(row * 128 + (piece ^ (row % 8)) * 16);
      MatrixWords words;
      if (adds) words = load_matrices(at);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float& first = values[j * 4 + i * 2];
        float& second = values[j * 4 + i * 2 + 1];
        if (adds) {
          const Pair addend = unpacked(words.word[i]);
          first += addend.first;
          second += addend.second;
        }
        words.word[i] = packed(first, second);
      }
      store_matrices(at, words);
    }
  }

  /// Lets the warpgroup write box `box`: the slot's last box was read, or is two tiles ago.
  __device__ void make_ready(const WalkedTile& tile, int box) {
    auto& ready = storage_.ready[group_][box % kSlots];
    if (!adds_to(tile)) return ready.arrive();
    ready.arrive_and_expect_tx(kSlotBytes);
    load_box(&params_.begun[tile.piece->owner], slot_address(box), col_of(tile, box), row_of(tile), &ready);
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
    add_release(&word->value, 1);
    recorder.add(role, {RecordKind::kSignal, word, 1, static_cast<unsigned>(SignalOp::kAdd), 1}, begin);
  }

  const Params& params_;
  Storage& storage_;
  const int group_;
  unsigned boxes_ = 0;
  unsigned told_ = 0;
};

}  // namespace tandem::cuda
