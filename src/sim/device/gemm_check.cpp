/// Whether a GEMM can be run at all: one clear line, before anything is enqueued.

#include <fmt/format.h>

#include <algorithm>

#include "gemm/contract/epilogue.h"
#include "gemm/contract/scales.h"
#include "gemm/contract/skinny.h"
#include "gemm/host/tile_work.h"
#include "sim/device/gemm_kernel.h"
#include "tandem/error.h"
#include "tandem/world.h"

namespace tandem::sim {

namespace {

/// Whether what is read and written is there, and within reach of PE `pe`.
class Addresses {
 public:
  Addresses(const Simulator& simulator, int pe, const Gemm& gemm, const Team& team)
      : sim_(simulator), team_(team), pe_(pe), gemm_(gemm) {}

  void check() const {
    if (gemm_.m == 0 || gemm_.n == 0) return;
    if (gemm_.groups.count > 0)
      check_groups();
    else
      check_factors();
    check_epilogue();
    check_gate();
    const GemmDestination& to = gemm_.destination;
    if (to.local() != nullptr) check_local(*to.local());
    if (to.scatter() != nullptr) check_scatter(*to.scatter());
    if (to.broadcast() != nullptr) check_broadcast(*to.broadcast());
    if (to.ring() != nullptr) check_ring(*to.ring());
    if (to.sum() != nullptr) check_sum(*to.sum());
  }

 private:
  /// rows x columns elements from there.
  void matrix(const char* field, const void* address, Size rows, Size columns, DType type) const {
    const Size row_bytes = detail::bytes_of(columns, static_cast<Size>(size_of(type)));
    held(field, address, row_bytes == 0 ? 0 : detail::bytes_of(rows, row_bytes));
  }
  void held(const char* field, const void* address, Size bytes) const {
    if (!sim_.memory.owns(address))
      throw InvalidArgument(fmt::format("gemm: {} is {}, allowed: an address of a PE's memory", field, address));
    if (!sim_.is_usable(address, bytes))
      throw InvalidArgument(fmt::format("gemm: {} is {} of {} bytes, allowed: what lies within one buffer{}", field,
                                        sim_.memory.describe(address), bytes, sim_.memory.describe_size(address)));
    if (!sim_.topology.reachable(pe_, sim_.memory.pe_of(address)))
      throw InvalidArgument(fmt::format("gemm: {} is {}, which PE {} cannot reach by loads and stores", field,
                                        sim_.memory.describe(address), pe_));
  }
  /// Signals or epochs, which exist in a phantom simulation too.
  void words(const char* field, const void* address, Size count) const {
    table(field, address, count * Size{sizeof(Signal)});
  }
  /// Data that the GEMM's order depends on.
  void table(const char* field, const void* address, Size bytes) const {
    held(field, address, bytes);
    if (!sim_.memory.backed(address))
      throw InvalidArgument(fmt::format("gemm: {} is {}, which a phantom simulation has no contents of", field,
                                        sim_.memory.describe(address)));
  }

  void check_factors() const {
    if (gemm_.k == 0) return;
    const Range own = gemm_.rows.shard(gemm_.me);
    const bool has_own = gemm_.own_a != nullptr;
    if (has_own) matrix("own_a", gemm_.own_a, own.size(), gemm_.k, gemm_.type);
    // Up to the last row that is read.
    const Size rows = has_own && own.end == gemm_.m ? own.begin : gemm_.m;
    if (rows > 0) matrix("a", gemm_.a, rows, gemm_.k, gemm_.type);
    matrix("b", gemm_.b, gemm_.n, gemm_.k, gemm_.type);
  }

  void check_groups() const {
    const GemmGroups& groups = gemm_.groups;
    if (gemm_.k > 0) {
      matrix("a", gemm_.a, groups.a_rows != nullptr ? groups.rows_of_a : gemm_.m, gemm_.k, gemm_.type);
      matrix("b", gemm_.b, detail::bytes_of(groups.count, gemm_.n), gemm_.k, gemm_.type);
    }
    if (groups.a_rows != nullptr) table("groups.a_rows", groups.a_rows, gemm_.m * Size{sizeof(std::int32_t)});
    table("groups.panel_count", groups.panel_count, sizeof(std::int32_t));
    table("groups.panels", groups.panels, groups.most_panels * Size{sizeof(GemmPanel)});
  }

  void check_epilogue() const {
    const auto optional = [&](const char* field, const void* address, Size count, DType type) {
      if (address != nullptr) matrix(field, address, count, 1, type);
    };
    const GemmScales& scales = gemm_.scales;
    optional("bias", gemm_.bias, gemm_.n, bias_type(gemm_));
    optional("scales.a", scales.a, scales_of_a(gemm_), DType::kF32);
    optional("scales.b", scales.b, scales_of_b(gemm_), DType::kF32);
    optional("scales.c", scales.c, 1, DType::kF32);
    optional("scales.out", scales.out, scales_of_c(gemm_), DType::kF32);
  }

  /// Rows of a buffer with a block for each owner.
  Size rows_of_blocks() const { return detail::bytes_of(gemm_.rows.shards, max(gemm_.rows.shard_rows(), 1)); }
  int first_of_node() const { return gemm_.me - gemm_.me % gemm_.node_size; }

  void check_gate() const {
    if (gemm_.gate.words == nullptr) return;
    words("gate.words", gemm_.gate.words, gemm_.groups.count > 0 ? gemm_.groups.words : gemm_.rows.slots());
    words("gate.epoch", gemm_.gate.epoch, 1);
  }

  void check_local(const GemmLocal& local) const {
    matrix("c", local.c, gemm_.m, columns_after(gemm_.activation, gemm_.n), gemm_.out_type);
    if (!local.notify.local) return check_collectors(local.notify.words);
    check_own_words(local.notify.words, gemm_.groups.count > 0 ? gemm_.groups.column_chunks : gemm_.rows.slots());
  }

  void check_scatter(const GemmScatter& scatter) const {
    for (int owner = 0; owner < std::min(gemm_.node_size, gemm_.rows.shards); ++owner)
      matrix("scatter.blocks", scatter.blocks.on(gemm_.collector(owner)), rows_of_blocks(), gemm_.n, gemm_.out_type);
    check_collectors(scatter.notify);
  }

  void check_broadcast(const GemmBroadcast& all) const {
    for (int i = 0; i < gemm_.node_size; ++i) {
      const int pe = first_of_node() + i;
      matrix("broadcast.blocks", all.blocks.on(pe), detail::bytes_of(gemm_.m, gemm_.node_size), gemm_.n,
             gemm_.out_type);
      if (all.notify) words("notify", all.notify.on(pe), gemm_.me % gemm_.node_size + 1);
    }
  }

  void check_own_words(const Signals& notify, Size count) const {
    if (notify) words("notify", notify.on(gemm_.me), count);
  }
  void check_collectors(const Signals& notify) const {
    for (int owner = 0; notify && owner < std::min(gemm_.node_size, gemm_.rows.shards); ++owner)
      words("notify", notify.on(gemm_.collector(owner)), gemm_.rows.slots());
  }

  void check_ring(const GemmRing& ring) const {
    const auto block = [&](const char* field, const void* address, Size rows) {
      matrix(field, address, rows, gemm_.n, gemm_.out_type);
    };
    block("c", ring.c, gemm_.rows.shard(gemm_.me).size());
    check_own_words(ring.notify, gemm_.rows.slots());
    if (ring.own_copy != nullptr) block("ring.own_copy", ring.own_copy, gemm_.rows.shard(gemm_.me).size());
    if (gemm_.rows.shards == 1) return;
    block("ring.received", ring.received, rows_of_blocks());
    block("ring.forwarded", ring.forwarded, rows_of_blocks());
    words("ring.arrived", ring.arrived, gemm_.rows.slots());
    words("ring.forwarded_tiles", ring.forwarded_tiles, gemm_.rows.slots());
    words("ring.epoch", ring.epoch, 1);
  }

  void check_sum(const GemmSum& sum) const {
    matrix("c", sum.c, gemm_.m, gemm_.n, gemm_.out_type);
    if (!skinny_suits(gemm_, sim_.machine.gpu.sm_count))
      throw Unsupported(
          fmt::format("gemm: a sum over PEs of {}x{}x{} given, no kernel adds that up", gemm_.m, gemm_.n, gemm_.k));
    const SkinnyExchange places(static_cast<int>(gemm_.n), team_.size);
    for (int pe = 0; pe < team_.size; ++pe) {
      held("sum.exchange", sum.exchange.on(pe), places.bytes(gemm_.m));
      words("sum.arrived", sum.arrived.on(pe), places.words(gemm_.m));
    }
    words("sum.calls", sum.calls, places.tiles(gemm_.m));
    if (sum.norm.weight != nullptr) check_norm(sum.norm);
  }

  void check_norm(const GemmNorm& norm) const {
    const SkinnySquares squares(static_cast<int>(gemm_.n));
    matrix("norm.weight", norm.weight, 1, gemm_.n, gemm_.out_type);
    if (norm.bias != nullptr) matrix("norm.bias", norm.bias, 1, gemm_.n, gemm_.out_type);
    if (norm.residual != nullptr) matrix("norm.residual", norm.residual, gemm_.m, gemm_.n, gemm_.out_type);
    if (norm.sum != nullptr) matrix("norm.sum", norm.sum, gemm_.m, gemm_.n, gemm_.out_type);
    held("norm.squares", norm.squares, squares.count() * Size{sizeof(float)});
    words("norm.arrived", norm.arrived, squares.columns);
  }

  const Simulator& sim_;
  const Team& team_;
  const int pe_;
  const Gemm& gemm_;
};

}  // namespace

void check_gemm(const Simulator& simulator, int pe, const Gemm& gemm, const Team& team) {
  check_gemm_fields(gemm, simulator.machine.gpu.sm_count);
  Addresses(simulator, pe, gemm, team).check();
}

}  // namespace tandem::sim
