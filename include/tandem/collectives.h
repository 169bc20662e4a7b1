#pragma once
/// The host side of collectives. A plan owns its signals, epochs and staging, and runs any number of times.
///
///   auto plan = make_collective(world, Collective::kAllReduce, {.type = DType::kBF16, .max_count = count});
///   plan->run(stream, in, out, count);
///
/// Sizes follow NCCL's calls. They are in elements; n is the number of PEs:
///
///   collective       in (every PE)          out (every PE)          `count` is
///   all_reduce       count                  count                   elements of each PE
///   all_gather       count                  n * count               elements that each PE gives
///   reduce_scatter   n * count              count                   elements that each PE gets
///   all_to_all       n * count              n * count               elements for each pair
///   broadcast        count (root)           count                   elements
///   reduce           count                  count (root)            elements
///   gather           count                  n * count (root)        elements of each PE
///   scatter          n * count (root)       count                   elements of each PE
///   send_recv        count                  count                   elements, to the next PE, the last one's to 0
///   exchange         count                  count                   elements, swapped by the PEs 2i and 2i + 1;
///                                                                   an odd last PE copies its own
///
/// Calls in place:
///   all_reduce, broadcast, reduce   out == in
///   all_gather, gather (root)       in == out + pe * count
///   reduce_scatter, scatter (root)  out == in + pe * count
/// All others need separate buffers.

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "tandem/advanced/option_choice.h"
#include "tandem/numeric.h"
#include "tandem/reduce_op.h"
#include "tandem/stream.h"
#include "tandem/world.h"

namespace tandem {

/// The collectives, with the sizes of the table above.
enum class Collective {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kBroadcast,
  kReduce,
  kGather,
  kScatter,
  kSendRecv,
  kExchange,
};
/// The number of collectives.
inline constexpr int kCollectives = 10;

/// Returns the name, such as "all_reduce".
const char* name(Collective collective);
/// Returns the collective of that name. Throws InvalidArgument with the list of names.
Collective parse_collective(const std::string& text);
/// Returns whether the collective combines values (all_reduce, reduce_scatter, reduce).
bool reduces(Collective collective);
/// Returns the number of elements of `in` on PE `pe`; 0 where the PE has no such buffer.
Size input_elements(Collective collective, Size count, int pes, int pe, int root);
/// Returns the number of elements of `out` on PE `pe`; 0 where the PE has no such buffer.
Size output_elements(Collective collective, Size count, int pes, int pe, int root);

/// The form of values on their way between PEs. Formats of 8 bits lose precision, so only a caller chooses them.
/// The collectives all_reduce, all_gather and reduce_scatter of f32, f16 and bf16 have them; the reduction is kSum.
///
/// Each 128 consecutive elements of a PE's input (reduce_scatter: of each part) have an f32 scale, and each element
/// becomes scale * code. The scale is the greatest magnitude divided by the greatest code, rounded up to 16 significant
/// bits. If all magnitudes are below 1e-30, all 128 become 0. If a value is infinite or NaN, all 128 become NaN.
/// docs/reference/quantised.md has the bounds of the error.
enum class WireFormat {
  kType,  ///< the element type: exact
  kFp8,   ///< fp8_e4m3, greatest code 448
  kInt8,  ///< integers, greatest code 127
};
/// Returns "type", "fp8" or "int8".
const char* name(WireFormat wire);
/// Returns the format of that name. Throws InvalidArgument with the list of names.
WireFormat parse_wire_format(const std::string& text);

/// Symmetric memory through which plans copy buffers that peers cannot reach. Plans may share it if their runs follow
/// each other in stream order.
struct CollectiveStaging {
  Symm<std::byte> in;   ///< for inputs
  Symm<std::byte> out;  ///< for outputs
  Size bytes = 0;       ///< size of each buffer; a larger call runs in chunks
};

/// Options of a plan. All PEs of the team give the same values, except `scale`, which may differ.
struct CollectiveOptions {
  DType type = DType::kF32;      ///< element type
  ReduceOp op = ReduceOp::kSum;  ///< how values are combined, where the collective reduces
  /// The factor of this PE's values with ReduceOp::kPremulSum.
  double scale = 1;
  /// Each run of ReduceOp::kPremulSum gives the factor (CollectivePlan::run_scaled), and `scale` is not read. A kernel
  /// writes the products to staging, wherever the input lies. The rest of the run is that of ReduceOp::kSum.
  bool scale_of_run = false;
  int root = 0;  ///< PE of the team that holds the whole, for collectives with a root
  /// The largest `count` of a run.
  Size max_count = 0;
  /// The form of values between PEs. kFp8 and kInt8 have one algorithm, "quantised".
  WireFormat wire = WireFormat::kType;
  /// Name of the algorithm. Empty: the selection table chooses by size and team.
  std::string algorithm = {};
  /// Blocks of the kernel; 0 chooses by size. For a copy-engine algorithm these are the blocks that reduce or copy
  /// within the GPU; with 0 a copy engine copies there too.
  int blocks = 0;
  int threads = 512;  ///< threads of a block
  /// File of a selection table (docs/reference/machines.md) that takes precedence over the builtin ones. Empty: the
  /// file that TANDEM_SELECTION names, if any.
  std::string selection = {};
  /// Whether `in` or `out` of a run may lie in memory that peers cannot reach (tandem/advanced/local_handle.h). Buffers
  /// that peers access (AlgorithmInfo::peer_access) are then copied through staging, in stream order; others are used
  /// in place. The choice of an algorithm accounts for these copies. The value may differ between PEs only if the named
  /// algorithm does not let peers access that buffer.
  bool local_in = false;
  /// The same for `out`.
  bool local_out = false;
  /// Staging for such buffers. None: the plan allocates enough for max_count.
  CollectiveStaging staging = {};
};

/// The factor of this PE's values in one run, an element of the plan's type.
struct RunScale {
  /// Its address, in memory that the device reads while the run executes. Null: `value` holds the element.
  const void* at = nullptr;
  std::array<std::byte, 8> value{};  ///< the bytes of the element
};

/// A collective that is ready to run: algorithm, grid, signals and staging are fixed.
class CollectivePlan {
 public:
  /// Returns the plan's heap memory without waiting; it is reused once all PEs have destroyed their plans. None of the
  /// plan's work may be pending on this PE, and no captured graph may still contain it.
  virtual ~CollectivePlan() = default;
  /// Enqueues one run. All PEs of the team call it with the same count, in the same order.
  ///
  /// A run allocates nothing and never blocks the host, so a CUDA graph can capture it. Events must order runs in
  /// different streams. Peers access the buffers only during the run; afterwards they are free in stream order.
  ///
  /// `in` and `out` are the same heap buffers on all PEs, also on PEs that have no elements. They may start at any
  /// element; multiples of 16 bytes are the fastest. With CollectiveOptions::local_in or local_out the buffer may be
  /// any memory of this PE.
  ///
  /// Throws InvalidArgument if `count` is negative or above max_count, or if a buffer is missing. Where calls are
  /// compared (the default), it also throws for buffers that overlap without being in place. It refuses
  /// a heap buffer that is too small for the run. It refuses memory that peers cannot reach, too, unless the options
  /// announce it.
  virtual void run(Stream& stream, Symm<const std::byte> in, Symm<std::byte> out, Size count) = 0;
  /// Does the same with this run's factor. Throws InvalidArgument unless the plan has CollectiveOptions::scale_of_run;
  /// `run` throws it for a plan that has.
  virtual void run_scaled(Stream& stream, Symm<const std::byte> in, Symm<std::byte> out, Size count,
                          const RunScale& scale);
  /// Returns the name of the algorithm.
  virtual const std::string& algorithm() const = 0;
  /// Returns the blocks of the kernel's grid; 0 for algorithms without such a grid (copy engines, groups).
  virtual int blocks() const { return 0; }
  /// Returns the algorithm, the blocks and the threads of a block, with the source of each.
  const std::vector<OptionChoice>& choices() const { return choices_; }

 private:
  friend std::unique_ptr<CollectivePlan> make_collective(World& world, Collective collective,
                                                         const CollectiveOptions& options, const Team& team);
  std::vector<OptionChoice> choices_;
  detail::PlanMemory memory_;
};

/// The buffers of a call that peers access directly. These must be symmetric; any other buffer may be plain device
/// memory. The value applies within one node. Between nodes the NIC accesses both buffers, so both must be symmetric.
enum class PeerAccess { kBoth, kInput, kOutput, kNeither };

/// Description of an algorithm and of where it can run.
struct AlgorithmInfo {
  Collective collective;  ///< the collective that it computes
  std::string name;       ///< the name within the collective, such as "ring"
  std::string summary;    ///< one line for people
  /// Whether all PEs of the team must be reachable by loads and stores.
  bool one_node_only = false;
  /// Whether copy engines write to peers' buffers. Their queues continue even if the devices detect a mismatch of
  /// calls, so such an algorithm is refused where World::checks_calls().
  bool by_copy_engine = false;
  PeerAccess peer_access = PeerAccess::kBoth;  ///< the buffers that peers access

  /// Returns whether peers access the input.
  bool peers_access_input() const { return peer_access == PeerAccess::kBoth || peer_access == PeerAccess::kInput; }
  /// Returns whether peers access the output.
  bool peers_access_output() const { return peer_access == PeerAccess::kBoth || peer_access == PeerAccess::kOutput; }
};

/// Returns all algorithms. The first of each collective is its default on one node where no table has an entry.
const std::vector<AlgorithmInfo>& collective_algorithms();

/// An algorithm and its grid.
struct CollectiveChoice {
  std::string algorithm;                                ///< its name
  int blocks = 0;                                       ///< 0: chosen by size
  OptionSource algorithm_source = OptionSource::kRule;  ///< who chose the algorithm
  OptionSource blocks_source = OptionSource::kRule;     ///< who chose the blocks
  std::string reason = {};  ///< the table and its entry, or the rule; empty for the caller's algorithm
};
/// Returns the choice of `make_collective` where the options leave it open: the entry of this machine's selection
/// table. Throws InvalidArgument for invalid options and for a damaged table.
CollectiveChoice choose_collective(const World& world, Collective collective, const CollectiveOptions& options,
                                   const Team& team);

/// Makes a plan for `team` (default: the world). All PEs of the team call it. It allocates on the symmetric heap, so
/// all PEs of the world must make the same plans in the same order. Throws InvalidArgument for options that are wrong,
/// such as a root outside the team, and Unsupported for a named algorithm that this team cannot run.
std::unique_ptr<CollectivePlan> make_collective(World& world, Collective collective, const CollectiveOptions& options);
/// The same for the PEs of `team`. Root and buffers are numbered within the team.
std::unique_ptr<CollectivePlan> make_collective(World& world, Collective collective, const CollectiveOptions& options,
                                                const Team& team);

}  // namespace tandem
