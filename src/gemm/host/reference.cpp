#include "gemm/host/reference.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gemm/contract/activation.h"
#include "tandem/error.h"

namespace tandem {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The part of C that a thread takes at a time.
constexpr Size kRows = 512;
constexpr Size kColumns = 256;

struct Precision {
  int bits;  // bits of the significand, including the hidden one
  int least_normal_exponent;
};

Precision precision_of(DType type) {
  switch (type) {
    case DType::kF32:
    case DType::kF64:
      return {24, -126};
    case DType::kF16:
      return {11, -14};
    case DType::kBF16:
      return {8, -126};
    case DType::kE4M3:
      return {4, -6};
    case DType::kE5M2:
      return {3, -14};
    default:
      throw InvalidArgument(std::string("dtype: ") + name(type) + " given, GEMM gives floating-point types");
  }
}

struct Problem {
  const void* a;
  Size lda;
  const void* b;
  Size ldb;
  BLayout layout;
  const void* c;
  Size ldc;
  Size m, n, k;
  DType type;
  double tolerance;
  double unit;
  double least_normal;
  const EpilogueValues& epilogue;
};

/// An element of the result, and the magnitude against which its error is measured.
struct Finished {
  double value, typical;
};

constexpr double kMostSlope = 1.13;  // of GELU, at 1.41; that of SiLU is smaller

/// Returns the sum of an element of the product before its activation.
Finished summed(const EpilogueValues& epilogue, Size row, Size column, double product, double typical) {
  const auto or_one = [](const std::vector<float>& scales, Size i) {
    return scales.empty() ? 1.0 : static_cast<double>(scales[static_cast<std::size_t>(i)]);
  };
  const double scale = or_one(epilogue.row_scales, row) * or_one(epilogue.column_scales, column);
  const double bias = epilogue.bias.empty() ? 0 : static_cast<double>(epilogue.bias[static_cast<std::size_t>(column)]);
  return {product * scale + bias, typical * std::fabs(scale) + std::fabs(bias)};
}

Finished activated(Activation activation, const Finished& sum) {
  if (activation == Activation::kNone) return sum;
  return {static_cast<double>(activate(activation, static_cast<float>(sum.value))),
          kMostSlope * std::max(std::fabs(sum.value), sum.typical)};
}

Finished gated(Activation activation, const Finished& gate, const Finished& up) {
  const auto most = [](const Finished& sum) { return std::max(std::fabs(sum.value), sum.typical); };
  return {static_cast<double>(tandem::gated(activation, static_cast<float>(gate.value), static_cast<float>(up.value))),
          (1 + kMostSlope) * most(gate) * most(up)};
}

/// Euclidean norms of `count` vectors of length k; element i of vector v is at v * step + i * stride.
template <class T>
std::vector<double> norms(const T* from, Size count, Size step, Size k, Size stride) {
  std::vector<double> sums(static_cast<std::size_t>(count));
  const auto add = [&](Size v, Size i) {
    const auto value = convert<double>(from[v * step + i * stride]);
    sums[static_cast<std::size_t>(v)] += value * value;
  };
  if (stride == 1) {
    for (Size v = 0; v < count; ++v) {
      for (Size i = 0; i < k; ++i) add(v, i);
    }
  } else {  // vectors are interleaved in memory
    for (Size i = 0; i < k; ++i) {
      for (Size v = 0; v < count; ++v) add(v, i);
    }
  }
  for (double& sum : sums) sum = std::sqrt(sum);
  return sums;
}

template <class Out>
double error_of(Out stored, double expected, double typical, const Problem& p) {
  const auto found = convert<double>(stored);
  if (std::isnan(found) && std::isnan(expected)) return 0;
  const double scale = std::max({std::fabs(expected), typical, p.least_normal});
  const double error = std::isfinite(found) && std::isfinite(scale) ? std::fabs(found - expected) / scale : kInfinity;
  const auto rounded = convert<double>(convert<Out>(static_cast<float>(expected)));
  return found == rounded ? std::min(error, p.unit) : error;
}

template <class T, class Out>
Mismatch check_block(const Problem& p, Range rows, Range columns, std::vector<double>& reference) {
  const Activation activation = p.epilogue.activation;
  const Size of_each = is_gated(activation) ? 2 : 1;  // columns of the product
  const Range multiplied{columns.begin * of_each, columns.end * of_each};
  const bool rows_of_b = p.layout == BLayout::kNxK;
  const T* a = static_cast<const T*>(p.a) + rows.begin * p.lda;
  const T* b = static_cast<const T*>(p.b) + multiplied.begin * (rows_of_b ? p.ldb : 1);
  const Size width = multiplied.size();
  reference.resize(static_cast<std::size_t>(rows.size() * width));
  host_gemm_tile_f64(a, p.lda, b, p.ldb, reference.data(), width, rows.size(), width, p.k, p.type, p.layout);

  const double root = std::sqrt(static_cast<double>(max(p.k, 1)));
  const auto a_norms = norms(a, rows.size(), p.lda, p.k, 1);
  const auto b_norms = rows_of_b ? norms(b, width, p.ldb, p.k, 1) : norms(b, width, 1, p.k, p.ldb);
  const auto sum = [&](Size i, Size j) {
    const double size = a_norms[static_cast<std::size_t>(i)] * b_norms[static_cast<std::size_t>(j)] / root;
    return summed(p.epilogue, rows.begin + i, multiplied.begin + j, reference[static_cast<std::size_t>(i * width + j)],
                  size);
  };
  Mismatch result;
  result.checked = rows.size() * columns.size();
  for (Size i = 0; i < rows.size(); ++i) {
    const Out* found = static_cast<const Out*>(p.c) + (rows.begin + i) * p.ldc + columns.begin;
    for (Size j = 0; j < columns.size(); ++j) {
      const Size gate = column_of_gate(j);
      const auto [expected, typical] = is_gated(activation) ? gated(activation, sum(i, gate), sum(i, gate + kGateGroup))
                                                            : activated(activation, sum(i, j));
      const double error = error_of(found[j], expected, typical, p);
      result.max_rel_error = std::max(result.max_rel_error, error);
      if (error <= p.tolerance) continue;
      if (result.wrong++ > 0) continue;
      result.row = rows.begin + i;
      result.column = columns.begin + j;
      result.found = convert<double>(found[j]);
      result.expected = expected;
    }
  }
  return result;
}

/// Merges two parts' results, independent of the order of the parts.
void merge(Mismatch& whole, const Mismatch& part) {
  const bool earlier =
      whole.wrong == 0 || part.row < whole.row || (part.row == whole.row && part.column < whole.column);
  if (part.wrong > 0 && earlier) {
    whole.row = part.row;
    whole.column = part.column;
    whole.found = part.found;
    whole.expected = part.expected;
  }
  whole.checked += part.checked;
  whole.wrong += part.wrong;
  whole.max_rel_error = std::max(whole.max_rel_error, part.max_rel_error);
}

using CheckBlock = Mismatch (*)(const Problem&, Range, Range, std::vector<double>&);

CheckBlock block_checker(DType type, DType out_type) {
  return dispatch(type, [&]<class T>() -> CheckBlock {
    return dispatch(out_type, [&]<class Out>() -> CheckBlock {
      if constexpr (is_float<T> && is_float<Out>) return check_block<T, Out>;
      throw InvalidArgument("dtype: GEMM takes and gives floating-point types");
    });
  });
}

/// Threads take blocks of C one after the other until none is left.
Mismatch check_all(const Problem& p, CheckBlock check) {
  const Size n = columns_after(p.epilogue.activation, p.n);
  const Size across = ceil_div(n, kColumns);
  const Size blocks = across * ceil_div(p.m, kRows);
  std::atomic<Size> next{0};
  std::mutex mutex;
  Mismatch whole;
  std::exception_ptr error;
  const auto work = [&] {
    try {
      std::vector<double> reference;
      for (Size i = next++; i < blocks; i = next++) {
        const Size row = i / across * kRows, column = i % across * kColumns;
        const Mismatch part = check(p, {row, min(row + kRows, p.m)}, {column, min(column + kColumns, n)}, reference);
        const std::lock_guard lock(mutex);
        merge(whole, part);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      error = std::current_exception();
    }
  };
  const Size wanted = min(blocks, static_cast<Size>(std::max(1U, std::thread::hardware_concurrency())));
  std::vector<std::thread> threads;
  for (Size i = 1; i < wanted; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  if (error != nullptr) std::rethrow_exception(error);
  return whole;
}

}  // namespace

double rounding_unit(DType type) { return std::ldexp(1.0, -precision_of(type).bits); }

double gemm_tolerance(DType out_type, Size k, int roundings) {
  constexpr Size kRun = 256;
  const double ring = static_cast<double>(min(k, kRun) + ceil_div(k, kRun));
  const double accumulation = ring * rounding_unit(DType::kF32) * std::sqrt(static_cast<double>(k));
  return roundings * rounding_unit(out_type) + accumulation;
}

double fast_accumulation_tolerance(Size k) {
  constexpr Size kProducts = 32;
  constexpr int kBits = 13;
  return 2 * static_cast<double>(ceil_div(k, kProducts)) * std::ldexp(1.0, -kBits);
}

Mismatch check_gemm(const void* a, Size lda, const void* b, Size ldb, BLayout layout, const void* c, Size ldc, Size m,
                    Size n, Size k, DType type, DType out_type, double tolerance, const EpilogueValues& epilogue) {
  const CheckBlock check = block_checker(type, out_type);
  const Precision precision = precision_of(out_type);
  const Problem p{a,
                  lda,
                  b,
                  ldb,
                  layout,
                  c,
                  ldc,
                  m,
                  n,
                  k,
                  type,
                  tolerance,
                  rounding_unit(out_type),
                  std::ldexp(1.0, precision.least_normal_exponent),
                  epilogue};
  const Size dropped = n - columns_after(epilogue.activation, n);
  host_gemm_tile_f64(a, lda, b, ldb, nullptr, ldc + dropped, min(m, 0), n, k, type,
                     layout);  // checks the shape, computes nothing
  return check_all(p, check);
}

}  // namespace tandem
