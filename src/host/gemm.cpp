/// The fused GEMM on CPUs: a grid whose blocks take tiles in order.

#include <fmt/format.h>

#include <cstring>
#include <mutex>
#include <optional>

#include "gemm/host/tile_work.h"
#include "host/block_core.h"
#include "host/grid.h"
#include "tandem/error.h"

namespace tandem::host {

namespace {

/// The tiles in their order. Blocks take them on several threads.
class Turn {
 public:
  explicit Turn(const Gemm& gemm) : tiles_(gemm) {}

  /// Returns the next tile that no block has taken; none after the last one.
  std::optional<GemmTile> take() {
    const std::lock_guard lock(mutex_);
    if (next_ == tiles_.count()) return std::nullopt;
    return tiles_.tile(next_++, place_);
  }

 private:
  const GemmTiles tiles_;
  std::mutex mutex_;
  Size next_ = 0;
  TileSequence::Place place_ = {};
};

class TileBlock {
 public:
  TileBlock(cpu::BlockCore& core, BlockRecords* records, const Gemm& gemm)
      : core_(core), records_(records), gemm_(gemm), work_(gemm) {}

  void run(Turn& turn) {
    while (const std::optional<GemmTile> tile = turn.take()) compute(*tile);
  }

 private:
  void compute(const GemmTile& tile) {
    if (gemm_.gate.words != nullptr)
      work_.for_each_gate(tile, [&](int slot) {
        await(gemm_.gate.words + slot, *gemm_.gate.epoch * static_cast<Epoch>(gemm_.gate.arrivals));
      });
    if (const GemmRing* const ring = gemm_.destination.ring(); ring != nullptr && work_.adds_to_ring(tile))
      await(ring->arrived + work_.ring_slot(tile), *ring->epoch * work_.ring_arrivals(tile));
    const cpu::Buffer product(work_.bytes_of(tile));
    {
      const RecordedSpan span(records_, {0, 0, cuda::RecordKind::kCompute, 0, 0, 0, 0, 0});
      work_.multiply(tile, product.data());
    }
    work_.for_each_destination(tile, [&](const TileWork::Destination& to) {
      store(to.c, to.row, tile, product);
      if (to.second != nullptr) store(to.second, to.row, tile, product);
      if (to.notified != nullptr) core_.signal({to.notified, 1, SignalOp::kAdd}, Order::kRelease, Site::here());
    });
  }

  void await(const Signal* word, Epoch value) {
    core_.wait(word, 1, 1, Cmp::kGe, value, Order::kAcquire, Site::here());
  }

  void store(std::byte* c, Size first_row, const GemmTile& tile, const cpu::Buffer& product) {
    const Size bytes = work_.row_bytes(tile);
    for (Size row = 0; row < tile.rows.size(); ++row)
      std::memcpy(work_.row_in(c, first_row, tile, row), product.data() + row * bytes, static_cast<std::size_t>(bytes));
  }

  cpu::BlockCore& core_;
  BlockRecords* const records_;
  const Gemm& gemm_;
  const TileWork work_;
};

}  // namespace

void check_gemm(const Gemm& gemm, int sms) {
  check_gemm_fields(gemm, sms);
  if (gemm.destination.sum() != nullptr)
    throw Unsupported("gemm: a sum over PEs given, the kernel of CPUs adds nothing up");
  if (gemm.m == 0 || gemm.n == 0) return;
  const auto require = [](const void* address, const char* field) {
    if (address == nullptr) throw InvalidArgument(fmt::format("gemm: {} is null, allowed: an address", field));
  };
  const bool is_own_all = gemm.own_a != nullptr && gemm.rows.shards == 1;
  if (gemm.k > 0 && !is_own_all) require(gemm.a, "a");
  if (gemm.k > 0) require(gemm.b, "b");
  if (gemm.destination.scatter() == nullptr && gemm.destination.broadcast() == nullptr)
    require(gemm.destination.c(), "c");
  if (gemm.gate.words != nullptr) require(gemm.gate.epoch, "gate.epoch");
  const GemmRing* const ring = gemm.destination.ring();
  if (ring == nullptr || gemm.rows.shards == 1) return;
  require(ring->received, "ring.received");
  require(ring->forwarded, "ring.forwarded");
  require(ring->arrived, "ring.arrived");
  require(ring->forwarded_tiles, "ring.forwarded_tiles");
  require(ring->epoch, "ring.epoch");
}

int gemm_blocks(const Gemm& gemm, int sms) {
  return static_cast<int>(min(gemm.sms > 0 ? gemm.sms : sms, most_tiles(gemm)));
}

void run_gemm(const cuda::Context& context, const Gemm& gemm, int sms, const GridThreads& by, wire::Mailbox* mailbox,
              GridRecords* records) {
  check_gemm(gemm, sms);
  if (is_skipped(context)) return;
  Turn turn(gemm);
  const int blocks = gemm_blocks(gemm, sms);
  const GridShape shape{context, blocks, 1, "", false, mailbox};
  run_blocks(context, blocks, by, [&](Strand& strand, int i) {
    BlockCore core(strand, shape, i);
    with_records(records, core, [&](cpu::BlockCore& used, BlockRecords* own) { TileBlock(used, own, gemm).run(turn); });
  });
}

}  // namespace tandem::host
