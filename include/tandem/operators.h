#pragma once
/// Overlapped operators of tensor parallelism: a GEMM and the collective beside it, as plan + run.
///
/// The global problem is m x n x k over all PEs of the world. Shards are equal pieces (tandem::split; the last
/// may be shorter), so nothing needs to divide anything.
///
///   all_gather_gemm       a: rows shard x k     b: (n shard) x k     c: m x (n shard)      c = gather(a) * b^T
///   gemm_reduce_scatter   a: m x (k shard)      b: n x (k shard)     c: (m shard) x n      c = own rows of sum over
///   PEs of a * b^T
///   gemm_all_reduce       a: m x (k shard)      b: n x (k shard)     c: m x n              c = sum over PEs of a * b^T
///
/// All matrices are row-major and dense, elements of OperatorOptions::type, products summed in f32.

#include <memory>
#include <string>
#include <vector>

#include "tandem/gemm.h"
#include "tandem/stream.h"
#include "tandem/world.h"

namespace tandem {

enum class Operator { kAllGatherGemm, kGemmReduceScatter, kGemmAllReduce };
/// "all_gather_gemm", "gemm_reduce_scatter", "gemm_all_reduce".
const char* name(Operator op);

/// Who moves the bytes within a node.
enum class CopyBy { kCopyEngine, kSm };
/// Whether the owner of data writes it to its peers, or they read it.
enum class Direction { kPush, kPull };

/// Who adds up the partial sums of gemm_reduce_scatter in its overlapped form.
enum class Reduction {
  kOwner,  ///< the owner, in PE order, when all of them have arrived
  /// every PE's GEMM: it adds its own to what it got and the sum goes on (GemmChain), by copy engines or stored by the
  /// GEMM itself (copy_by). No pass over memory is left for the owner. On one node only, in the order peers_first.
  kChain,
};

/// How an operator is carried out. All forms use the same transport.
enum class Form {
  kOverlapped,         ///< the GEMM waits tile by tile / sends tile by tile
  kSequential,         ///< the whole collective, then the whole GEMM (or the other way round): the baseline
  kDecomposed,         ///< the GEMM cut into one chunk for each shard between stream waits: the second baseline
  kComputeOnly,        ///< the GEMM alone, on all SMs; the result is not meaningful
  kCommunicationOnly,  ///< the collective alone; the result is not meaningful
};
/// "overlapped", "sequential", "decomposed", "compute_only", "communication_only".
const char* name(Form form);

/// Names that OperatorOptions::order takes:
///   all_gather_gemm       own_first        own shard, then the next PE's, and so on round
///                         ring             own shard, then the previous PE's, and so on
///                         interleaved      own shard, then part 0 of every peer, part 1, ...: for a full mesh
///                         own_node_first   own shard, own node's, then the other nodes' as they arrive
///   gemm_reduce_scatter   peers_first        the next PE's shard first, own last
///                         other_nodes_first  shards of other nodes first, then the own node's, own last
///   gemm_all_reduce       peers_first        the next PE's shard first, own last
/// Any of them is right on any machine; the transport sends in the order in which the GEMM consumes.
std::vector<std::string> tile_orders(Operator op);

struct OperatorOptions {
  Size m = 0, n = 0, k = 0;   ///< the global problem: m from 0 (nothing to do), n and k from 1
  DType type = DType::kBF16;  ///< bf16, f16 or f32
  Form form = Form::kOverlapped;
  /// gemm_reduce_scatter by SMs: pushed, the GEMM itself stores its tiles to their owner; pulled, the reduction loads
  /// them. Its other forms than kOverlapped have whole GEMMs, so there SMs always pull.
  CopyBy copy_by = CopyBy::kCopyEngine;
  Direction direction = Direction::kPush;
  Reduction reduction = Reduction::kOwner;
  /// Pieces of each shard that are signalled by themselves, 1 to 8; cut at multiples of tile_m.
  int splits = 1;
  /// One of tile_orders(op); empty: what suits the machine's fabric.
  std::string order = {};
  int tile_m = 128, tile_n = 256;
  /// Row panels of tiles that are computed together (Gemm::panel_group); 0: all of a piece.
  int panel_group = 8;
  /// SMs that communicate and are not the GEMM's, less than the machine has; -1: what the transport needs.
  /// all_gather_gemm: blocks of the SM transport, at least 1 there. gemm_reduce_scatter: blocks that reduce while the
  /// GEMM runs; with 0 all SMs reduce after it.
  int communication_sms = -1;
};

/// The options that were measured best for such a problem (src/ops/selection.cpp), to be changed or given to
/// make_operator as they are.
OperatorOptions selected_options(const World& world, Operator op, Size m, Size n, Size k, DType type);

class OperatorPlan {
 public:
  virtual ~OperatorPlan() = default;
  /// Enqueues one run on `main` (and on streams of its own, joined before it ends). Collective: all PEs, in the same
  /// order. a, b and c are this PE's, anywhere in its memory; no peer touches them, so they may be used again after the
  /// run, in stream order.
  virtual void run(Stream& main, const void* a, const void* b, void* c) = 0;
};

/// gemm_all_reduce is, overlapped, gemm_reduce_scatter as a chain whose own rows copy engines push to all peers while
/// it goes on (two-shot; one node only); sequential, a whole GEMM and then the all-reduce that suits the size, which
/// for few rows is a kernel of packets. It has no decomposed form.
///
/// Makes a plan over all PEs of the world; collective (see make_collective). Throws InvalidArgument naming the option,
/// what was given and what is allowed. Every option works on one node and between nodes.
std::unique_ptr<OperatorPlan> make_operator(World& world, Operator op, const OperatorOptions& options);

}  // namespace tandem
