#pragma once
/// Scales of the blocks of A and B (OperatorOptions::block_scales), as functions of the seed and of their place in
/// the whole problem.

#include <vector>

#include "tools/tandem/run/run_operator.h"

namespace tandem::cli {

class BlockScales {
 public:
  BlockScales(const OperatorRun& run, int pes, std::uint64_t seed);

  /// Returns the scales of these rows of A, or of all columns of B, as PE `pe` holds them.
  std::vector<float> of_a(int pe, Range rows) const;
  std::vector<float> of_b(int pe) const;

  /// Returns the values of whole rows of A, or whole columns of B, times their scales. Each has k values of the type of
  /// the run, one behind the other.
  std::vector<float> scaled_a(const std::vector<Size>& rows, const std::byte* values) const;
  std::vector<float> scaled_b(const std::vector<Size>& columns, const std::byte* values) const;

 private:
  /// A part of the depth, which one PE holds.
  struct Part {
    int pe;
    Range depth;
  };
  bool gathers() const { return run_.op == Operator::kAllGatherGemm; }
  std::vector<Part> parts() const;
  Range columns_of(int pe) const;
  float a_scale(int pe, Size row, Size step) const;
  float b_scale(int pe, Size block, Size step) const;
  float scale(std::uint64_t stream, Size place) const;
  template <class OfBlock>
  std::vector<float> scaled(Size count, const std::byte* values, const OfBlock& of_block) const;

  const OperatorRun& run_;
  int pes_;
  std::uint64_t seed_;
};

}  // namespace tandem::cli
