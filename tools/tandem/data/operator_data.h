#pragma once
/// Test data of operators: random normal matrices, and an f64 reference of the result.

#include <vector>

#include "tandem/operators.h"
#include "tools/tandem/options/options.h"
#include "tools/tandem/run/result.h"
#include "tools/tandem/run/run_operator.h"

namespace tandem::cli {

/// Index ranges of a PE's matrices, see tandem/operators.h.
struct OperatorShard {
  Range a_rows, a_columns;  ///< of A, m x k
  Range b_rows, b_columns;  ///< of B, n x k
  Range c_rows, c_columns;  ///< of the product, m x n

  Size a_elements() const { return a_rows.size() * a_columns.size(); }
  Size b_elements() const { return b_rows.size() * b_columns.size(); }
  Size c_elements() const { return c_rows.size() * c_columns.size(); }
};
/// Returns the allowed error of an element of that type (gemm_tolerance).
double operator_tolerance(Operator op, DType out_type, Size k, int pes);
OperatorShard operator_shard(Operator op, const Shape& shape, int pes, int pe);

/// The matrices of a run. `fill` writes a PE's parts of A and B, and `check` takes its C.
class OperatorMatrices {
 public:
  virtual ~OperatorMatrices() = default;
  virtual void fill(int pe, std::byte* a, std::byte* b) const = 0;
  virtual void check(int pe, const std::byte* c, Check& check) const = 0;
};

/// Copies a PE's parts of the global matrices A (m x k) and B (n x k, or k x n).
void copy_shards(const OperatorRun& run, int pes, int pe, const std::byte* global_a, const std::byte* global_b,
                 std::byte* a, std::byte* b);

/// The global matrices A (m x k) and B (n x k, or k x n). Element i of each is a function of the seed and i.
class OperatorData final : public OperatorMatrices {
 public:
  /// Throws InvalidArgument for integer types.
  OperatorData(const OperatorRun& run, int pes, std::uint64_t seed);

  void fill(int pe, std::byte* a, std::byte* b) const override;
  /// Compares every element of a PE's C with a reference accumulated in f64.
  void check(int pe, const std::byte* c, Check& check) const override;

 private:
  bool multiplies_in_f32() const;

  OperatorRun run_;
  Shape shape_;
  DType type_;
  int pes_;
  std::uint64_t seed_;
  std::vector<std::byte> a_, b_;
  /// With scales of blocks, or a norm that quantises A, these are A and B (n x k) times their scales. Else they are
  /// empty.
  std::vector<float> wide_a_, wide_b_;
  std::vector<std::byte> normed_a_;  // of all_gather_gemm with a norm
};

}  // namespace tandem::cli
