#include "sim/device/gemm_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "gemm/contract/epilogue.h"
#include "gemm/host/tile_work.h"
#include "sim/device/gemm_signals.h"
#include "sim/device/tile_norm.h"
#include "sim/device/tile_sum.h"

namespace tandem::sim {

namespace {

/// A GEMM's tiles and what they take.
struct Tiles {
  TileSequence sequence;
  Size count;
  Size in_full_waves;  // the first ones
  Time whole, last;    // time of those, and of the others

  Time time_of(Size tile) const { return tile < in_full_waves ? whole : last; }
};

/// The next tile that a worker takes.
struct Turn {
  Size next = 0;
  TileSequence::Place place = {};
};

/// One worker's part of a GEMM.
class Worker {
 public:
  Worker(Role& role, const Gemm& gemm, const Tiles& tiles, std::shared_ptr<Turn> shared)
      : role_(role), gemm_(gemm), work_(gemm), tiles_(tiles), shared_(std::move(shared)), own_{role.index} {}

  /// Tiles are dealt out as workers come for them, in order: the persistent kernel's dynamic scheduler. In a check each
  /// worker has tiles of its own, which nobody computes if it is not there.
  void run() {
    while (!is_last()) {
      Turn& turn = this->turn();
      const Size number = std::exchange(turn.next, turn.next + (shared_ != nullptr ? 1 : role_.count));
      compute(tiles_.sequence.tile(number, turn.place), tiles_.time_of(number));
    }
    let_next_start();
    const Time begin = engine().now();
    role_.wait_for_outstanding();
    role_.report({.kind = OperationKind::kQuiet, .begin = begin}, Site::here());
  }

 private:
  Engine& engine() const { return role_.sim.engine; }
  Turn& turn() { return shared_ != nullptr ? *shared_ : own_; }
  bool is_last() { return turn().next >= tiles_.count; }
  void let_next_start() {
    if (!std::exchange(lets_next_, true)) role_.let_next_start();
  }

  void compute(const GemmTile& tile, Time takes) {
    if (gemm_.gate.words != nullptr)
      work_.for_each_gate(tile.rows, [&](int slot) {
        await(gemm_.gate.words + slot, gemm_.gate.epoch, static_cast<Epoch>(gemm_.gate.arrivals));
      });
    const Time begin = engine().now();
    const Operation operation{.kind = OperationKind::kCompute, .begin = begin, .rows = tile.rows, .columns = tile.cols};
    engine().sleep_until(begin + takes);
    if (is_last()) let_next_start();
    engine().trace(engine().current()->id(), 110, tile.rows.begin * 1000003 + tile.cols.begin);
    role_.report(operation, Site::here());
    report_reads(tile);
    report_epilogue(tile);
    if (work_.adds_to_ring(tile)) forward_sums(tile);
    Buffer result = multiply(tile);
    if (gemm_.sum.calls != nullptr) {
      TileSum sum(role_, gemm_);
      result = sum.of(tile, std::move(result));
      if (gemm_.norm.weight != nullptr) result = TileNorm(role_, gemm_, sum.call()).of(tile, std::move(result));
    }
    store(tile, result);
  }

  /// Waits for what the chain brings for the tile's rows.
  void forward_sums(const GemmTile& tile) {
    await(gemm_.ring.arrived + work_.ring_slot(tile), gemm_.ring.epoch, work_.ring_arrivals(tile));
    if (role_.sim.seams.monitor == nullptr) return;
    for (Size r = 0; r < tile.rows.size(); ++r)
      role_.report_access(AccessKind::kTensorLoad, work_.ring_row(tile, r), work_.row_bytes(tile), Site::here());
  }

  /// Waits until `word` is at least `*epoch` times `times`.
  void await(const Signal* word, const Epoch* epoch, Epoch times) {
    const Site site = Site::here();
    role_.report_access(AccessKind::kLoad, epoch, sizeof(Epoch), site);
    await_gemm_signal(role_, word, *epoch * times, site);
  }

  /// Reports the reads of the tensor-memory engine for a tile.
  void report_reads(const GemmTile& tile) const {
    if (role_.sim.seams.monitor == nullptr) return;
    const Site site = Site::here();
    const Size row_bytes = gemm_.k * size_of(gemm_.type);
    for (Size row = tile.rows.begin, end = row; row < tile.rows.end; row = end) {
      end = work_.end_of_a(row, tile.rows.end);
      role_.report_access(AccessKind::kTensorLoad, work_.a_row(row), (end - row) * row_bytes, site);
    }
    const auto* const b = static_cast<const std::byte*>(gemm_.b);
    if (gemm_.b_layout == BLayout::kNxK)
      return role_.report_access(AccessKind::kTensorLoad, b + tile.cols.begin * row_bytes, tile.cols.size() * row_bytes,
                                 site);
    const Size element = size_of(gemm_.type);
    for (Size i = 0; i < gemm_.k; ++i)
      role_.report_access(AccessKind::kTensorLoad, b + (i * gemm_.n + tile.cols.begin) * element,
                          tile.cols.size() * element, site);
  }

  /// Reports the reads of a tile's epilogue: bias and scales.
  void report_epilogue(const GemmTile& tile) const {
    if (role_.sim.seams.monitor == nullptr) return;
    const auto read = [&](const void* values, Size element, Range range) {
      if (values == nullptr) return;
      role_.report_access(AccessKind::kLoad, static_cast<const std::byte*>(values) + range.begin * element,
                          range.size() * element, Site::here());
    };
    const GemmScales& scales = gemm_.scales;
    constexpr Range kOne{0, 1};
    read(gemm_.bias, size_of(bias_type(gemm_)), tile.cols);
    read(scales.a, sizeof(float), scales.a_per_row ? tile.rows : kOne);
    read(scales.b, sizeof(float), scales.b_per_column ? tile.cols : kOne);
    read(scales.c, sizeof(float), kOne);
  }

  /// Returns the product of a tile; empty in phantom mode.
  Buffer multiply(const GemmTile& tile) const {
    if (role_.sim.phantom) return {};
    Buffer result(work_.bytes_of(tile));
    work_.multiply(tile, result.data());
    return result;
  }

  void store(const GemmTile& tile, const Buffer& product) {
    work_.for_each_destination(tile, [&](const TileWork::Destination& to) {
      const Time arrival = store_to(to.c, to.row, tile, product);
      if (to.second != nullptr) store_to(to.second, to.row, tile, product);
      if (to.notified != nullptr) notify(to.notified, arrival);
    });
  }

  /// Stores a tile to rows [first_row, ...) of `c`; returns when it is visible there.
  Time store_to(std::byte* c, Size first_row, const GemmTile& tile, const Buffer& product) {
    const int target = role_.sim.memory.pe_of(c);
    const Size bytes = work_.bytes_of(tile);
    Time arrival = engine().now();
    if (target != role_.pe) {
      // The store of one tile runs while the next is computed: only the link's time counts.
      arrival = role_.store_arrival(
          role_.sim.network.pass(role_.pe, target, bytes, Driver::kStores, engine().now(), {role_.lane, engine().now()})
              .arrived);
      role_.last_arrival = std::max(role_.last_arrival, arrival);
    }
    const Time begin = engine().now();
    const Size row_bytes = work_.row_bytes(tile);
    for (Size r = 0; role_.sim.seams.monitor != nullptr && r < tile.rows.size(); ++r)
      role_.report_access(AccessKind::kStore, work_.row_in(c, first_row, tile, r), row_bytes, Site::here());
    for (Size r = 0; product && r < tile.rows.size(); ++r) {
      std::byte* const to = work_.row_in(c, first_row, tile, r);
      const std::byte* const from = product.data() + r * row_bytes;
      if (target == role_.pe) {
        std::memcpy(to, from, static_cast<std::size_t>(row_bytes));
        continue;
      }
      Buffer payload(row_bytes);
      std::memcpy(payload.data(), from, static_cast<std::size_t>(row_bytes));
      role_.sim.deliver(arrival, data_delivery(to, std::move(payload), role_.cause()));
    }
    role_.report({.kind = OperationKind::kStore, .target = c, .bytes = bytes, .begin = begin}, Site::here());
    return arrival;
  }

  void notify(Signal* word, Time visible) {
    const Time flag = role_.sim.memory.pe_of(word) == role_.pe ? role_.sim.costs.local_flag : role_.sim.costs.flag;
    send_gemm_signal(role_, {word, 1, SignalOp::kAdd}, std::max(visible, engine().now()) + flag, Site::here());
  }

  Role& role_;
  const Gemm& gemm_;
  const TileWork work_;
  const Tiles& tiles_;
  std::shared_ptr<Turn> shared_;  // null: each worker has every `count`-th tile
  Turn own_;
  bool lets_next_ = false;
};

/// Returns the number of chunks with rows. Each chunk is computed over all columns before the next one.
int passes_of(const TileSequence& sequence) {
  int passes = 0;
  for (int i = 0; i < sequence.chunks(); ++i)
    if (!sequence.chunk(i).rows.empty()) ++passes;
  return passes;
}

/// Returns the GEMM with the tiles of its kernel: for few rows whose sums are added up, all rows by 64 columns.
Gemm as_computed(Gemm gemm) {
  if (gemm.sum.calls == nullptr) return gemm;
  gemm.tile_m = static_cast<int>(gemm.m);
  gemm.tile_n = kSkinnyColumns;
  return gemm;
}

}  // namespace

std::optional<KernelRequest> gemm_request(const Simulator& simulator, int pe, const Gemm& given, const Team& team) {
  const Gemm gemm = as_computed(given);
  const TileSequence sequence(gemm);
  const Size count = sequence.tiles();
  if (count == 0) return {};
  const Machine& machine = simulator.machine;
  const int sms = gemm.sms > 0 ? gemm.sms : machine.gpu.sm_count;
  const GemmShape shape{gemm.m, gemm.n, gemm.k, static_cast<int>(size_of(gemm.type)), passes_of(sequence)};
  const GemmTileTimes times = gemm_tile_times(machine, gemm.tile_m, gemm.tile_n, shape, sms);
  const Tiles tiles{sequence, count, count / sms * sms, from_us(times.whole_us), from_us(times.last_us)};
  KernelRequest request;
  request.name = fmt::format("gemm {}x{}x{}", gemm.m, gemm.n, gemm.k);
  request.pe = pe;
  request.team = team;
  request.blocks = static_cast<int>(std::min<Size>(sms, count));
  // In a check it takes all SMs that it may have: some GEMMs divide the depth of few tiles among them.
  const bool fills = simulator.seams.schedule != nullptr && simulator.seams.schedule->fills_sms();
  request.keeps_places = fills;
  request.idle_blocks = fills ? sms - request.blocks : 0;
  // A tile's stages take an SM's memory: nothing fits beside it.
  request.threads = request.room = simulator.machine.gpu.max_threads_per_sm;
  request.startup = std::max<Time>(0, from_us(machine.gemm.launch_us) - simulator.costs.graph_gap);
  request.body = [gemm, tiles, shared = fills ? nullptr : std::make_shared<Turn>()](Role& role) {
    Worker(role, gemm, tiles, shared).run();
  };
  return request;
}

}  // namespace tandem::sim
