#include "operators/reference/normed_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "collectives/reference/norm_example.h"
#include "operators/reference/example_runs.h"
#include "operators/reference/normed_gather_runs.h"

namespace tandem::ops {

namespace {

using Bytes = std::vector<std::byte>;

AllReduceNormOptions example_options(const NormedRuns& runs) {
  const OperatorOptions& o = runs.options;
  AllReduceNormOptions norm = example_of_steps(o, o.result_type(), o.norm.quantisation);
  norm.sharded_residual = runs.op == Operator::kGemmReduceScatter;
  return norm;
}

class Runs {
 public:
  Runs(World& world, Stream& main, const NormedRuns& runs)
      : world_(world),
        main_(main),
        runs_(runs),
        depth_(std::max({runs.options.m, runs.depth, Size{1}})),
        most_(example_options(runs), world.num_pes(), runs.options.m, 0) {
    const OperatorOptions& o = runs.options;
    if (!runs.own_buffers) shared_ = shared_buffers();
    weight_ = memory_.copied(most_.weight(), "weight");
    norm_bias_ = memory_.copied(most_.norm_bias(), "norm_bias");
    OperatorOptions complete = o;
    complete.k = depth_ * world.num_pes();
    plan_ = make_operator(world, runs.op, complete);
  }

  std::string wrong() {
    return first_wrong(
        world_, main_, runs_.rows, [this](int number) { return prepared(number); },
        [this](const Call& call) { runs_.own_buffers ? run(call, call.buffers) : run_in_shared(call); },
        [this](const Call& call) { return verify(call); });
  }

 private:
  struct Buffers {
    std::byte *a, *b, *residual, *c, *sum, *scales;
  };
  struct Call {
    kernels::NormExample example;
    Buffers buffers;  // of the run, or copies of its inputs and outputs
  };

  /// Returns buffers for any run.
  Buffers shared_buffers() {
    const OperatorOptions& o = runs_.options;
    const Size whole = o.m * o.n * size_of(o.result_type());
    Buffers all{};
    all.a = memory_.room(o.m * depth_ * size_of(o.type), "a");
    all.b = memory_.room(o.n * depth_ * size_of(o.type), "b");
    all.residual = memory_.room(whole, "residual");
    all.c = memory_.room(most_.out_bytes(), "c");
    all.sum = runs_.sum_in_residual ? all.residual : memory_.room(whole, "sum");
    all.scales = memory_.room(most_.scales_bytes(), "scales");
    return all;
  }

  /// Returns rows x depth elements: value(row, l).
  template <class Value>
  Bytes matrix(Size rows, const Value& value) const {
    return dispatch(runs_.options.type, [&]<class T>() {
      Bytes bytes(static_cast<std::size_t>(rows * depth_) * sizeof(T));
      for (Size i = 0; i < rows * depth_; ++i) {
        const T element = convert<T>(static_cast<float>(value(i / depth_, i % depth_)));
        std::memcpy(bytes.data() + i * Size{sizeof(T)}, &element, sizeof(T));
      }
      return bytes;
    });
  }
  Bytes columns_of(const kernels::NormExample& example) const {
    const Bytes in = example.in(world_.pe());
    return dispatch(runs_.options.result_type(), [&]<class T>() {
      const T* const of = reinterpret_cast<const T*>(in.data());
      return matrix(runs_.options.n, [&](Size column, Size row) {
        return row < example.rows() ? convert<float>(of[row * runs_.options.n + column]) : 0;
      });
    });
  }

  Call prepared(int number) {
    kernels::NormExample example(example_options(runs_), world_.num_pes(), runs_.rows[static_cast<std::size_t>(number)],
                                 number);
    Buffers own{};
    own.a = memory_.copied(matrix(example.rows(), [](Size row, Size l) { return row == l ? 1 : 0; }), "identity");
    own.b = memory_.copied(columns_of(example), "columns");
    own.residual = memory_.copied(example.residual(world_.pe()), "residual");
    own.c = memory_.room(example.out_bytes(), "results");
    const bool in_place = runs_.own_buffers && runs_.sum_in_residual;
    own.sum = in_place ? own.residual : memory_.room(example.sum_bytes(world_.pe()), "results");
    own.scales = memory_.room(example.scales_bytes(), "results");
    return {example, own};
  }

  /// Returns this PE's part of `bytes` of all rows.
  Size own(Size bytes, Size rows) const {
    if (runs_.op == Operator::kGemmAllReduce || rows == 0) return bytes;
    return bytes / rows * split(rows, world_.num_pes())[world_.pe()].size();
  }

  void run(const Call& call, const Buffers& in) {
    const OperatorOptions& o = runs_.options;
    const void* const b = in.b;
    void* const c = in.c;
    OperatorCall run{.m = call.example.rows(), .a = in.a, .b = {&b, 1}, .c = {&c, 1}};
    if (o.norm.residual) run.residual = in.residual;
    if (o.norm.norm != Norm::kNone) run.norm_weight = weight_;
    if (o.norm.norm_bias) run.norm_bias = norm_bias_;
    if (o.norm.sum) run.sum = in.sum;
    if (most_.scales_bytes() > 0) run.scales = reinterpret_cast<float*>(in.scales);
    plan_->run(main_, run);
  }

  void run_in_shared(const Call& call) {
    const OperatorOptions& o = runs_.options;
    const Size rows = call.example.rows();
    const Buffers& kept = call.buffers;
    main_.copy_async(shared_.a, kept.a, rows * depth_ * size_of(o.type));
    main_.copy_async(shared_.b, kept.b, o.n * depth_ * size_of(o.type));
    main_.copy_async(shared_.residual, kept.residual, own(rows * o.n * size_of(o.result_type()), rows));
    run(call, shared_);
    main_.copy_async(kept.c, shared_.c, own(call.example.out_bytes(), rows));
    main_.copy_async(kept.sum, shared_.sum, call.example.sum_bytes(world_.pe()));
    main_.copy_async(kept.scales, shared_.scales, own(call.example.scales_bytes(), rows));
  }

  std::string verify(const Call& call) {
    const Bytes c = memory_.read(call.buffers.c, call.example.out_bytes());
    const Bytes sum = memory_.read(call.buffers.sum, call.example.sum_bytes(world_.pe()));
    const Bytes scales = memory_.read(call.buffers.scales, call.example.scales_bytes());
    if (runs_.op == Operator::kGemmAllReduce)
      return call.example.errors(world_.pe(), c.data(), sum.data(), scales.data()).first;
    return call.example.errors_of_own(world_.pe(), c.data(), sum.data(), scales.data()).first;
  }

  World& world_;
  PeMemory memory_{world_};
  Stream& main_;
  const NormedRuns& runs_;
  Size depth_;
  kernels::NormExample most_;
  Buffers shared_{};
  std::byte *weight_, *norm_bias_;
  std::unique_ptr<OperatorPlan> plan_;
};

}  // namespace

std::string wrong_of_normed_runs(World& world, Stream& main, const NormedRuns& runs) {
  if (runs.op == Operator::kAllGatherGemm) return wrong_of_normed_gather(world, main, runs);
  return Runs(world, main, runs).wrong();
}

}  // namespace tandem::ops
