#pragma once
/// Exchanges rows of all heads for all rows of own heads before an attention, and back behind it (Ulysses).
/// It is an all-to-all with a transposition, of several tensors in one call.
///
///   auto plan = make_exchange_heads(world, {.type = DType::kBF16, .segments = {q, k, v}, .max_rows = rows});
///   plan->run(stream, {.rows = rows, .tensors = {{q_in, q_out}, {k_in, k_out}, {v_in, v_out}}});
///
/// With n PEs, and segments of b elements in a tensor:
///
///   HeadsDirection::kToHeads   in [rows][n][b]: the own rows of all heads    out [n][rows][b]: all rows of the own
///   heads HeadsDirection::kToRows    in [n][rows][b]                                out [rows][n][b]
///
/// Segment q of PE p arrives as segment p on PE q. Values are moved bit for bit.

#include <memory>
#include <vector>

#include "tandem/advanced/option_choice.h"
#include "tandem/numeric.h"
#include "tandem/stream.h"
#include "tandem/world.h"

namespace tandem {

/// The direction of an exchange: before the attention, or behind it.
enum class HeadsDirection { kToHeads, kToRows };

/// The greatest number of tensors of a plan.
inline constexpr int kExchangedTensors = 8;

/// Options of a plan, the same on all PEs.
struct ExchangeHeadsOptions {
  DType type = DType::kBF16;   ///< of all tensors
  std::vector<Size> segments;  ///< elements of a segment of each tensor: heads of a PE * head size
  Size max_rows = 0;           ///< the most rows of a PE in a run
  HeadsDirection direction = HeadsDirection::kToHeads;  ///< the layouts of in and out
  int blocks = 0;                                       ///< of 64 threads, at most four for each SM; 0: chosen by rows
};

/// A tensor of a run.
struct ExchangedTensor {
  const void* in = nullptr;  ///< any memory of this PE
  Symm<std::byte> out = {};  ///< a heap buffer
};

/// The arguments of a run.
struct ExchangeHeadsCall {
  Size rows = 0;                         ///< rows of each PE
  std::vector<ExchangedTensor> tensors;  ///< as many as the options have segments
};

/// An exchange that is ready to run.
class ExchangeHeadsPlan {
 public:
  /// Returns the plan's memory, as ~CollectivePlan does.
  virtual ~ExchangeHeadsPlan() = default;
  /// Enqueues one run. All PEs call it with the same number of rows, in the same order. A run allocates nothing on the
  /// device and never blocks the host, so a CUDA graph can capture it. An output overlaps no other buffer. Segments may
  /// start at any element; multiples of 16 bytes are the fastest.
  ///
  /// Throws InvalidArgument for rows that are negative or above max_rows, and for another number of tensors. It also
  /// throws for a buffer that is missing, too small, overlapping or out of the reach of peers.
  void run(Stream& stream, const ExchangeHeadsCall& call);
  /// Returns the options with every choice made.
  const ExchangeHeadsOptions& options() const { return options_; }
  /// Returns the blocks, with their source.
  const std::vector<OptionChoice>& choices() const { return choices_; }

 protected:
  /// Keeps the options, in which every choice is made.
  ExchangeHeadsPlan(World& world, const ExchangeHeadsOptions& options);

 private:
  friend std::unique_ptr<ExchangeHeadsPlan> make_exchange_heads(World& world, const ExchangeHeadsOptions& options);
  virtual void enqueue(Stream& stream, const ExchangeHeadsCall& call) = 0;

  World world_;
  ExchangeHeadsOptions options_;
  std::vector<OptionChoice> choices_;
  std::size_t number_ = 0;  // in the detector of mismatching calls
  detail::PlanMemory memory_;
};

/// Makes a plan over all PEs of the world; all of them call it (see make_collective). Throws InvalidArgument with the
/// name of the option, the value given and the values allowed. Throws Unsupported if the PEs are not all in one node.
std::unique_ptr<ExchangeHeadsPlan> make_exchange_heads(World& world, const ExchangeHeadsOptions& options);

}  // namespace tandem
