#include "operators/resolve/operator_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "collectives/plan/checked_plan.h"
#include "operators/resolve/operator_defaults.h"
#include "operators/steps/steps.h"
#include "tandem/error.h"

namespace tandem::ops {

namespace {

void require(bool holds, const char* option, Size given, const std::string& allowed) {
  if (!holds) throw InvalidArgument(fmt::format("{}: {} given, allowed is {}", option, given, allowed));
}

/// A product of two sides in bytes has to fit into Size.
constexpr Size kMostOfASide = Size{1} << 30;

/// Requires an enumerator, since values may have been cast from elsewhere.
template <class E>
void require_one_of(const char* what, E given, E last) {
  require(static_cast<int>(given) >= 0 && given <= last, what, static_cast<Size>(given),
          fmt::format("0 to {}", static_cast<int>(last)));
}

void check_types(Operator op, const OperatorOptions& options, bool on_gpus) {
  const bool gather = op == Operator::kAllGatherGemm;
  const bool fp8 = options.type == DType::kE4M3;
  const DType out = options.result_type();
  if (!fp8 && options.type != DType::kBF16 && options.type != DType::kF16 && options.type != DType::kF32)
    throw InvalidArgument(
        fmt::format("type: {} given, allowed for {} are bf16, f16, f32, fp8_e4m3", name(options.type), name(op)));
  if (on_gpus && options.type == DType::kF32)
    throw InvalidArgument(fmt::format("type: f32 given, allowed for {} on GPUs are bf16, f16, fp8_e4m3", name(op)));
  if (!fp8 && out != options.type)
    throw InvalidArgument(fmt::format("out_type: {} given, allowed for {} is the same", name(out), name(options.type)));
  if (fp8 && out != DType::kBF16 && out != DType::kF16 && (out != DType::kE4M3 || !gather))
    throw InvalidArgument(fmt::format("out_type: {} given, allowed for {} of fp8_e4m3 are bf16, f16{}", name(out),
                                      name(op), gather ? ", fp8_e4m3" : " (partial sums travel)"));
  if (!fp8 && (options.a_scale_per_row || options.b_scale_per_column))
    throw InvalidArgument(fmt::format("{}: given, allowed for fp8_e4m3 alone",
                                      options.a_scale_per_row ? "a_scale_per_row" : "b_scale_per_column"));
  if (fp8 && on_gpus && options.b_layout == BLayout::kKxN)
    throw InvalidArgument(
        "b_layout: KxN given, allowed for fp8_e4m3 on GPUs is NxK (the tensor cores read fp8 along k): transpose B, "
        "once where it is constant");
}

/// GPUs (TMA) read and write rows of 16 bytes. Each PE's part needs them too, or one PE alone would refuse to run.
void check_row_bytes(Operator op, const OperatorOptions& options, int pes) {
  const auto elements = [](DType type) { return Size{16} / size_of(type); };
  const bool b_rows_are_n = options.b_layout == BLayout::kKxN;
  const Size n_unit = std::max(elements(options.result_type()), b_rows_are_n ? elements(options.type) : 1);
  const auto check_parts = [&](const char* option, Size whole, Size unit, bool in_parts) {
    if (!in_parts) return require(whole % unit == 0, option, whole, fmt::format("on GPUs a multiple of {}", unit));
    for (int pe = 0; pe < pes; ++pe) {
      const Size part = split(whole, pes)[pe].size();
      require(part % unit == 0, option, whole,
              fmt::format("on GPUs what gives each of {} PEs a multiple of {}; PE {} has {}", pes, unit, pe, part));
    }
  };
  const bool gathers = op == Operator::kAllGatherGemm;
  check_parts("k", options.k, elements(options.type), !gathers);
  if (options.ns.empty()) check_parts("n", options.n, n_unit, gathers);
  for (const Size n : options.ns) check_parts("ns", n, n_unit, gathers);
}

}  // namespace

void check(Operator op, const OperatorOptions& options, const World& world) {
  const Machine& machine = world.machine();
  require_one_of("op", op, Operator::kGemmAllReduce);
  require_one_of("form", options.form, Form::kCommunicationOnly);
  require_one_of("activation", options.activation, Activation::kSilu);
  require_one_of("direction", options.direction, Direction::kPull);
  require_one_of("b_layout", options.b_layout, BLayout::kKxN);
  if (options.copy_by) require_one_of("copy_by", *options.copy_by, CopyBy::kSm);
  if (options.reduction) require_one_of("reduction", *options.reduction, Reduction::kChain);
  require(options.m >= 0, "m", options.m, "0 or more");
  require(options.n >= 1, "n", options.n, "1 or more");
  require(options.k >= 1, "k", options.k, "1 or more");
  const auto most = fmt::format("at most {}", kMostOfASide);
  require(options.m <= kMostOfASide, "m", options.m, most);
  require(options.n <= kMostOfASide, "n", options.n, most);
  require(options.k <= kMostOfASide, "k", options.k, most);
  const Size sum = std::accumulate(options.ns.begin(), options.ns.end(), Size{0});
  if (!options.ns.empty() && op != Operator::kAllGatherGemm)
    throw InvalidArgument(
        fmt::format("ns: a list of {} given, allowed for {} is none: it has one B, of n", options.ns.size(), name(op)));
  for (const Size n : options.ns) require(n >= 1, "ns", n, "1 or more each");
  require(options.ns.empty() || sum == options.n, "ns", sum, fmt::format("n, {}, in all", options.n));
  require(options.shots >= 0 && options.shots <= (op == Operator::kGemmAllReduce ? 2 : 0), "shots", options.shots,
          op == Operator::kGemmAllReduce ? "1, 2, or 0 for what suits the rows" : "0");
  require(options.splits >= 0 && options.splits <= 8, "splits", options.splits, "1 to 8, or 0 for what suits");
  require(options.tile_m >= 1, "tile_m", options.tile_m, "1 or more");
  require(options.tile_n >= 1, "tile_n", options.tile_n, "1 or more");
  require(options.panel_group >= 0, "panel_group", options.panel_group, "0 or more");
  const bool needs_sm = op == Operator::kAllGatherGemm && options.copy_by == CopyBy::kSm;
  const int given = options.communication_sms;
  // A GPU's GEMM takes SMs in pairs, and leaves some to steps beside it.
  const int left = machine.gpu.sm_count - (world.on_gpus() ? 2 + kStepSms : 1);
  require(given == -1 || (given >= (needs_sm ? 1 : 0) && given <= left), "communication_sms", given,
          fmt::format("{} to {} on {}, or -1 for what the transport needs", needs_sm ? 1 : 0, left, machine.name));
  if (options.reduction == Reduction::kChain) {
    if (op == Operator::kAllGatherGemm)
      throw InvalidArgument("reduction: kChain given, allowed for all_gather_gemm is none: it adds nothing up");
    if (options.direction == Direction::kPull)
      throw InvalidArgument("direction: kPull given, allowed for a chain is kPush: each PE sends its sums on");
    if (!options.order.empty() && options.order != "peers_first")
      throw InvalidArgument(
          fmt::format("order: {} given, allowed for a chain is peers_first, in which sums go on", options.order));
  }
  check_types(op, options, world.on_gpus());
  if (world.on_gpus()) check_row_bytes(op, options, world.num_pes());
}

void check(const OperatorOptions& options, const OperatorCall& call) {
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
  if (options.a_scale_per_row && call.a_scale == nullptr)
    throw InvalidArgument("a_scale: none given, allowed with a_scale_per_row is one for each row");
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
  add(all.read, "a", 0, call.a, a_rows * k * type);
  add(all.read, "a_scale", 0, call.a_scale, (options.a_scale_per_row ? a_rows : 1) * kFloat);
  for (std::size_t i = 0; i < call.b.size(); ++i) {
    const Size whole = options.ns.empty() ? options.n : options.ns[i];
    const Size n = gathers ? shard(whole) : whole;
    add(all.read, "b", i, call.b[i], n * k * type);
    if (!call.bias.empty()) add(all.read, "bias", i, call.bias[i], n * std::max(out, size_of(DType::kBF16)));
    if (!call.b_scale.empty())
      add(all.read, "b_scale", i, call.b_scale[i], (options.b_scale_per_column ? n : 1) * kFloat);
    if (!call.c_scale.empty()) add(all.read, "c_scale", i, call.c_scale[i], kFloat);
    add(all.written, "c", i, call.c[i], c_rows * n * out);
  }
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
  require_given("a", call.a, has_shard(gathers ? call.m : options.k));
  for (std::size_t i = 0; i < call.b.size(); ++i) {
    const bool has_columns = has_shard(options.ns.empty() ? options.n : options.ns[i]);
    require_given("b", call.b[i], gathers ? has_columns : has_shard(options.k));
    if (!call.bias.empty()) require_given("bias", call.bias[i], call.bias[i] != nullptr);
    require_given("c", call.c[i], gathers ? has_columns : op == Operator::kGemmAllReduce || has_shard(call.m));
  }
}

}  // namespace tandem::ops
