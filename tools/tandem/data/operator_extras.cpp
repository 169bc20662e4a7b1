#include "tools/tandem/data/operator_extras.h"

#include <cmath>

#include "gemm/contract/epilogue.h"
#include "tandem/advanced/gemm_scales.h"
#include "tools/tandem/data/block_scales.h"
#include "tools/tandem/data/data.h"
#include "tools/tandem/data/normed_data.h"
#include "tools/tandem/data/operator_data.h"

namespace tandem::cli {
namespace {

constexpr std::uint64_t kStreamOfBias = 2, kStreamOfAScales = 3, kStreamOfBScales = 4;

DType bias_dtype(const OperatorRun& run) {
  Gemm gemm;
  gemm.out_type = run.options.result_type();
  return bias_type(gemm);
}

/// Converts values of T to f32.
template <class T>
std::vector<float> normal_values(std::uint64_t seed, std::uint64_t stream, const std::vector<Size>& places) {
  const NormalData<T> data(seed);
  std::vector<float> values;
  values.reserve(places.size());
  for (const Size place : places) values.push_back(convert<float>(data(stream, place)));
  return values;
}

/// Scales near 1; none is 0.
std::vector<float> scales(std::uint64_t seed, std::uint64_t stream, const std::vector<Size>& places) {
  std::vector<float> values = normal_values<float>(seed, stream, places);
  for (float& value : values) value = std::exp2(value / 4);
  return values;
}

/// Returns one value for each place, or the first one for all.
std::vector<float> scales(std::uint64_t seed, std::uint64_t stream, const std::vector<Size>& places, bool each) {
  return scales(seed, stream, each ? places : std::vector<Size>(places.size(), 0));
}

std::vector<float> bias_values(const OperatorRun& run, std::uint64_t seed, const std::vector<Size>& columns) {
  std::vector<float> values;
  dispatch(bias_dtype(run), [&]<class T>() {
    if constexpr (is_float<T>) values = normal_values<T>(seed, kStreamOfBias, columns);
  });
  return values;
}

}  // namespace

std::vector<Size> all_of(Range range) {
  std::vector<Size> places;
  for (Size i = range.begin; i < range.end; ++i) places.push_back(i);
  return places;
}

EpilogueValues epilogue_of(const OperatorRun& run, std::uint64_t seed, const std::vector<Size>& rows,
                           const std::vector<Size>& columns) {
  EpilogueValues epilogue;
  epilogue.activation = run.options.activation;
  if (run.bias) epilogue.bias = bias_values(run, seed, columns);
  if (!run.scales || run.options.block_scales) return epilogue;
  if (!run.quantises_a()) epilogue.row_scales = scales(seed, kStreamOfAScales, rows, run.options.a_scale_per_row);
  epilogue.column_scales = scales(seed, kStreamOfBScales, columns, run.options.b_scale_per_column);
  return epilogue;
}

bool norms_sums(const OperatorRun& run) { return run.options.norm.any() && run.op != Operator::kAllGatherGemm; }

Size columns_of_norm(const OperatorRun& run) {
  return run.op == Operator::kAllGatherGemm ? run.options.k : run.options.n;
}

OperatorExtras::OperatorExtras(World& world, const OperatorRun& run, std::uint64_t seed)
    : world_(world), run_(run), seed_(seed) {
  const OperatorShard shard = operator_shard(run.op, run.shape(), world.num_pes(), world.pe());
  SymmetricHeap& heap = world.heap();
  if (run.bias) bias_ = heap.allocate_local<std::byte>(shard.c_columns.size() * size_of(bias_dtype(run)), "bias");
  if (run.options.norm.any()) {
    const Size row = columns_of_norm(run) * size_of(run.options.result_type());
    const Size rows = rows_of_norm(run.options.m).size();
    residual_ = heap.allocate_local<std::byte>(rows * row, "residual");
    norm_weight_ = heap.allocate_local<std::byte>(row, "norm weight");
    sum_ = heap.allocate_local<std::byte>(rows * row, "sum");
    norm_scales_ = heap.allocate_local<float>(rows * ceil_div(run.options.n, Size{128}), "scales of c");
  }
  if (!run.scales) return;
  const OperatorOptions& o = run.options;
  const Size columns = shard.c_columns.size(), steps = o.block_scales ? scale_blocks(shard.a_columns.size()) : 1;
  const Size of_n = o.block_scales ? GemmScales::blocks_of_columns(columns, is_gated(o.activation)) : columns;
  if (!run.quantises_a()) a_scale_ = heap.allocate_local<float>(max(1, shard.a_rows.size() * steps), "scales of a");
  b_scale_ = heap.allocate_local<float>(max(1, of_n * steps), "scales of b");
}

Range OperatorExtras::rows_of_norm(Size m) const {
  return run_.op == Operator::kGemmAllReduce ? Range{0, m} : split(m, world_.num_pes())[world_.pe()];
}

void OperatorExtras::fill(Size m) {
  const OperatorShard shard =
      operator_shard(run_.op, {m, run_.options.n, run_.options.k}, world_.num_pes(), world_.pe());
  const auto copy = [&]<class T>(void* to, const std::vector<T>& values) {
    world_.copy_in(to, values.data(), static_cast<Size>(values.size() * sizeof(T)));
  };
  // A common value exists on PEs without rows, too.
  const auto places = [](bool each, Range range) { return each ? all_of(range) : std::vector<Size>{0}; };
  const OperatorOptions& o = run_.options;
  if (run_.bias)
    dispatch(bias_dtype(run_), [&]<class T>() {
      std::vector<T> values;
      for (const float value : bias_values(run_, seed_, all_of(shard.c_columns))) values.push_back(convert<T>(value));
      copy(bias_, values);
    });
  if (o.norm.any()) {
    const auto copy_row = [&](std::byte* to, const std::vector<float>& row) {
      dispatch(o.result_type(), [&]<class T>() {
        std::vector<T> values;
        values.reserve(row.size());
        for (const float value : row) values.push_back(convert<T>(value));
        copy(to, values);
      });
    };
    copy_row(norm_weight_, norm_weight(run_, seed_));
    const Range rows = rows_of_norm(m);
    for (Size row = rows.begin; row < rows.end; ++row)
      copy_row(residual_ + (row - rows.begin) * columns_of_norm(run_) * size_of(o.result_type()),
               residual_row(run_, seed_, row));
  }
  if (!run_.scales) return;
  if (o.block_scales) {
    const BlockScales blocks(run_, world_.num_pes(), seed_);
    if (a_scale_ != nullptr) copy(a_scale_, blocks.of_a(world_.pe(), shard.a_rows));
    copy(b_scale_, blocks.of_b(world_.pe()));
    return;
  }
  if (a_scale_ != nullptr) copy(a_scale_, scales(seed_, kStreamOfAScales, places(o.a_scale_per_row, shard.a_rows)));
  copy(b_scale_, scales(seed_, kStreamOfBScales, places(o.b_scale_per_column, shard.c_columns)));
}

OperatorCall OperatorExtras::call(Size m, const void* a, const void* b, void* c) {
  b_call_ = b;
  c_call_ = c;
  bias_call_ = bias_;
  b_scale_call_ = b_scale_;
  OperatorCall call{m, a, {&b_call_, 1}, {&c_call_, 1}};
  if (run_.bias) call.bias = {&bias_call_, 1};
  const OperatorNorm& norm = run_.options.norm;
  if (norm.residual) call.residual = residual_;
  if (norm.norm != Norm::kNone) call.norm_weight = norm_weight_;
  if (norm.sum) call.sum = sum_;
  if (norm.quantisation == Quantisation::kRow || norm.quantisation == Quantisation::kGroup) call.scales = norm_scales_;
  if (!run_.scales) return call;
  call.a_scale = a_scale_;
  call.b_scale = {&b_scale_call_, 1};
  return call;
}

}  // namespace tandem::cli
