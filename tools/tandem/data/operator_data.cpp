#include "tools/tandem/data/operator_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "gemm/host/reference.h"
#include "tandem/error.h"
#include "tools/tandem/data/block_scales.h"
#include "tools/tandem/data/data.h"
#include "tools/tandem/data/normed_data.h"
#include "tools/tandem/data/operator_extras.h"
#include "tools/tandem/options/parallel.h"

namespace tandem::cli {
namespace {

std::vector<std::byte> normal_matrix(DType type, Size elements, std::uint64_t seed, std::uint64_t stream) {
  constexpr Size piece = 1 << 16;
  std::vector<std::byte> matrix(static_cast<std::size_t>(elements * size_of(type)));
  dispatch(type, [&]<class T>() {
    if constexpr (is_float<T>) {
      const NormalData<T> data(seed);
      T* const to = reinterpret_cast<T*>(matrix.data());
      for_chunks(elements, piece, [&](Range part) { data.fill(stream, part.begin, to + part.begin, part.size()); });
    } else {
      throw InvalidArgument(fmt::format("--dtype: {} given, operators take floating-point types", name(type)));
    }
  });
  return matrix;
}

/// The allowed error of a sum over `pes` partial products in rounding units. Each product and each partial sum is
/// rounded. The squares of random rounding errors add up.
int roundings_of_a_sum(int pes) { return std::min(2 * pes, 4 + static_cast<int>(3 * std::sqrt(pes))); }

/// Copies a part of a matrix with rows of `width`.
void copy_part(const std::byte* matrix, Size width, Size element, Range rows, Range columns, std::byte* to) {
  const Size row_bytes = columns.size() * element;
  for (Size row = rows.begin; row < rows.end; ++row, to += row_bytes)
    std::memcpy(to, matrix + (row * width + columns.begin) * element, static_cast<std::size_t>(row_bytes));
}

/// Returns the transpose of a matrix of bytes.
std::vector<std::byte> turned(const std::vector<std::byte>& matrix, Size rows, Size columns) {
  std::vector<std::byte> all(matrix.size());
  for (Size i = 0; i < rows; ++i)
    for (Size j = 0; j < columns; ++j)
      all[static_cast<std::size_t>(j * rows + i)] = matrix[static_cast<std::size_t>(i * columns + j)];
  return all;
}

}  // namespace

double operator_tolerance(Operator op, DType out_type, Size k, int pes) {
  return gemm_tolerance(out_type, k, op == Operator::kAllGatherGemm ? 1 : roundings_of_a_sum(pes));
}

OperatorShard operator_shard(Operator op, const Shape& shape, int pes, int pe) {
  const auto own = [&](Size whole) { return split(whole, pes)[pe]; };
  const Range m{0, shape.m}, n{0, shape.n}, k{0, shape.k};
  if (op == Operator::kAllGatherGemm) return {own(shape.m), k, own(shape.n), k, m, own(shape.n)};
  return {m, own(shape.k), n, own(shape.k), op == Operator::kGemmAllReduce ? m : own(shape.m), n};
}

void copy_shards(const OperatorRun& run, int pes, int pe, const std::byte* global_a, const std::byte* global_b,
                 std::byte* a, std::byte* b) {
  const Shape shape = run.shape();
  const Size element = size_of(run.options.type);
  const OperatorShard shard = operator_shard(run.op, shape, pes, pe);
  copy_part(global_a, shape.k, size_of(run.a_type()), shard.a_rows, shard.a_columns, a);
  if (run.options.b_layout == BLayout::kNxK)
    copy_part(global_b, shape.k, element, shard.b_rows, shard.b_columns, b);
  else
    copy_part(global_b, shape.n, element, shard.b_columns, shard.b_rows, b);
}

OperatorData::OperatorData(const OperatorRun& run, int pes, std::uint64_t seed)
    : run_(run),
      shape_(run.shape()),
      type_(run.options.type),
      pes_(pes),
      seed_(seed),
      a_(normal_matrix(run.a_type(), shape_.m * shape_.k, seed, 0)),
      b_(normal_matrix(type_, shape_.n * shape_.k, seed, 1)) {
  const std::vector<Size> rows = all_of({0, shape_.m});
  std::vector<float> normed;
  if (run.options.norm.any() && !norms_sums(run)) normed = normed_rows(run_, seed, rows, a_.data());
  if (!multiplies_in_f32()) {
    normed_a_ = rounded(type_, normed);
    return;
  }
  const BlockScales scales(run_, pes, seed);
  const bool is_turned = run.options.b_layout == BLayout::kKxN;
  const std::vector<std::byte> b = is_turned ? turned(b_, shape_.k, shape_.n) : b_;
  wide_a_ = run.quantises_a() ? normed : scales.scaled_a(rows, a_.data());
  wide_b_ = run.options.block_scales ? scales.scaled_b(all_of({0, shape_.n}), b.data())
                                     : widened(type_, b.data(), shape_.n * shape_.k);
}

bool OperatorData::multiplies_in_f32() const { return run_.options.block_scales || run_.quantises_a(); }

void OperatorData::fill(int pe, std::byte* a, std::byte* b) const {
  copy_shards(run_, pes_, pe, a_.data(), b_.data(), a, b);
}

void OperatorData::check(int pe, const std::byte* c, Check& check) const {
  const OperatorOptions& o = run_.options;
  const DType out_type = o.result_type();
  const double of_sums = operator_tolerance(run_.op, out_type, shape_.k, pes_);
  const double tolerance = o.norm.any() ? normed_tolerance(run_, of_sums) : of_sums;
  check.expectation = fmt::format("within {:.1e}", tolerance);
  const OperatorShard shard = operator_shard(run_.op, shape_, pes_, pe);
  if (shard.c_elements() == 0) return;
  const bool wide = multiplies_in_f32();
  const BLayout layout = wide ? BLayout::kNxK : o.b_layout;
  const DType type = wide ? DType::kF32 : type_;
  const std::byte* const given_a = normed_a_.empty() ? a_.data() : normed_a_.data();
  const auto* const whole_a = wide ? reinterpret_cast<const std::byte*>(wide_a_.data()) : given_a;
  const auto* const whole_b = wide ? reinterpret_cast<const std::byte*>(wide_b_.data()) : b_.data();
  const Size ldb = layout == BLayout::kNxK ? shape_.k : shape_.n;
  const std::byte* const a = whole_a + shard.c_rows.begin * shape_.k * size_of(type);
  const std::byte* const b = whole_b + shard.c_columns.begin * (layout == BLayout::kNxK ? shape_.k : 1) * size_of(type);
  const std::vector<Size> rows = all_of(shard.c_rows);
  const Size ldc = columns_after(o.activation, shard.c_columns.size());
  const Mismatch found = norms_sums(run_) ? check_normed(run_, seed_, {rows, type, a, b, layout, c}, tolerance)
                                          : check_gemm(a, shape_.k, b, ldb, layout, c, ldc, shard.c_rows.size(),
                                                       shard.c_columns.size(), shape_.k, type, out_type, tolerance,
                                                       epilogue_of(run_, seed_, rows, all_of(shard.c_columns)));
  check.checked += found.checked;
  check.wrong += found.wrong;
  if (!std::isfinite(found.max_rel_error)) check.max_error.reset();
  if (check.max_error) check.max_error = std::max(*check.max_error, found.max_rel_error);
}

}  // namespace tandem::cli
