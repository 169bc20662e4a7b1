#pragma once
/// Merges partial attention outputs: every PE has attended to its part of the keys, for all heads (decode context
/// parallelism).
///
///   auto plan = make_merge_heads(world, {.type = DType::kBF16, .max_batch = 16, .heads = 64, .head_size = 128});
///   plan->run(stream, {.batch = 4, .partial = partial, .lse = lse, .out = out});
///
/// For each batch entry and head, with the partial output o[p] and the log-sum-exp l[p] of PE p:
///
///   w[p] = base^(l[p] - max(l)), and 0 where l[p] is infinite or NaN
///   out  = (o[0] * w[0] + ... + o[n-1] * w[n-1]) / (w[0] + ... + w[n-1])     in f32 and in this order, rounded once
///
/// A partial output of weight 0 is not used, so it may be NaN. The result is 0 if all weights are. All PEs get the same
/// bits, in every run.

#include <memory>
#include <string>
#include <vector>

#include "tandem/advanced/option_choice.h"
#include "tandem/numeric.h"
#include "tandem/stream.h"
#include "tandem/world.h"

namespace tandem {

/// The base of log-sum-exps: e as in PyTorch, or 2 as in FlashInfer.
enum class LseBase { kE, kTwo };

/// Options of a plan, the same on all PEs.
struct MergeHeadsOptions {
  DType type = DType::kBF16;   ///< of partial and merged outputs: f32, f16 or bf16
  Size max_batch = 0;          ///< the largest batch of a run
  Size heads = 0;              ///< heads in all, 1 to 65,536
  Size head_size = 0;          ///< elements of a head, 1 to 65,536
  LseBase base = LseBase::kE;  ///< of the log-sum-exps
  bool own_heads = true;       ///< PE p gets the heads tandem::split(heads, n)[p], else every PE gets all
  int blocks = 0;  ///< at most 12 for each SM, 5 for heads of 480 bytes or more; 0: chosen by batch and heads
};

/// The arguments of a run: any memory of this PE.
struct MergeHeadsCall {
  Size batch = 0;                 ///< batch of this run
  const void* partial = nullptr;  ///< [batch][heads][head_size]: this PE's partial outputs
  const float* lse = nullptr;     ///< [batch][heads]: their log-sum-exps
  void* out = nullptr;            ///< [batch][own heads, or heads][head_size]
};

/// A merge that is ready to run.
class MergeHeadsPlan {
 public:
  /// Returns the plan's memory, as ~CollectivePlan does.
  virtual ~MergeHeadsPlan() = default;
  /// Enqueues one run. All PEs call it with the same batch, in the same order. A run allocates nothing and never blocks
  /// the host, so a CUDA graph can capture it. `out` does not overlap the other buffers, except in place. With all
  /// heads it may be `partial`. With own heads of a batch of 1 it may be their place in `partial`.
  ///
  /// Throws InvalidArgument for a batch that is negative or above max_batch, and for a buffer that is missing, too
  /// small or overlapping.
  void run(Stream& stream, const MergeHeadsCall& call);
  /// Returns the options with every choice made.
  const MergeHeadsOptions& options() const { return options_; }
  /// Returns the packets and the blocks, with the source of each.
  const std::vector<OptionChoice>& choices() const { return choices_; }

 protected:
  /// Keeps the options, in which every choice is made.
  MergeHeadsPlan(World& world, const MergeHeadsOptions& options);

 private:
  friend std::unique_ptr<MergeHeadsPlan> make_merge_heads(World& world, const MergeHeadsOptions& options);
  virtual void enqueue(Stream& stream, const MergeHeadsCall& call) = 0;

  World world_;
  MergeHeadsOptions options_;
  std::vector<OptionChoice> choices_;
  std::size_t number_ = 0;  // in the detector of mismatching calls
  detail::PlanMemory memory_;
};

/// Makes a plan over all PEs of the world; all of them call it (see make_collective). Throws InvalidArgument with the
/// name of the option, the value given and the values allowed. Throws Unsupported if the PEs are not all in one node.
std::unique_ptr<MergeHeadsPlan> make_merge_heads(World& world, const MergeHeadsOptions& options);

}  // namespace tandem
