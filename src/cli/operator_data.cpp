#include "cli/operator_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cli/data.h"
#include "cli/parallel.h"
#include "gemm/reference.h"
#include "tandem/error.h"

namespace tandem::cli {
namespace {

std::vector<std::byte> normal_matrix(DType type, Size elements, std::uint64_t seed, std::uint64_t stream) {
  constexpr Size piece = 1 << 16;
  std::vector<std::byte> matrix(static_cast<std::size_t>(elements * size_of(type)));
  dispatch(type, [&]<class T>() {
    if constexpr (is_float<T>) {
      const NormalData<T> data(seed);
      T* const to = reinterpret_cast<T*>(matrix.data());
      for_pieces(elements, piece, [&](Range part) { data.fill(stream, part.begin, to + part.begin, part.size()); });
    } else {
      throw InvalidArgument(fmt::format("--dtype: {} given, operators take floating-point types", name(type)));
    }
  });
  return matrix;
}

/// How many rounding units a sum over `pes` partial products of the type may be off: each is rounded, and each partial
/// sum. Rounding errors of random data add up as their squares do.
int roundings_of_a_sum(int pes) { return std::min(2 * pes, 4 + static_cast<int>(3 * std::sqrt(pes))); }

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

OperatorData::OperatorData(Operator op, const Shape& shape, DType type, DType out_type, int pes, std::uint64_t seed)
    : op_(op),
      shape_(shape),
      type_(type),
      out_type_(out_type),
      pes_(pes),
      a_(normal_matrix(type, shape.m * shape.k, seed, 0)),
      b_(normal_matrix(type, shape.n * shape.k, seed, 1)) {}

void OperatorData::copy_part(const std::vector<std::byte>& matrix, Range rows, Range columns, std::byte* to) const {
  const Size element = size_of(type_);
  const Size row_bytes = columns.size() * element;
  for (Size row = rows.begin; row < rows.end; ++row, to += row_bytes)
    std::memcpy(to, matrix.data() + (row * shape_.k + columns.begin) * element, static_cast<std::size_t>(row_bytes));
}

void OperatorData::fill(int pe, std::byte* a, std::byte* b) const {
  const OperatorShard shard = operator_shard(op_, shape_, pes_, pe);
  copy_part(a_, shard.a_rows, shard.a_columns, a);
  copy_part(b_, shard.b_rows, shard.b_columns, b);
}

void OperatorData::check(int pe, const std::byte* c, Check& check) const {
  const double tolerance = operator_tolerance(op_, out_type_, shape_.k, pes_);
  check.expectation = fmt::format("within {:.1e}", tolerance);
  const OperatorShard shard = operator_shard(op_, shape_, pes_, pe);
  if (shard.c_elements() == 0) return;
  const Size row_bytes = shape_.k * size_of(type_);
  const Mismatch found =
      check_gemm(a_.data() + shard.c_rows.begin * row_bytes, shape_.k, b_.data() + shard.c_columns.begin * row_bytes,
                 shape_.k, BLayout::kNxK, c, shard.c_columns.size(), shard.c_rows.size(), shard.c_columns.size(),
                 shape_.k, type_, out_type_, tolerance);
  check.checked += found.checked;
  check.wrong += found.wrong;
  if (!std::isfinite(found.max_rel_error)) check.max_error.reset();
  if (check.max_error) check.max_error = std::max(*check.max_error, found.max_rel_error);
}

}  // namespace tandem::cli
