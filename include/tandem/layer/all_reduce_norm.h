#pragma once
/// All-reduce with the steps that follow it in a transformer layer: bias, residual, norm and quantisation, in one call.
///
///   auto plan = make_all_reduce_norm(world, {.type = DType::kBF16, .hidden = 8192, .max_rows = 64});
///   plan->run(stream, {.rows = 16, .in = in, .residual = residual, .weight = weight, .out = out, .sum = sum});
///
/// For each row of `hidden` elements, with n PEs:
///
///   sum = in of PE 0 + ... + in of PE n-1 + bias + residual     in f32 and in this order, rounded to the type once
///   y   = sum                                                     Norm::kNone
///       = sum / sqrt(mean(sum^2) + epsilon) * weight + norm_bias  Norm::kRms
///       = (sum - mean(sum)) / sqrt(mean((sum - mean(sum))^2) + epsilon) * weight + norm_bias   Norm::kLayer
///   out = y in the type, or y / scale in fp8_e4m3                 Quantisation
///
/// y is computed in f32 from the rounded sum. All PEs get the same bits, in every run.

#include <memory>
#include <string>
#include <vector>

#include "tandem/advanced/option_choice.h"
#include "tandem/numeric.h"
#include "tandem/stream.h"
#include "tandem/world.h"

namespace tandem {

/// The norm of a row.
enum class Norm { kNone, kRms, kLayer };
/// Returns "none", "rms" or "layer".
const char* name(Norm norm);
/// Returns the norm of that name. Throws InvalidArgument with the list of names.
Norm parse_norm(const std::string& text);

/// The scale of an fp8_e4m3 output.
enum class Quantisation {
  kNone,    ///< the output has the type of the input
  kStatic,  ///< AllReduceNormOptions::scale
  kRow,     ///< one for each row: its greatest |y| / 448
  kGroup,   ///< one for each 128 elements of a row: their greatest |y| / 448
};
/// Returns "none", "static", "row" or "128".
const char* name(Quantisation quantisation);
/// Returns the quantisation of that name. Throws InvalidArgument with the list of names.
Quantisation parse_quantisation(const std::string& text);

/// Options of a plan, the same on all PEs.
struct AllReduceNormOptions {
  DType type = DType::kBF16;  ///< of in, residual, bias, weight, norm_bias and sum: f32, f16 or bf16
  Size hidden = 0;            ///< elements of a row: 1 to 1,048,576
  Size max_rows = 0;          ///< the most rows of a run
  Norm norm = Norm::kRms;     ///< the norm of each row
  double epsilon = 1e-6;      ///< added to the mean of squares; positive
  bool residual = true;       ///< whether a residual is added
  bool bias = false;          ///< whether a bias is added to each row of sums
  bool norm_bias = false;     ///< whether a bias is added to each normed row
  bool sum = true;            ///< whether the sums are an output, too: the next layer's residual
  /// Residual and sum hold only the rows of their owner, PE p's part of tandem::split(rows, n). It takes an algorithm
  /// of two shots, which then sends no sums.
  bool sharded_residual = false;
  Quantisation quantisation = Quantisation::kNone;  ///< the form of the output
  double scale = 1;                                 ///< of Quantisation::kStatic; positive and finite
  std::string algorithm = {};                       ///< see all_reduce_norm_algorithms; empty: chosen by size
  int blocks = 0;                                   ///< of the kernel; 0: chosen by rows
};

/// The arguments of a run. The options announce which of them are given.
struct AllReduceNormCall {
  Size rows = 0;                    ///< rows of this run
  Symm<const std::byte> in = {};    ///< [rows][hidden], this PE's partial sums; a heap buffer
  const void* residual = nullptr;   ///< [rows][hidden], or the own rows; the same values on all PEs otherwise
  const void* weight = nullptr;     ///< [hidden], given if there is a norm
  const void* bias = nullptr;       ///< [hidden]
  const void* norm_bias = nullptr;  ///< [hidden]
  Symm<std::byte> out = {};         ///< [rows][hidden], of the type or fp8_e4m3; a heap buffer
  Symm<std::byte> sum = {};         ///< [rows][hidden], or the own rows; a heap buffer
  Symm<float> scales = {};          ///< [rows], or [rows][ceil(hidden / 128)]; a heap buffer
};

/// An all_reduce_norm that is ready to run.
class AllReduceNormPlan {
 public:
  /// Returns the plan's memory, as ~CollectivePlan does.
  virtual ~AllReduceNormPlan() = default;
  /// Enqueues one run. All PEs call it with the same number of rows, in the same order. A run allocates nothing and
  /// never blocks the host, so a CUDA graph can capture it.
  ///
  /// Buffers do not overlap, except that `sum` may be `in` or `residual`, and an unquantised `out` may be `in`, or
  /// `residual` where that is not sharded. Rows may start at any element; multiples of 16 bytes are the fastest.
  ///
  /// Throws InvalidArgument for rows that are negative or above max_rows. It also throws for an argument that is
  /// missing or that the options do not announce. It refuses a heap buffer that is too small, and other overlaps.
  void run(Stream& stream, const AllReduceNormCall& call);
  /// Returns the options with every choice made.
  const AllReduceNormOptions& options() const { return options_; }
  /// Returns the algorithm and the blocks, with the source of each.
  const std::vector<OptionChoice>& choices() const { return choices_; }

 protected:
  /// Keeps the options, in which every choice is made.
  AllReduceNormPlan(World& world, const AllReduceNormOptions& options);

 private:
  friend std::unique_ptr<AllReduceNormPlan> make_all_reduce_norm(World& world, const AllReduceNormOptions& options);
  virtual void enqueue(Stream& stream, const AllReduceNormCall& call) = 0;

  World world_;
  AllReduceNormOptions options_;
  std::vector<OptionChoice> choices_;
  std::size_t number_ = 0;  // in the detector of mismatching calls
  detail::CallComparison comparison_;
  detail::PlanMemory memory_;
};

/// An algorithm of all_reduce_norm.
struct AllReduceNormAlgorithm {
  std::string name;          ///< such as "one_shot_ll128"
  std::string summary;       ///< one line for people
  bool two_shots = false;    ///< whether each row has an owner that computes it for all
  bool splits_rows = false;  ///< whether several blocks share a row
};
/// Returns all algorithms.
const std::vector<AllReduceNormAlgorithm>& all_reduce_norm_algorithms();

/// Makes a plan over all PEs of the world; all of them call it (see make_collective). Throws InvalidArgument with the
/// name of the option, the value given and the values allowed. Throws Unsupported if the PEs are not all in one node,
/// and for a named algorithm that cannot do what the options ask for.
std::unique_ptr<AllReduceNormPlan> make_all_reduce_norm(World& world, const AllReduceNormOptions& options);

}  // namespace tandem
