/// Whether a GEMM can be run at all: one clear line, before anything is enqueued.

#include <fmt/format.h>

#include "gemm/finish.h"
#include "sim/gemm_kernel.h"
#include "tandem/error.h"

namespace tandem::sim {

namespace {

void require(bool holds, const char* field, Size given, const char* allowed) {
  if (!holds) throw InvalidArgument(fmt::format("gemm: {} is {}, allowed: {}", field, given, allowed));
}

/// What is read and written is there.
void check_addresses(const Simulator& simulator, const Gemm& gemm) {
  if (gemm.m == 0 || gemm.n == 0) return;
  const bool stays_here = !gemm.c_at_collector && !gemm.c_at_all;
  const auto given = [&](const char* field, const void* address) {
    if (!simulator.memory.owns(address))
      throw InvalidArgument(fmt::format("gemm: {} is {}, allowed: an address of a PE's memory", field, address));
  };
  if (gemm.k > 0 && (gemm.own_a == nullptr || gemm.rows.shards > 1)) given("a", gemm.a);
  if (gemm.k > 0) given("b", gemm.b);
  if (stays_here) given("c", gemm.c);
  const auto given_or_none = [&](const char* field, const void* address) {
    if (address != nullptr) given(field, address);
  };
  given_or_none("bias", gemm.bias);
  given_or_none("scales.a", gemm.scales.a);
  given_or_none("scales.b", gemm.scales.b);
  given_or_none("scales.c", gemm.scales.c);
}

}  // namespace

void check_gemm(const Simulator& simulator, const Gemm& gemm) {
  require(gemm.m >= 0, "m", gemm.m, "0 or more");
  require(gemm.n >= 0, "n", gemm.n, "0 or more");
  require(gemm.k >= 0, "k", gemm.k, "0 or more");
  require(gemm.tile_m >= 1, "tile_m", gemm.tile_m, "1 or more");
  require(gemm.tile_n >= 1, "tile_n", gemm.tile_n, "1 or more");
  require(gemm.sms >= 0 && gemm.sms <= simulator.machine.gpu.sm_count, "sms", gemm.sms, "0 (all) to the machine's SMs");
  require(gemm.order == TileOrder::kRowMajor || gemm.rows.rows == gemm.m, "rows.rows", gemm.rows.rows, "m");
  require(gemm.rows.shards >= 1, "rows.shards", gemm.rows.shards, "1 or more");
  require(gemm.rows.splits >= 1, "rows.splits", gemm.rows.splits, "1 or more");
  require(gemm.node_size >= 1, "node_size", gemm.node_size, "1 or more");
  require(!gemm.c_at_all || gemm.rows.slots() == 1, "rows.shards * rows.splits", gemm.rows.slots(),
          "1 where tiles go to all PEs");
  require(gemm.chain.begun == nullptr || gemm.order == TileOrder::kPeersFirst, "order", static_cast<Size>(gemm.order),
          "kPeersFirst where a chain is set");
  if (gemm.sum.calls != nullptr) throw Unsupported("gemm: sum is set, the simulator's kernel adds nothing up");
  check_finish(gemm);
  check_addresses(simulator, gemm);
  require(gemm.gate.words == nullptr || gemm.gate.epoch != nullptr, "gate.epoch", 0, "an address where a gate is set");
}

}  // namespace tandem::sim
