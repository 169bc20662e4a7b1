#pragma once
/// The material of the operators' plans: options without an open choice, and shared memory.

#include <algorithm>
#include <memory>

#include "operators/plan/transport_share.h"
#include "operators/resolve/resolve.h"
#include "tandem/advanced/gemm.h"
#include "tandem/operators.h"

namespace tandem::ops {

/// The signals of plans that alternate (double_buffered_plan.h), or of a single plan.
struct BufferWords {
  Signals released;  ///< [PE]: how many of their calls a peer has finished, as far as it signals that
  Epochs acquired;   ///< one word: how many this PE has started
};
BufferWords make_buffer_words(World& world);

/// Returns the place in which the GEMMs of a plan leave partial sums.
GemmWorkspace make_gemm_workspace(World& world);

/// The grid of a step over `bytes`: at most `most_blocks`, each with enough bytes to be worth its wait.
inline Grid grid_for(Size bytes, int most_blocks, int threads) {
  constexpr Size kLeastBytesOfBlock = 16 << 10;
  const Size useful = std::max<Size>(1, bytes / kLeastBytesOfBlock);
  return {static_cast<int>(std::min<Size>(most_blocks, useful)), threads};
}

/// Resolved options, and the memory that all parts of a plan share.
struct Settings : ResolvedOptions {
  Settings() = default;
  explicit Settings(ResolvedOptions resolved) : ResolvedOptions(std::move(resolved)) {}

  const void* no_bias = nullptr;               ///< gemm_reduce_scatter, gemm_all_reduce: zeros in its place
  BufferWords buffers = {};                    ///< none: the plan makes its own
  GemmWorkspace workspace = {};                ///< of all GEMMs of the plan, which follow one another
  std::shared_ptr<TransportShare> share = {};  ///< none: the plan has memory of its own

  /// `m` rows of the global problem by owner. Parts are cut at pairs of tiles: a GPU's GEMM computes two at a time.
  RowPartition rows(const Team& team, Size m) const { return {m, team.size, options.splits, 2 * options.tile_m}; }
  /// Returns memory for data in flight, which is called `name` where it is the plan's own. Collective.
  Symm<std::byte> transport_memory(World& world, Size bytes, const std::string& name) const {
    return share != nullptr ? share->take(world, bytes) : world.heap().allocate<std::byte>(bytes, name);
  }
  /// Shares memory as the caller wishes, in a part of its own.
  void begin_share(int side) {
    share = options.memory ? std::make_shared<TransportShare>(options.memory, side) : nullptr;
  }
  /// Bytes of a row of C, where it is the sum of all PEs'.
  Size result_row_bytes() const { return options.n * size_of(options.result_type()); }
};

std::unique_ptr<OperatorPlan> make_all_gather_gemm(World& world, const Settings& settings);
std::unique_ptr<OperatorPlan> make_gemm_reduce_scatter(World& world, const Settings& settings);
std::unique_ptr<OperatorPlan> make_gemm_reduce_scatter_ring(World& world, const Settings& settings);
std::unique_ptr<OperatorPlan> make_gemm_all_reduce(World& world, const Settings& settings);
std::unique_ptr<OperatorPlan> make_gemm_all_reduce_ring(World& world, const Settings& settings);
std::unique_ptr<OperatorPlan> make_gemm_all_reduce_by_shards(World& world, const Settings& settings);
std::unique_ptr<OperatorPlan> make_gemm_all_reduce_sequential(World& world, const Settings& settings);

}  // namespace tandem::ops
