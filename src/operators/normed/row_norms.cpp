#include "operators/normed/row_norms.h"

#include <algorithm>

#include "operators/normed/norm_and_push.h"
#include "tandem/advanced/local_handle.h"

namespace tandem::ops {

namespace {

constexpr int kThreads = 512;

}  // namespace

RowNorms::RowNorms(World& world, const OperatorNorm& norm, DType type, Size columns, Size most)
    : world_(world), norm_(norm), type_(type), columns_(columns) {
  const int blocks = static_cast<int>(std::clamp<Size>(most, 1, world.machine().gpu.sm_count));
  grid_ = {blocks, kThreads};
  // A buffer of one PE would not make the heap grow.
  if (!norm.sum) kept_ = world.heap().allocate<std::byte>(blocks * columns * size_of(type), "sums of a row").local();
}

template <class Launch>
void RowNorms::dispatch_types(const Launch& launch) const {
  const auto of_type = [&]<class T>() {
    if (norm_.quantisation == Quantisation::kNone)
      launch.template operator()<T, T>();
    else
      launch.template operator()<T, fp8_e4m3>();
  };
  if (type_ == DType::kF32) return of_type.template operator()<float>();
  if (type_ == DType::kF16) return of_type.template operator()<f16>();
  of_type.template operator()<bf16>();
}

void RowNorms::run(Stream& main, const RowsToNorm& rows) const {
  if (rows.rows == 0) return;
  dispatch_types([&]<class T, class Q>() {
    const auto args = args_of<typename NormRows<T, Q>::Args, T, Q>(rows);
    main.launch<NormRows<T, Q>>({static_cast<int>(std::min<Size>(grid_.blocks, rows.rows)), kThreads}, args);
  });
}

void RowNorms::push(Stream& main, const RowsToNorm& rows, const Signals& ready, int chunks) const {
  dispatch_types([&]<class T, class Q>() {
    auto args = args_of<typename NormAndPush<T, Q>::Args, T, Q>(rows);
    args.out_to_all = true;
    args.ready = ready;
    args.chunks = chunks;
    main.launch<NormAndPush<T, Q>>(grid_, args);
  });
}

template <class Args, class T, class Q>
Args RowNorms::args_of(const RowsToNorm& rows) const {
  Args args{};
  args.residual = static_cast<const T*>(rows.residual);
  args.weight = static_cast<const T*>(rows.weight);
  args.norm_bias = static_cast<const T*>(rows.bias);
  args.out = rows.out.as<Q>();
  args.sum = local_handle(world_, static_cast<T*>(rows.sum));
  args.scales = rows.scales;
  args.kept = reinterpret_cast<T*>(kept_);
  args.rows = rows.rows;
  args.hidden = columns_;
  args.norm = norm_.norm;
  args.quantisation = norm_.quantisation;
  args.epsilon = static_cast<float>(norm_.epsilon);
  args.scale = static_cast<float>(norm_.scale);
  args.rows_of_sums = static_cast<const T*>(rows.from);
  return args;
}

}  // namespace tandem::ops
