#pragma once
/// Collectives: host side. A plan is one operator instance: it owns its signals, epochs and staging, and runs any
/// number of times.
///
///   auto plan = make_collective(world, Collective::kAllReduce, {.type = DType::kBF16, .max_count = count});
///   plan->run(stream, in, out, count);
///
/// Sizes are those of NCCL's calls, in elements, with n PEs:
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
///                                                                   an odd last PE keeps its own
///
/// In-place: all_reduce, broadcast and reduce with out == in; all_gather with in == out + pe * count; reduce_scatter
/// with out == in + pe * count; gather and scatter alike at the root. The others need separate buffers.

#include <memory>
#include <string>
#include <vector>

#include "tandem/numeric.h"
#include "tandem/reduce_op.h"
#include "tandem/stream.h"
#include "tandem/world.h"

namespace tandem {

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
inline constexpr int kCollectives = 10;

/// "all_reduce", ...
const char* name(Collective collective);
/// Throws InvalidArgument listing the names.
Collective parse_collective(const std::string& text);
bool reduces(Collective collective);
/// Elements of `in` / of `out` on PE `pe` for `count` (0 where the PE has none).
Size input_elements(Collective collective, Size count, int pes, int pe, int root);
Size output_elements(Collective collective, Size count, int pes, int pe, int root);

/// Symmetric memory through which plans copy what peers touch of memory that they do not reach. Plans may share it
/// whose runs follow each other in stream order.
struct CollectiveStaging {
  Symm<std::byte> in, out;
  Size bytes = 0;  ///< of each; larger calls go in pieces
};

struct CollectiveOptions {
  DType type = DType::kF32;
  ReduceOp op = ReduceOp::kSum;
  /// ReduceOp::kPremulSum: what this PE's values are multiplied with.
  double scale = 1;
  int root = 0;
  /// Largest `count` of a run.
  Size max_count = 0;
  /// Name of the algorithm; empty: the one that suits size and team.
  std::string algorithm = {};
  /// Blocks of the kernel; 0: as many as suit the size. Of a copy-engine algorithm: of the kernel that copies what
  /// stays on the GPU (0: a copy engine does), or that reduces.
  int blocks = 0;
  int threads = 512;
  /// File of a selection table (docs/machines.md) that is asked before the builtin ones; empty: the one that
  /// TANDEM_SELECTION names, if any.
  std::string selection = {};
  /// Whether runs may get `in` / `out` in memory that peers do not reach (tandem/only_here.h), on every PE other
  /// memory. What the algorithm has peers touch (AlgorithmInfo::peers_touch) is copied from or to staging in stream
  /// order, wherever it lies; the rest is used where it lies. The choice of an algorithm takes the copies into account.
  /// Alike on all PEs, but where an algorithm is named that has no peer touch the buffer.
  bool local_in = false;
  bool local_out = false;
  /// Of plans with such memory; none: a plan allocates what it needs for max_count.
  CollectiveStaging staging = {};
};

class CollectivePlan {
 public:
  /// Gives the plan's part of the heap back, and waits for nobody: it is used again when all PEs have destroyed theirs.
  /// None of the plan's work may be left on this PE, in captured graphs either.
  virtual ~CollectivePlan() = default;
  /// Enqueues one run. Collective: all PEs of the team, with the same count, in the same order. A run allocates nothing
  /// and waits for nothing on the host, so that it can be captured in a graph; runs in several streams are ordered by
  /// events.
  /// `in` and `out` are the same buffers of the world's heap on all PEs, given on every PE, where it has no elements
  /// too; any element may be the first, multiples of 16 bytes are the quickest. Peers touch them within the run alone:
  /// in stream order they may be used again. With CollectiveOptions::local_in / local_out: any memory of this PE.
  /// Throws InvalidArgument for a count that is negative or above max_count, for a buffer that is none, and (where PEs'
  /// calls are compared, as they are by default) for a buffer of the heap that is too small for the run, for buffers
  /// that overlap otherwise than in-place, and for memory that peers do not reach where the options did not announce
  /// it.
  virtual void run(Stream& stream, Symm<const std::byte> in, Symm<std::byte> out, Size count) = 0;
  /// Name of the algorithm.
  virtual const std::string& algorithm() const = 0;

 private:
  friend std::unique_ptr<CollectivePlan> make_collective(World& world, Collective collective,
                                                         const CollectiveOptions& options, const Team& team);
  detail::PlanMemory memory_;
};

/// Which of a call's two buffers an algorithm has peers read or write, or has to know of a peer where it is, on one
/// node. The other may be any memory of the PE's own. Between nodes NICs read and write them as well: both are
/// symmetric.
enum class PeersTouch { kBoth, kInput, kOutput, kNeither };

/// What an algorithm is, and where it can run.
struct AlgorithmInfo {
  Collective collective;
  std::string name;
  std::string summary;
  /// Every PE of the team must be load/store reachable.
  bool one_node_only = false;
  /// Copy engines write to peers' buffers, from queues that a kernel that ends early cannot hold back; refused where
  /// World::checks_calls().
  bool by_copy_engine = false;
  PeersTouch peers_touch = PeersTouch::kBoth;

  bool peers_touch_input() const { return peers_touch == PeersTouch::kBoth || peers_touch == PeersTouch::kInput; }
  bool peers_touch_output() const { return peers_touch == PeersTouch::kBoth || peers_touch == PeersTouch::kOutput; }
};

/// All algorithms, the default of each collective for one node first.
const std::vector<AlgorithmInfo>& collective_algorithms();

/// What a plan runs with.
struct CollectiveChoice {
  std::string algorithm;
  int blocks = 0;  ///< 0: as many as suit the size
};
/// What `make_collective` takes where the options leave it open: what the selection table of this machine says. Throws
/// InvalidArgument for a damaged table too.
CollectiveChoice choose_collective(const World& world, Collective collective, const CollectiveOptions& options,
                                   const Team& team);

/// Makes a plan for `team` (default: the world). Collective over the team; allocates on the symmetric heap, so that all
/// PEs of the world must make the same plans in the same order. Throws InvalidArgument (unknown algorithm, root outside
/// of the team, ...) and Unsupported (an algorithm that this team cannot run, by name).
std::unique_ptr<CollectivePlan> make_collective(World& world, Collective collective, const CollectiveOptions& options);
std::unique_ptr<CollectivePlan> make_collective(World& world, Collective collective, const CollectiveOptions& options,
                                                const Team& team);

}  // namespace tandem
