#include "operators/normed/row_norms.h"

#include <algorithm>

#include "operators/normed/norm_rows.h"
#include "tandem/advanced/local_handle.h"

namespace tandem::ops {

namespace {

constexpr int kThreads = 512;

}  // namespace

RowNorms::RowNorms(World& world, const OperatorOptions& options, Size most) : world_(world), options_(options) {
  const int blocks = static_cast<int>(std::clamp<Size>(most, 1, world.machine().gpu.sm_count));
  grid_ = {blocks, kThreads};
  const Size row = options.n * size_of(options.result_type());
  if (options.norm.quantisation != Quantisation::kNone)
    sums_ = world.heap().allocate_local<std::byte>(most * row, "sums before the norm");
  if (!options.norm.sum) kept_ = world.heap().allocate_local<std::byte>(blocks * row, "sums of a row");
}

void RowNorms::run(Stream& main, const OperatorCall& call, Size rows) const {
  if (rows == 0) return;
  const auto of_type = [&]<class T>() {
    if (options_.norm.quantisation == Quantisation::kNone)
      launch<T, T>(main, call, rows);
    else
      launch<T, fp8_e4m3>(main, call, rows);
  };
  if (options_.result_type() == DType::kF32) return of_type.template operator()<float>();
  if (options_.result_type() == DType::kF16) return of_type.template operator()<f16>();
  of_type.template operator()<bf16>();
}

template <class T, class Q>
void RowNorms::launch(Stream& main, const OperatorCall& call, Size rows) const {
  const OperatorNorm& norm = options_.norm;
  typename NormRows<T, Q>::Args args{};
  args.residual = static_cast<const T*>(call.residual);
  args.weight = static_cast<const T*>(call.norm_weight);
  args.norm_bias = static_cast<const T*>(call.norm_bias);
  args.out = local_handle(world_, static_cast<Q*>(call.c[0]));
  args.sum = local_handle(world_, static_cast<T*>(call.sum));
  args.scales = local_handle(world_, call.scales);
  args.kept = reinterpret_cast<T*>(kept_);
  args.rows = rows;
  args.hidden = options_.n;
  args.norm = norm.norm;
  args.quantisation = norm.quantisation;
  args.epsilon = static_cast<float>(norm.epsilon);
  args.scale = static_cast<float>(norm.scale);
  args.rows_of_sums = static_cast<const T*>(place_of_sums(call));
  main.launch<NormRows<T, Q>>({static_cast<int>(std::min<Size>(grid_.blocks, rows)), kThreads}, args);
}

}  // namespace tandem::ops
