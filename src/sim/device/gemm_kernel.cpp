#include "sim/device/gemm_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "gemm/contract/epilogue.h"
#include "gemm/contract/groups.h"
#include "gemm/contract/scales.h"
#include "gemm/host/tile_work.h"
#include "sim/device/gemm_signals.h"
#include "sim/device/tile_norm.h"
#include "sim/device/tile_sum.h"

namespace tandem::sim {

namespace {

/// A GEMM's tiles and what they take.
struct Tiles {
  GemmTiles order;
  Size in_full_waves;  // the first ones
  Time whole, last;    // time of those, and of the others

  Time time_of(Size tile) const { return tile < in_full_waves ? whole : last; }
};

/// The next tile that a worker takes.
struct Turn {
  Size next = 0;
  TileSequence::Place place = {};
};

/// One call of a GEMM.
struct Job {
  Gemm gemm;
  int sms;
  bool in_turns;  // whether workers share `turn`
  Turn turn = {};
  std::optional<Tiles> tiles = {};  // with groups, the first worker reads them
};

/// Returns the number of chunks with rows. Each chunk is computed over all columns before the next one.
int passes_of(const TileSequence& sequence) {
  int passes = 0;
  for (int i = 0; i < sequence.chunks(); ++i)
    if (!sequence.chunk(i).rows.empty()) ++passes;
  return passes;
}

/// Returns the shape of the work: with groups, that of the panels, each of all rows of a tile.
GemmShape shape_of(const Gemm& gemm, const GemmTiles& tiles) {
  GemmShape shape{gemm.m, gemm.n, gemm.k, static_cast<int>(size_of(gemm.type)), passes_of(tiles.sequence())};
  if (gemm.groups.count == 0) return shape;
  const std::span panels(gemm.groups.panels, static_cast<std::size_t>(*gemm.groups.panel_count));
  std::vector<bool> has_rows(static_cast<std::size_t>(gemm.groups.count));
  for (const GemmPanel& panel : panels)
    if (panel.group >= 0 && panel.group < gemm.groups.count) has_rows[static_cast<std::size_t>(panel.group)] = true;
  shape.m = static_cast<Size>(panels.size()) * gemm.tile_m;
  shape.passes = 1;
  shape.groups = std::max(1, static_cast<int>(std::count(has_rows.begin(), has_rows.end(), true)));
  return shape;
}

Tiles tiles_of(const Machine& machine, const Gemm& gemm, int sms) {
  const GemmTiles order(gemm);
  if (order.count() == 0) return {order, 0, 0, 0};
  const GemmTileTimes times = gemm_tile_times(machine, gemm.tile_m, gemm.tile_n, shape_of(gemm, order), sms);
  return {order, order.count() / sms * sms, from_us(times.whole_us), from_us(times.last_us)};
}

/// One worker's part of a GEMM.
class Worker {
 public:
  Worker(Role& role, Job& job)
      : role_(role), gemm_(job.gemm), work_(gemm_), tiles_(begun(role, job)), job_(job), own_{role.index} {}

  /// The worker that is free first takes the next tile; TileWalk on Hopper deals tiles out in turn beforehand
  /// (docs/internals/all_gather_gemm.md). In a check each worker has tiles of its own, which no other computes.
  void run() {
    while (!is_last()) {
      Turn& turn = this->turn();
      const Size number = std::exchange(turn.next, turn.next + (job_.in_turns ? 1 : role_.count));
      compute(tiles_.order.tile(number, turn.place), tiles_.time_of(number));
    }
    let_next_start();
    const Time begin = engine().now();
    role_.wait_for_outstanding();
    role_.report({.kind = OperationKind::kQuiet, .begin = begin}, Site::here());
  }

 private:
  Engine& engine() const { return role_.sim.engine; }
  Turn& turn() { return job_.in_turns ? job_.turn : own_; }
  bool is_last() { return turn().next >= tiles_.order.count(); }
  /// Returns the tiles, which depend on the device's table of panels if there is one.
  static const Tiles& begun(Role& role, Job& job) {
    const GemmGroups& groups = job.gemm.groups;
    const Site site = Site::here();
    if (groups.count > 0) role.report_access(AccessKind::kLoad, groups.panel_count, sizeof *groups.panel_count, site);
    if (!job.tiles) job.tiles = tiles_of(role.sim.machine, job.gemm, job.sms);
    if (groups.count > 0 && *groups.panel_count > 0)
      role.report_access(AccessKind::kLoad, groups.panels, *groups.panel_count * Size{sizeof(GemmPanel)}, site);
    return *job.tiles;
  }
  void let_next_start() {
    if (!std::exchange(lets_next_, true)) role_.let_next_start();
  }

  void compute(const GemmTile& tile, Time takes) {
    if (gemm_.gate.words != nullptr)
      work_.for_each_gate(tile, [&](int slot) {
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
    if (const GemmRing* const ring = gemm_.destination.ring(); ring != nullptr && work_.adds_to_ring(tile))
      await_sums(*ring, tile);
    Buffer result = multiply(tile);
    if (const GemmSum* const to = gemm_.destination.sum()) {
      TileSum sum(role_, gemm_, *to);
      result = sum.of(tile, std::move(result));
      if (to->norm.weight != nullptr) result = TileNorm(role_, gemm_, to->norm, sum.call()).of(tile, std::move(result));
    }
    store(tile, result);
  }

  /// Waits for the sums that the ring brings for the tile's rows.
  void await_sums(const GemmRing& ring, const GemmTile& tile) {
    await(ring.arrived + work_.ring_slot(tile), ring.epoch, work_.ring_arrivals(tile));
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
    if (gemm_.groups.a_rows != nullptr)
      role_.report_access(AccessKind::kLoad, gemm_.groups.a_rows + tile.rows.begin,
                          tile.rows.size() * Size{sizeof(std::int32_t)}, site);
    for (Size row = tile.rows.begin, end = row; row < tile.rows.end; row = end) {
      end = work_.end_of_a(row, tile.rows.end);
      if (const std::byte* const a = work_.a_row(row); a != nullptr)
        role_.report_access(AccessKind::kTensorLoad, a, (end - row) * row_bytes, site);
    }
    const std::byte* const b = work_.b(tile);
    if (gemm_.b_layout == BLayout::kNxK)
      return role_.report_access(AccessKind::kTensorLoad, b, tile.cols.size() * row_bytes, site);
    const Size element = size_of(gemm_.type);
    for (Size i = 0; i < gemm_.k; ++i)
      role_.report_access(AccessKind::kTensorLoad, b + i * gemm_.n * element, tile.cols.size() * element, site);
  }

  /// Reports the reads of a tile's epilogue: bias and scales.
  void report_epilogue(const GemmTile& tile) const {
    if (role_.sim.seams.monitor == nullptr) return;
    const auto read = [&](const void* values, Size element, Range range) {
      if (values == nullptr) return;
      role_.report_access(AccessKind::kLoad, static_cast<const std::byte*>(values) + range.begin * element,
                          range.size() * element, Site::here());
    };
    read(gemm_.bias, size_of(bias_type(gemm_)), tile.cols);
    for_each_scale(gemm_, tile, [&](const float* scales, Range range) { read(scales, sizeof(float), range); });
  }

  /// Reports the stores of the scales of a tile of C.
  void report_scales(const GemmTile& tile) const {
    if (role_.sim.seams.monitor == nullptr) return;
    const Range cols = blocks_of_c(gemm_, tile.cols);
    for (Size row = tile.rows.begin; row < tile.rows.end; ++row)
      role_.report_access(AccessKind::kStore,
                          gemm_.scales.out + row * blocks_of_c(gemm_, {0, gemm_.n}).end + cols.begin,
                          cols.size() * Size{sizeof(float)}, Site::here());
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
    if (gemm_.scales.out != nullptr) report_scales(tile);
    for (Size r = 0; role_.sim.seams.monitor != nullptr && r < work_.owned_rows(tile).size(); ++r)
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
  Job& job_;
  Turn own_;  // without turns each worker has every `count`-th tile
  bool lets_next_ = false;
};

/// Returns the GEMM with the tiles of its kernel: for few rows whose sums are added up, all rows by 64 columns.
Gemm as_computed(Gemm gemm) {
  if (gemm.destination.sum() == nullptr) return gemm;
  gemm.tile_m = static_cast<int>(gemm.m);
  gemm.tile_n = kSkinnyColumns;
  return gemm;
}

}  // namespace

std::optional<KernelRequest> gemm_request(const Simulator& simulator, int pe, const Gemm& given, const Team& team) {
  const Gemm gemm = as_computed(given);
  const Size count = most_tiles(gemm);
  if (count == 0) return {};
  const Machine& machine = simulator.machine;
  const int sms = gemm.sms > 0 ? gemm.sms : machine.gpu.sm_count;
  KernelRequest request;
  request.name = gemm_name(gemm);
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
  const auto job = std::make_shared<Job>(Job{gemm, sms, !fills});
  if (gemm.groups.count == 0) job->tiles = tiles_of(machine, job->gemm, sms);
  request.body = [job](Role& role) { Worker(role, *job).run(); };
  return request;
}

}  // namespace tandem::sim
