#pragma once
/// Overlapped operators of tensor parallelism: a GEMM and the collective beside it, as plan + run.
///
/// The global problem is m x n x k over all PEs of the world. Shards are equal pieces (tandem::split; the last
/// may be shorter), so nothing needs to divide anything.
///
///   all_gather_gemm       a: rows shard x k     b: (n shard) x k     c: m x (n shard)      c = gather(a) * b^T
///   gemm_reduce_scatter   a: m x (k shard)      b: n x (k shard)     c: (m shard) x n      c = own rows of sum over PEs of a * b^T
///
/// All matrices are row-major and dense, elements of OperatorOptions::type, products summed in f32.

#include <memory>
#include <string>

#include "tandem/gemm.h"
#include "tandem/stream.h"
#include "tandem/world.h"

namespace tandem {

enum class Operator { kAllGatherGemm, kGemmReduceScatter };
/// "all_gather_gemm", "gemm_reduce_scatter".
const char* name(Operator op);

/// Who moves the bytes within a node.
enum class CopyBy { kCopyEngine, kSm };
/// Whether the owner of data writes it to its peers, or they read it.
enum class Direction { kPush, kPull };

/// How an operator is carried out.
enum class Form {
  kOverlapped,         ///< the GEMM waits tile by tile / sends tile by tile
  kSequential,         ///< the whole collective, then the whole GEMM (or the other way round): the baseline
  kDecomposed,         ///< the GEMM cut into one chunk for each shard between stream waits: the second baseline
  kComputeOnly,        ///< the GEMM alone; the result is not meaningful
  kCommunicationOnly,  ///< the collective alone
};

struct OperatorOptions {
  Size m = 0, n = 0, k = 0;  ///< the global problem
  DType type = DType::kBF16;
  Form form = Form::kOverlapped;
  CopyBy copy_by = CopyBy::kCopyEngine;
  Direction direction = Direction::kPush;
  /// Pieces of each shard that are signalled by themselves, 1 to 8.
  int splits = 1;
  /// "own_first", "ring", "interleaved" (all_gather_gemm); "peers_first" (gemm_reduce_scatter); empty: what suits the machine's fabric.
  std::string order = {};
  int tile_m = 128, tile_n = 256;
  /// SMs that communicate and are not the GEMM's; -1: what the transport needs.
  int communication_sms = -1;
};

class OperatorPlan {
 public:
  virtual ~OperatorPlan() = default;
  /// Enqueues one run on `main` (and on streams of its own, joined before it ends). Collective: all PEs, in the same order.
  virtual void run(Stream& main, const void* a, const void* b, void* c) = 0;
};

/// Makes a plan over all PEs of the world; collective (see make_collective). Throws InvalidArgument naming the option, Unsupported
/// where the machine cannot do what was asked (loads and stores between nodes, say).
std::unique_ptr<OperatorPlan> make_operator(World& world, Operator op, const OperatorOptions& options);

}  // namespace tandem
