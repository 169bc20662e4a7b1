#pragma once
/// One use of experts with known results: its buffers on this PE, its calls, and the comparison of their results.
///
/// Every sum is exact, since weights are powers of two and the summands are small integers. Rows in fp8 have the bits
/// of the host's conversion.

#include <cstdint>
#include <memory>
#include <string>

#include "tandem/layer/experts.h"

namespace tandem::kernels {

/// The choices and values of all PEs.
struct ExpertInput {
  std::string routing = "random";  ///< see expert_choices
  Size tokens = 0;                 ///< of a PE, at most
  std::uint64_t seed = 1;
  std::uint64_t values = 0;       ///< another number gives other values of rows, with the same choices
  bool long_ids = false;          ///< i64
  bool weights = true;            ///< given, else all 1
  bool tokens_on_device = false;  ///< the number of tokens is in device memory
  bool add = false;               ///< something is added to the combined rows
  bool fractions = false;         ///< x are no integers, so that fp8 values are rounded
};

/// The comparison of results with their expectation.
struct ExpertErrors {
  Size checked = 0;   ///< elements
  Size wrong = 0;     ///< elements
  std::string first;  ///< the first wrong one

  /// Counts one element. `what` returns its description.
  template <class What>
  void expect(bool right, const What& what) {
    ++checked;
    if (right) return;
    if (wrong++ == 0) first = what();
  }
};

/// A call, or one of its halves.
enum class ExpertHalf { kBoth, kSend, kReceive };

class ExpertTrial {
 public:
  virtual ~ExpertTrial() = default;
  /// The calls, which are checked by `errors` once the stream is synchronised.
  virtual void route(Stream& stream) = 0;
  virtual void route_and_dispatch(Stream& stream) = 0;
  virtual void dispatch(Stream& stream, ExpertHalf half = ExpertHalf::kBoth) = 0;
  virtual void combine(Stream& stream, ExpertHalf half = ExpertHalf::kBoth) = 0;
  /// The routing of this trial, for others with the same choices.
  virtual void* routing() const = 0;
  virtual ExpertErrors errors() = 0;
};

/// Makes the buffers of a trial with a plan. `routing`: that of another trial, which has the same choices; null: its
/// own. In a phantom simulation the trial has choices, but no rows and no expectation.
std::unique_ptr<ExpertTrial> make_expert_trial(World& world, ExpertPlan& plan, const ExpertInput& input,
                                               void* routing = nullptr);

}  // namespace tandem::kernels
