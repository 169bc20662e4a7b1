#pragma once
/// Overlapped operators of tensor parallelism: a GEMM and the collective beside it, as plan and run.
///
/// The global problem is m x n x k over all PEs of the world. A shard is one PE's part of a dimension. Shards are equal
/// (tandem::split), except that the last may be shorter, so no size needs to be divisible.
///
///   operator              a (each PE)       b                 c                 c is
///   all_gather_gemm       (m shard) x k     (n shard) x k     m x (n shard)     gather(a) * b^T, of each of several b
///   gemm_reduce_scatter   m x (k shard)     n x (k shard)     (m shard) x n     own rows of the sum of a * b^T
///   gemm_all_reduce       m x (k shard)     n x (k shard)     m x n             the sum of a * b^T over all PEs
///
/// All matrices are row-major and dense. A and B have OperatorOptions::type, C has result_type(), and products are
/// summed in f32. Gemm (tandem/advanced/gemm.h) defines bias, activation and the scales of fp8.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tandem/advanced/gemm.h"
#include "tandem/advanced/option_choice.h"
#include "tandem/layer/all_reduce_norm.h"
#include "tandem/stream.h"
#include "tandem/world.h"

namespace tandem {

/// The operators of the table above.
enum class Operator { kAllGatherGemm, kGemmReduceScatter, kGemmAllReduce };
/// Returns "all_gather_gemm", "gemm_reduce_scatter" or "gemm_all_reduce".
const char* name(Operator op);

/// The transport within a node: copy engines, or SMs by loads and stores.
enum class CopyBy { kCopyEngine, kSm };
/// Whether the owner of data writes it to its peers (push), or the peers read it (pull).
enum class Direction { kPush, kPull };

/// The place where gemm_reduce_scatter and gemm_all_reduce add partial sums in their overlapped form.
enum class Reduction {
  kOwner,  ///< the owner of a shard adds all partial sums in PE order, once all have arrived
  /// A ring reduce-scatter fused into the epilogue (GemmRing): each PE's GEMM adds its tile to the sum that it
  /// received. Copy engines or stores of the GEMM pass the result on (copy_by). The owner needs no extra pass over
  /// memory. It runs on one node only, in the order peers_first.
  kChain,
};

/// The execution strategy of an operator. All strategies use the same transport.
enum class Form {
  kSuitable,           ///< overlapped, but sequential for runs with so few rows that shards do not fill tiles
  kOverlapped,         ///< the GEMM waits for input, or sends output, tile by tile
  kSequential,         ///< the whole collective and the whole GEMM, one after the other: the first baseline
  kDecomposed,         ///< one GEMM for each shard, with stream waits between them: the second baseline
  kComputeOnly,        ///< the GEMM alone, on all SMs; the result is not meaningful
  kCommunicationOnly,  ///< the collective alone; the result is not meaningful
};
/// Returns "suitable", "overlapped", "sequential", "decomposed", "compute_only" or "communication_only".
const char* name(Form form);

/// Returns the names that OperatorOptions::order accepts:
///   all_gather_gemm       own_first          own shard, then the next PE's, and so on around the ring
///                         ring               own shard, then the previous PE's, and so on
///                         interleaved        own shard, then chunk 0 of every peer, chunk 1, ...: for a full mesh
///                         own_node_first     own shard, own node's shards, then other nodes' shards as they arrive
///   gemm_reduce_scatter   peers_first        the next PE's shard first, own shard last
///                         other_nodes_first  shards of other nodes first, then the own node's, own shard last
///   gemm_all_reduce       parts_first        chunk 0 of every shard, then chunk 1, ...
///                         peers_first        the next PE's shard first, own shard last
/// Every order gives correct results on every machine. The transport sends in the order in which the GEMM consumes.
std::vector<std::string> tile_orders(Operator op);

/// The steps that may follow the sums of gemm_reduce_scatter and gemm_all_reduce, in the rows that a PE gets:
///
///   sum = sums + residual                      rounded to result_type()
///   c   = norm(sum) * weight + norm_bias       in result_type(), or quantised to fp8_e4m3
///
/// all_gather_gemm may take the same steps before the gather, in this PE's rows of A, which then arrive as they are
/// normed:
///
///   sum = a + residual                         rounded to the type of A
///   a'  = norm(sum) * weight + norm_bias       in the type of A; c = gather(a') * b^T
///
/// If OperatorOptions::type is fp8_e4m3, A, residual, vectors and sum have result_type(), and a' is quantised. The norm
/// then makes the scales that the options announce: for each row (a_scale_per_row), for each 128 elements
/// (block_scales), or else `scale`. OperatorCall::a_scale is null.
///
/// tandem/layer/all_reduce_norm.h defines the norms and the scales. All PEs get the same bits. A strategy may round the
/// sums of products before it adds the residual, so the last bit may depend on the strategy.
struct OperatorNorm {
  Norm norm = Norm::kNone;                          ///< the norm of each row
  bool residual = false;                            ///< whether a residual is added
  bool norm_bias = false;                           ///< whether a bias is added to each normed row
  bool sum = false;                                 ///< whether `sum` is an output, too
  double epsilon = 1e-6;                            ///< added to the mean of squares; positive
  Quantisation quantisation = Quantisation::kNone;  ///< the form of c; all_gather_gemm: none
  double scale = 1;  ///< of Quantisation::kStatic, or of a quantised A; positive and finite

  /// Returns whether there is any step.
  bool any() const {
    return norm != Norm::kNone || residual || norm_bias || sum || quantisation != Quantisation::kNone;
  }
};

class TransportMemory;

/// Options of a plan. All PEs give the same values. A field without a value leaves the choice to the library. It asks
/// the tuner's cache (use_tuned) first, then on GPUs the measured choices (selected_options), then its rules.
/// OperatorPlan::choices() shows the result.
struct OperatorOptions {
  /// The largest global problem. m may be 0 (no work); n and k are at least 1. On GPUs a row of a
  /// PE's A, B or C is a multiple of 16 bytes. Its part of n or k is then a multiple of 8 bf16 elements.
  Size m = 0;
  Size n = 0;  ///< columns of C over all PEs
  Size k = 0;  ///< depth of the product
  /// all_gather_gemm with several weights for one gather (query, key and value; gate and up): the rows of each B, whose
  /// sum is n. Empty: one B.
  std::vector<Size> ns = {};
  DType type = DType::kBF16;  ///< type of A and B: bf16, f16, fp8_e4m3; not on GPUs also f32
  /// Type of C and of partial sums in flight. Default: the type of A, and bf16 for fp8. For fp8 it may be bf16 or f16,
  /// and for all_gather_gemm also fp8_e4m3.
  std::optional<DType> out_type = {};
  /// Layout of each B: transposed as in the table above, or k x (n shard), respectively (k shard) x n. On GPUs fp8
  /// needs the transposed layout, because Hopper's tensor cores read fp8 operands along k (cuBLASLt documents the same
  /// limit as "TN format"). A plan never transposes, since only the caller knows whether B changes between runs.
  BLayout b_layout = BLayout::kNxK;
  /// Applied to the complete sum (bias included) in f32, before rounding. It is the same in every strategy. For
  /// all_gather_gemm it may be gated. Then n counts the gates and the ups of B, and C has half as many columns. Each PE
  /// has a multiple of 16 gates and ups (interleave_gates in tandem/advanced/gemm.h).
  Activation activation = Activation::kNone;
  bool a_scale_per_row = false;     ///< fp8: OperatorCall::a_scale holds one scale for each row, else one for A
  bool b_scale_per_column = false;  ///< fp8: each b_scale holds one scale for each column of C, else one for B
  /// fp8: scales of blocks, as DeepSeek-V3 has them (GemmScales::blocks). A PE's a_scale is [its rows of A][ceil(k' /
  /// 128)], where k' is the depth of its A. Each b_scale is [blocks of its columns][ceil(k' / 128)]. Both are given. On
  /// GPUs the result is bf16 or f16, and bf16 with a gated activation.
  bool block_scales = false;
  /// fp8 without scales of blocks: the GEMM may be faster on GPUs with less precise sums (Gemm::fast_accumulation). It
  /// is CUBLASLT_MATMUL_DESC_FAST_ACCUM of cuBLASLt and use_fast_accum of PyTorch. Simulator and CPU PEs compute the
  /// same with it and without it.
  bool fast_accumulation = false;
  /// The steps after the sums of gemm_reduce_scatter and gemm_all_reduce, which then have no activation. For
  /// all_gather_gemm these are the steps before the gather.
  OperatorNorm norm = {};
  /// The execution strategy.
  Form form = Form::kSuitable;
  /// Whether the tuner's cache file may choose, if form, copy_by, order, reduction, shots, splits and SMs are all left
  /// open. The environment variable TANDEM_OPERATOR_CACHE names the file; all PEs must find the same entry in it
  /// (tandem/advanced/operator_tuning.h).
  bool use_tuned = true;
  /// The transport. With gemm_reduce_scatter by SMs, push lets the GEMM store its tiles to their owner, and pull lets
  /// the reduction load them. Strategies other than kOverlapped always pull. With gemm_all_reduce in two shots,
  /// `copy_by` fetches the sums from their owners. The direction is that of the partial sums; only the overlapped form
  /// can push.
  std::optional<CopyBy> copy_by = {};
  /// Whether owners write data or readers fetch it.
  Direction direction = Direction::kPush;
  /// kChain pushes, in the order peers_first. all_gather_gemm reduces nothing and accepts no value.
  std::optional<Reduction> reduction = {};
  /// The shots of gemm_all_reduce within a node. With 1 every PE receives all partial sums and adds them (few rows).
  /// With 2 the owner of a shard adds them and the others fetch the sum (many rows). With 0 the rows of the run decide.
  int shots = 0;
  /// Chunks of each shard that have a signal of their own, 1 to 8, cut at multiples of tile_m; 0 leaves it open.
  int splits = 0;
  /// One of tile_orders(op); empty leaves it open.
  std::string order = {};
  /// Tile of the GEMM. On GPUs the library replaces 128x256 if only the problem is given.
  int tile_m = 128;
  int tile_n = 256;  ///< columns of a tile
  /// Row panels of tiles that are computed together (Gemm::panel_group); 0: all panels of a chunk.
  int panel_group = 8;
  /// SMs that communicate and are not available to the GEMM; -1 leaves it open. At most all but one (on GPUs four).
  /// For all_gather_gemm these are the blocks of the SM transport, at least 1. For gemm_reduce_scatter and for
  /// gemm_all_reduce with two shots they reduce beside the GEMM; with 0 all SMs reduce after it. For gemm_all_reduce as
  /// a chain they fetch sums beside the GEMM; with 0 copy engines fetch, if they are the transport.
  int communication_sms = -1;
  /// Memory that the plan shares with others whose runs follow its own (tandem/advanced/transport_memory.h); null: its
  /// own.
  std::shared_ptr<TransportMemory> memory = {};

  /// Returns the type of the product: out_type, or its default.
  DType result_type() const { return out_type ? *out_type : size_of(type) == 1 ? DType::kBF16 : type; }
  /// Returns the type of C: result_type(), or fp8_e4m3 behind a quantisation.
  DType c_type() const { return norm.quantisation == Quantisation::kNone ? result_type() : DType::kE4M3; }
};

/// Returns the options that were measured best on GPUs for such a problem (src/operators/resolve/selection.cpp). A
/// caller may change them or pass them to make_operator. On GPUs, plans use them for each choice that the caller left
/// open.
OperatorOptions selected_options(const World& world, Operator op, Size m, Size n, Size k, DType type);

/// The arguments of one run: matrices of this PE, anywhere in its memory, on GPUs at multiples of 16 bytes. C overlaps
/// no other matrix.
struct OperatorCall {
  Size m = 0;                      ///< rows of the global problem in this run
  const void* a = nullptr;         ///< this PE's A
  std::span<const void* const> b;  ///< this PE's B, one or several
  std::span<void* const> c;        ///< one for each b
  /// One vector for each B, or none: the bias of this PE's columns of C, of type result_type() (fp8: bf16). All PEs of
  /// gemm_reduce_scatter and gemm_all_reduce pass it, and PE 0's is added once.
  std::span<const void* const> bias = {};
  /// fp8: scales of this PE's rows of A; null means 1. all_gather_gemm: a single scale is the same on all PEs. Scales
  /// of rows and of blocks are gathered like the rows, and the GEMM starts when all of them have arrived.
  const float* a_scale = nullptr;
  /// fp8: one pointer for each B, or none: scales of this PE's columns of C.
  std::span<const float* const> b_scale = {};
  /// all_gather_gemm with fp8 output: one pointer for each C, or none: the factor applied to C before rounding.
  std::span<const float* const> c_scale = {};
  /// all_gather_gemm: null, or m x k elements in this PE's memory that receive the gathered A, behind its norm.
  /// An A that the norm quantises by rows or groups arrives without its scales.
  void* gathered = nullptr;
  // The arguments of OperatorOptions::norm, which announces them. Matrices have the rows and columns of C. For
  // all_gather_gemm they have those of A and its type, and vectors k elements.
  const void* residual = nullptr;     ///< of result_type(); gemm_all_reduce: the same values on all PEs
  const void* norm_weight = nullptr;  ///< n elements of result_type(), given if there is a norm
  const void* norm_bias = nullptr;    ///< n elements of result_type()
  void* sum = nullptr;                ///< of result_type(); it may be the residual
  float* scales = nullptr;            ///< the scales of a quantised C: one for each row, or for each 128 elements of it
};

/// An operator that is ready to run: every choice is made, and its memory is allocated.
class OperatorPlan {
 public:
  /// Returns the plan's memory, as ~CollectivePlan does. None of the plan's work may be pending on this PE, and no
  /// captured graph may still contain it.
  virtual ~OperatorPlan() = default;

  /// Enqueues one run of `call.m` rows on `main`, and on streams of the plan that join `main` before the run ends. All
  /// PEs call it with the same number of rows, in the same order. Events must order runs in different streams.
  ///
  /// No peer accesses the matrices, so they are free after the run, in stream order. A run allocates no device memory
  /// and never blocks the host, so a CUDA graph can capture it.
  ///
  /// Throws InvalidArgument for a number of rows that is negative or above the plan's, and for a wrong number of
  /// matrices. It also throws for a null address of a matrix with elements, and on GPUs for one that is no multiple of
  /// 16 bytes. So it does for a C that overlaps another matrix, and for scales that the options do not announce.
  /// A matrix in a heap buffer that is too small for it is refused, too.
  void run(Stream& main, const OperatorCall& call);
  /// Runs `m` rows with one B, without bias and scales.
  void run(Stream& main, Size m, const void* a, const void* b, void* c) { run(main, {m, a, {&b, 1}, {&c, 1}}); }
  /// Runs all rows of the plan.
  void run(Stream& main, const void* a, const void* b, void* c) { run(main, options_.m, a, b, c); }

  /// Returns the options with every open choice made; `form` is the strategy of runs with all rows.
  const OperatorOptions& options() const { return options_; }
  /// Returns every option that a caller may leave open, with its value and its source. Options that follow from them,
  /// such as the numbers of rows at which the strategy changes, come after them.
  const std::vector<OptionChoice>& choices() const { return choices_; }
  /// Returns the strategy of runs with `m` rows: name(Form), or for an overlapped gemm_all_reduce one of
  ///   few_rows     the GEMM's blocks exchange and add what they computed (GPUs)
  ///   packets      a whole GEMM, then an all-reduce with packets
  ///   one_shot     every PE receives the tiles of all PEs and adds them
  ///   sequential   a whole GEMM, then an all-reduce
  ///   chain        a ring reduce-scatter in the GEMMs' epilogues; the sums are then fetched
  ///   two_shot     the owners add partial sums; the others fetch the sums
  ///   chunks       between nodes: the all-reduce of each chunk of rows runs beside the GEMM of the next chunk
  ///   by_shards    between nodes, with an activation: gemm_reduce_scatter, then an all-gather
  /// With OperatorOptions::norm, few_rows and packets include the norm; a kernel for it follows the others.
  virtual std::string strategy(Size m) const;
  /// The former name of `strategy`.
  [[deprecated("call strategy")]] std::string way(Size m) const { return strategy(m); }

 protected:
  /// Keeps the options; derived classes make the plan.
  explicit OperatorPlan(const OperatorOptions& options) : options_(options) {}

 private:
  friend std::unique_ptr<OperatorPlan> make_operator(World& world, Operator op, const OperatorOptions& options);
  virtual void enqueue(Stream& main, const OperatorCall& call) = 0;

  OperatorOptions options_;
  std::vector<OptionChoice> choices_;
  Operator op_ = Operator::kAllGatherGemm;
  Team team_{.size = 0};  // 0: it is part of another plan, which has checked the call
  std::optional<World> world_;
  Size alignment_ = 1;                 // of matrices, in bytes
  MismatchDetector* calls_ = nullptr;  // where PEs compare their runs
  std::size_t number_ = 0;             // there
  detail::PlanMemory memory_;
};

/// Makes a plan over all PEs of the world; all of them call it (see make_collective). Throws InvalidArgument with the
/// name of the option, the value given and the values allowed. Every option works on one node and between nodes.
std::unique_ptr<OperatorPlan> make_operator(World& world, Operator op, const OperatorOptions& options);

}  // namespace tandem
