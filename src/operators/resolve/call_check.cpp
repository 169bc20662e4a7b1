// Checks of one call: its rows, its matrices and their places in memory.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "collectives/plan/checked_plan.h"
#include "collectives/steps/scale_groups.h"
#include "operators/resolve/operator_check.h"
#include "tandem/error.h"

namespace tandem::ops {

namespace {

/// An argument of OperatorOptions::norm.
struct NormArgument {
  const char* name;
  const void* address;
  bool announced;
};

std::array<NormArgument, 5> norm_arguments(const OperatorOptions& options, const OperatorCall& call) {
  const OperatorNorm& norm = options.norm;
  return {{{"residual", call.residual, norm.residual},
           {"norm_weight", call.norm_weight, norm.norm != Norm::kNone},
           {"norm_bias", call.norm_bias, norm.norm_bias},
           {"sum", call.sum, norm.sum},
           {"scales", call.scales, scales_of_row(options) > 0}}};
}

void check_announced(const OperatorOptions& options, const OperatorCall& call) {
  for (const NormArgument& one : norm_arguments(options, call))
    if (one.address != nullptr && !one.announced)
      throw InvalidArgument(fmt::format("{}: given, but the plan's options announce none", one.name));
}

}  // namespace

Quantisation quantisation_of_a(Operator op, const OperatorOptions& options) {
  const bool quantises = op == Operator::kAllGatherGemm && options.norm.any() && options.type == DType::kE4M3;
  if (!quantises) return Quantisation::kNone;
  if (options.block_scales) return Quantisation::kGroup;
  return options.a_scale_per_row ? Quantisation::kRow : Quantisation::kStatic;
}

DType given_a_type(Operator op, const OperatorOptions& options) {
  return quantisation_of_a(op, options) == Quantisation::kNone ? options.type : options.result_type();
}

Size scales_of_row(const OperatorOptions& options) {
  if (options.norm.quantisation == Quantisation::kRow) return 1;
  return options.norm.quantisation == Quantisation::kGroup ? ceil_div(options.n, kernels::kScaleGroup) : 0;
}

void check(Operator op, const OperatorOptions& options, const OperatorCall& call) {
  const std::size_t matrices = options.ns.empty() ? 1 : options.ns.size();
  require(call.m >= 0 && call.m <= options.m, "m", call.m, fmt::format("0 to the plan's {}", options.m));
  require(call.b.size() == matrices && call.c.size() == matrices, "b", static_cast<Size>(call.b.size()),
          fmt::format("{} matrices, and as many c ({} given)", matrices, call.c.size()));
  const auto one_each = [&](const char* what, std::size_t given) {
    require(given == 0 || given == matrices, what, static_cast<Size>(given),
            fmt::format("none, or {}: one for each b", matrices));
  };
  one_each("bias", call.bias.size());
  one_each("b_scale", call.b_scale.size());
  one_each("c_scale", call.c_scale.size());
  const bool scaled = call.a_scale != nullptr || !call.b_scale.empty() || !call.c_scale.empty();
  if (scaled && options.type != DType::kE4M3)
    throw InvalidArgument(fmt::format("scales: given, allowed for {} are none", name(options.type)));
  if (!call.c_scale.empty() && options.result_type() != DType::kE4M3)
    throw InvalidArgument(
        fmt::format("c_scale: given, allowed for a result of {} is none", name(options.result_type())));
  const bool makes_scales = quantisation_of_a(op, options) != Quantisation::kNone;
  if (makes_scales && call.a_scale != nullptr)
    throw InvalidArgument("a_scale: given, allowed with a norm of A is none: the norm makes the scales");
  if (options.a_scale_per_row && call.a_scale == nullptr && !makes_scales)
    throw InvalidArgument("a_scale: none given, allowed with a_scale_per_row is one for each row");
  const bool lacks_a_scale = call.a_scale == nullptr && !makes_scales;
  if (options.block_scales && (lacks_a_scale || call.b_scale.empty()))
    throw InvalidArgument(fmt::format("{}: none given, allowed with block_scales is one for each block",
                                      lacks_a_scale ? "a_scale" : "b_scale"));
  check_announced(options, call);
}

namespace {

/// A range of memory that a run reads or writes, with its name in the call.
struct Matrix {
  const char* what;
  std::size_t index;
  const std::byte* begin;
  Size bytes;
};

/// The matrices of this PE. Missing and empty ones are left out.
struct Matrices {
  std::vector<Matrix> read, written;
};

Matrices matrices(Operator op, const OperatorOptions& options, const Team& team, const OperatorCall& call) {
  const auto shard = [&](Size whole) { return split(whole, team.size)[team.me].size(); };
  const bool gathers = op == Operator::kAllGatherGemm;
  const Size k = gathers ? options.k : shard(options.k);
  const Size a_rows = gathers ? shard(call.m) : call.m;
  const Size c_rows = op == Operator::kGemmReduceScatter ? shard(call.m) : call.m;
  const Size type = size_of(options.type);
  const Size out = size_of(options.result_type());
  constexpr Size kFloat = sizeof(float);
  Matrices all;
  const auto add = [](std::vector<Matrix>& to, const char* what, std::size_t i, const void* begin, Size bytes) {
    if (begin != nullptr && bytes > 0) to.push_back({what, i, static_cast<const std::byte*>(begin), bytes});
  };
  const Size given = size_of(given_a_type(op, options));
  add(all.read, "a", 0, call.a, a_rows * k * given);
  add(all.written, "gathered", 0, call.gathered, call.m * k * type);
  GemmScales scales;
  scales.a_per_row = options.a_scale_per_row;
  scales.blocks = options.block_scales;
  const Size of_row = scales.of_row(k);
  add(all.read, "a_scale", 0, call.a_scale, (of_row > 0 ? a_rows * of_row : 1) * kFloat);
  for (std::size_t i = 0; i < call.b.size(); ++i) {
    const Size whole = options.ns.empty() ? options.n : options.ns[i];
    const Size n = gathers ? shard(whole) : whole;
    add(all.read, "b", i, call.b[i], n * k * type);
    if (!call.bias.empty()) add(all.read, "bias", i, call.bias[i], n * std::max(out, size_of(DType::kBF16)));
    const Size of_b = options.block_scales
                          ? GemmScales::blocks_of_columns(n, is_gated(options.activation)) * scale_blocks(k)
                      : options.b_scale_per_column ? n
                                                   : 1;
    if (!call.b_scale.empty()) add(all.read, "b_scale", i, call.b_scale[i], of_b * kFloat);
    if (!call.c_scale.empty()) add(all.read, "c_scale", i, call.c_scale[i], kFloat);
    add(all.written, "c", i, call.c[i], c_rows * columns_after(options.activation, n) * size_of(options.c_type()));
  }
  const Size row = gathers ? k * given : options.n * out;
  const Size rows = gathers ? a_rows : c_rows;  // that this PE norms
  add(all.read, "norm_weight", 0, call.norm_weight, row);
  add(all.read, "norm_bias", 0, call.norm_bias, row);
  add(all.written, "sum", 0, call.sum, rows * row);
  add(all.written, "scales", 0, call.scales, rows * scales_of_row(options) * kFloat);
  // A sum may be in the residual's place.
  if (call.residual != call.sum) add(all.read, "residual", 0, call.residual, rows * row);
  return all;
}

}  // namespace

void check_places(const World& world, Operator op, const OperatorOptions& options, const Team& team,
                  const OperatorCall& call) {
  const Matrices all = matrices(op, options, team, call);
  const auto name_of = [&](const Matrix& matrix) {
    return call.b.size() == 1 ? std::string(matrix.what) : fmt::format("{}[{}]", matrix.what, matrix.index);
  };
  const auto check_apart = [&](const Matrix& c, const Matrix& other) {
    if (c.begin + c.bytes <= other.begin || other.begin + other.bytes <= c.begin) return;
    throw InvalidArgument(
        fmt::format("{}: {} bytes at {} given, which overlap the {} bytes of {} at {}; allowed is a place of its own",
                    name_of(c), c.bytes, fmt::ptr(c.begin), other.bytes, name_of(other), fmt::ptr(other.begin)));
  };
  const std::string run = fmt::format("{} of {} rows", name(op), call.m);
  for (const std::vector<Matrix>* matrices : {&all.read, &all.written})
    for (const Matrix& one : *matrices) kernels::check_held(world, name_of(one), one.begin, one.bytes, run);
  for (std::size_t i = 0; i < all.written.size(); ++i) {
    for (const Matrix& read : all.read) check_apart(all.written[i], read);
    for (std::size_t j = 0; j < i; ++j) check_apart(all.written[i], all.written[j]);
  }
}

void check_matrices(Operator op, const OperatorOptions& options, const Team& team, const OperatorCall& call,
                    Size alignment) {
  const auto has_shard = [&](Size whole) { return !split(whole, team.size)[team.me].empty(); };
  const auto require_given = [alignment](const char* what, const void* matrix, bool has_elements) {
    if (has_elements && matrix == nullptr)
      throw InvalidArgument(fmt::format("{}: a null address given, allowed is one of this PE's memory", what));
    if (has_elements && reinterpret_cast<std::uintptr_t>(matrix) % static_cast<std::uintptr_t>(alignment) != 0)
      throw InvalidArgument(fmt::format("{}: {} given, allowed are multiples of {} bytes", what, matrix, alignment));
  };
  const bool gathers = op == Operator::kAllGatherGemm;
  if (!gathers && call.gathered != nullptr)
    throw InvalidArgument(fmt::format("gathered: given to {}, allowed with all_gather_gemm", name(op)));
  require_given("a", call.a, has_shard(gathers ? call.m : options.k));
  for (std::size_t i = 0; i < call.b.size(); ++i) {
    const bool has_columns = has_shard(options.ns.empty() ? options.n : options.ns[i]);
    require_given("b", call.b[i], gathers ? has_columns : has_shard(options.k));
    if (!call.bias.empty()) require_given("bias", call.bias[i], call.bias[i] != nullptr);
    require_given("c", call.c[i], gathers ? has_columns : op == Operator::kGemmAllReduce || has_shard(call.m));
  }
  const bool has_rows = op == Operator::kGemmAllReduce || has_shard(call.m);
  for (const NormArgument& one : norm_arguments(options, call))
    if (one.announced) require_given(one.name, one.address, has_rows);
}

}  // namespace tandem::ops
