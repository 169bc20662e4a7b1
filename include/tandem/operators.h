#pragma once
/// Overlapped operators of tensor parallelism: a GEMM and the collective beside it, as plan + run.
///
/// The global problem is m x n x k over all PEs of the world. Shards are equal pieces (tandem::split; the last
/// may be shorter), so nothing needs to divide anything.
///
///   operator              a (each PE)       b                 c                 c is
///   all_gather_gemm       (m shard) x k     (n shard) x k     m x (n shard)     gather(a) * b^T, of each of several b
///   gemm_reduce_scatter   m x (k shard)     n x (k shard)     (m shard) x n     own rows of the PEs' sum of a * b^T
///   gemm_all_reduce       m x (k shard)     n x (k shard)     m x n             the PEs' sum of a * b^T
///   (a shard: this PE's piece)
///
/// All matrices are row-major and dense, A and B of OperatorOptions::type, C of result_type(), products summed in f32.
/// Bias, activation and the scales of fp8 are those of Gemm (tandem/gemm.h).

#include <memory>
#include <optional>
#include <span>
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

/// Who adds up the partial sums of gemm_reduce_scatter and gemm_all_reduce in their overlapped form.
enum class Reduction {
  kOwner,  ///< the owner, in PE order, when all of them have arrived
  /// every PE's GEMM: it adds its own to what it got and the sum goes on (GemmChain), by copy engines or stored by the
  /// GEMM itself (copy_by). No pass over memory is left for the owner. On one node only, in the order peers_first.
  kChain,
};

/// How an operator is carried out. All forms use the same transport.
enum class Form {
  kSuitable,           ///< overlapped, but sequential for runs of so few rows that the shards do not fill tiles
  kOverlapped,         ///< the GEMM waits tile by tile / sends tile by tile
  kSequential,         ///< the whole collective, then the whole GEMM (or the other way round): the baseline
  kDecomposed,         ///< the GEMM cut into one chunk for each shard between stream waits: the second baseline
  kComputeOnly,        ///< the GEMM alone, on all SMs; the result is not meaningful
  kCommunicationOnly,  ///< the collective alone; the result is not meaningful
};
/// "suitable", "overlapped", "sequential", "decomposed", "compute_only", "communication_only".
const char* name(Form form);

/// Names that OperatorOptions::order takes:
///   all_gather_gemm       own_first        own shard, then the next PE's, and so on round
///                         ring             own shard, then the previous PE's, and so on
///                         interleaved      own shard, then part 0 of every peer, part 1, ...: for a full mesh
///                         own_node_first   own shard, own node's, then the other nodes' as they arrive
///   gemm_reduce_scatter   peers_first        the next PE's shard first, own last
///                         other_nodes_first  shards of other nodes first, then the own node's, own last
///   gemm_all_reduce       parts_first        part 0 of every shard, then part 1, ...
///                         peers_first        the next PE's shard first, own last
/// Any of them is right on any machine; the transport sends in the order in which the GEMM consumes.
std::vector<std::string> tile_orders(Operator op);

struct OperatorOptions {
  /// The largest global problem: m from 0 (nothing to do), n and k from 1. On GPUs every PE's rows of A, B and C are
  /// multiples of 16 bytes: its part of n or k is a multiple of 8 elements of bf16.
  Size m = 0, n = 0, k = 0;
  /// all_gather_gemm: rows of each of several B for one gather (query, key and value; gate and up), n in all. Empty:
  /// one B.
  std::vector<Size> ns = {};
  DType type = DType::kBF16;  ///< of A and B: bf16, f16, fp8_e4m3, and in the simulator f32
  /// Of C, and of partial sums on their way. Nothing: that of A and B, bf16 for fp8. For fp8 bf16, f16, and for
  /// all_gather_gemm fp8_e4m3.
  std::optional<DType> out_type = {};
  /// Each B as its transpose, as above, or as it is in the product: k x (n shard), or (k shard) x n. On GPUs fp8 takes
  /// the former alone: Hopper's tensor cores want its operands along k, so cuBLASLt takes no other either ("TN format"
  /// in its documentation). A plan does not transpose: whether B changes between runs is the caller's to know.
  BLayout b_layout = BLayout::kNxK;
  /// Of the sums over all PEs, bias included, in f32 before they are rounded, in every form.
  Activation activation = Activation::kNone;
  bool a_scale_per_row = false;     ///< fp8: OperatorCall::a_scale has one for each row, else one for all of A
  bool b_scale_per_column = false;  ///< fp8: those of b_scale have one for each column of C, else one for all
  Form form = Form::kSuitable;
  /// Where form, copy_by, order, reduction, shots, splits and SMs are all left open, they are taken from the tuner's
  /// cache file, if the environment variable TANDEM_OPERATOR_CACHE names one and all PEs find the same entry in it
  /// (tandem/operator_tuning.h).
  bool use_tuned = true;
  /// gemm_reduce_scatter by SMs: pushed, the GEMM itself stores its tiles to their owner; pulled, the reduction loads
  /// them. Its other forms than kOverlapped have whole GEMMs, so there SMs always pull.
  /// gemm_all_reduce in two shots: who fetches the sums from their owners; the direction is that of the partial sums on
  /// their way to the owners, which only the overlapped form can push.
  /// Nothing: what suits the operator and its sizes.
  std::optional<CopyBy> copy_by = {};
  Direction direction = Direction::kPush;
  /// Nothing: what suits the operator and the number of PEs. A chain pushes, in the order peers_first; all_gather_gemm,
  /// which adds nothing up, has none.
  std::optional<Reduction> reduction = {};
  /// gemm_all_reduce within a node: 1, every PE gets all partial sums and adds them up (few rows); 2, the owner of a
  /// shard adds, the others fetch (many rows); 0, by the rows of the run.
  int shots = 0;
  /// Pieces of each shard that are signalled by themselves, 1 to 8; cut at multiples of tile_m. 0: what suits.
  int splits = 0;
  /// One of tile_orders(op); empty: what suits the machine's fabric.
  std::string order = {};
  /// On GPUs, where nothing else but the problem is given, what suits its size takes the place of 128x256.
  int tile_m = 128, tile_n = 256;
  /// Row panels of tiles that are computed together (Gemm::panel_group); 0: all of a piece.
  int panel_group = 8;
  /// SMs that communicate and are not the GEMM's: all but one (on GPUs four) at most; -1: what the transport needs.
  /// all_gather_gemm: blocks of the SM transport, at least 1 there. gemm_reduce_scatter: blocks that reduce while the
  /// GEMM runs; with 0 all SMs reduce after it. gemm_all_reduce in two shots: the same; as a chain: blocks that fetch
  /// sums while it runs, more of them do after it; with 0 copy engines fetch, where they are what copies.
  int communication_sms = -1;

  DType result_type() const { return out_type ? *out_type : size_of(type) == 1 ? DType::kBF16 : type; }
};

/// The options that were measured best on GPUs for such a problem (src/ops/selection.cpp), to be changed or given to
/// make_operator as they are. On GPUs, plans take them where the caller left a choice open.
OperatorOptions selected_options(const World& world, Operator op, Size m, Size n, Size k, DType type);

/// One run of an operator: the matrices of this PE, anywhere in its memory, on GPUs at multiples of 16 bytes. C
/// overlaps none of the others.
struct OperatorCall {
  Size m = 0;  ///< rows of the global problem in this run
  const void* a = nullptr;
  std::span<const void* const> b;
  std::span<void* const> c;  ///< as many as b
  /// One for each B, or none: its values for this PE's columns of C, of result_type() (fp8: bf16). gemm_reduce_scatter
  /// and gemm_all_reduce: all PEs give it, and PE 0's is added, once.
  std::span<const void* const> bias = {};
  /// fp8: what A's values stand for, of this PE's rows; null: 1. all_gather_gemm: one for all of A is the same on all
  /// PEs; those of rows are gathered as the rows are, and the GEMM begins when all are there.
  const float* a_scale = nullptr;
  /// fp8, one for each B, or none: likewise, of its columns in C.
  std::span<const float* const> b_scale = {};
  /// all_gather_gemm of fp8, one for each C, or none: what its values are multiplied with.
  std::span<const float* const> c_scale = {};
};

class OperatorPlan {
 public:
  /// As ~CollectivePlan: none of the plan's work may be left on this PE, in captured graphs either.
  virtual ~OperatorPlan() = default;

  /// Enqueues one run of `call.m` rows on `main` (and on streams of its own, joined before it ends). Runs follow one
  /// another: who changes streams orders them by an event. Collective: all PEs, with the same rows, in the same order.
  /// No peer touches the matrices: they may be used again after the run, in stream order. Allocates nothing on a device
  /// and waits for nothing on the host: it can be captured. Throws InvalidArgument for rows that are negative or more
  /// than the plan's, another number of matrices, a null address of one that has elements, one that does not begin at a
  /// multiple of 16 bytes (GPUs), one in a buffer of the heap that is too small for it, a C that overlaps another
  /// matrix, or scales that the options do not ask for.
  void run(Stream& main, const OperatorCall& call);
  void run(Stream& main, Size m, const void* a, const void* b, void* c) { run(main, {m, a, {&b, 1}, {&c, 1}}); }
  /// With all rows of the plan.
  void run(Stream& main, const void* a, const void* b, void* c) { run(main, options_.m, a, b, c); }

  /// With all choices made that the caller left open; `form` is that of runs with all rows.
  const OperatorOptions& options() const { return options_; }
  /// How runs of `m` rows are carried out: name(Form), or of an overlapped gemm_all_reduce the way that so many rows
  /// take
  ///   few_rows     the GEMM's blocks add up what they computed (GPUs)
  ///   packets      a whole GEMM, then an all-reduce by packets
  ///   one_shot     tiles for all PEs, which add them up
  ///   sequential   a whole GEMM, then an all-reduce
  ///   chain        sums grow from PE to PE within the GEMMs, and are fetched
  ///   two_shot     the owners add up, the others fetch
  ///   chunks       between nodes: chunks of rows, each one's all-reduce beside the next one's GEMM
  ///   by_shards    between nodes, with an activation: as gemm_reduce_scatter, then an all-gather
  virtual std::string way(Size m) const;

 protected:
  explicit OperatorPlan(const OperatorOptions& options) : options_(options) {}

 private:
  friend std::unique_ptr<OperatorPlan> make_operator(World& world, Operator op, const OperatorOptions& options);
  virtual void enqueue(Stream& main, const OperatorCall& call) = 0;

  OperatorOptions options_;
  Operator op_ = Operator::kAllGatherGemm;
  Team team_{.size = 0};  // 0: it is part of another plan, which has checked the call
  std::optional<World> world_;
  Size alignment_ = 1;        // of matrices, in bytes
  CallLog* calls_ = nullptr;  // where PEs compare their runs
  std::size_t number_ = 0;    // there
  detail::PlanMemory memory_;
};

/// Makes a plan over all PEs of the world; collective (see make_collective). Throws InvalidArgument naming the option,
/// what was given and what is allowed. Every option works on one node and between nodes.
std::unique_ptr<OperatorPlan> make_operator(World& world, Operator op, const OperatorOptions& options);

}  // namespace tandem
