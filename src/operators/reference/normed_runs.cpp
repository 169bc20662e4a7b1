#include "operators/reference/normed_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "collectives/reference/norm_example.h"

namespace tandem::ops {

namespace {

using Bytes = std::vector<std::byte>;

AllReduceNormOptions example_options(const NormedRuns& runs) {
  const OperatorOptions& o = runs.options;
  AllReduceNormOptions norm;
  norm.type = o.result_type();
  norm.hidden = o.n;
  norm.max_rows = o.m;
  norm.norm = o.norm.norm;
  norm.epsilon = o.norm.epsilon;
  norm.residual = o.norm.residual;
  norm.norm_bias = o.norm.norm_bias;
  norm.sum = o.norm.sum;
  norm.quantisation = o.norm.quantisation;
  norm.scale = o.norm.scale;
  norm.sharded_residual = runs.op == Operator::kGemmReduceScatter;
  return norm;
}

class Runs {
 public:
  Runs(World& world, const NormedRuns& runs)
      : world_(world),
        runs_(runs),
        depth_(std::max({runs.options.m, runs.depth, Size{1}})),
        most_(example_options(runs), world.num_pes(), runs.options.m, 0) {
    const OperatorOptions& o = runs.options;
    a_ = room(o.m * depth_ * size_of(o.type), "a");
    b_ = room(o.n * depth_ * size_of(o.type), "b");
    c_ = room(most_.out_bytes(), "c");
    const Size whole = o.m * o.n * size_of(o.result_type());
    residual_ = room(whole, "residual");
    sum_ = runs.sum_in_residual ? residual_ : room(whole, "sum");
    scales_ = room(most_.scales_bytes(), "scales");
    weight_ = copied(most_.weight(), "weight");
    norm_bias_ = copied(most_.norm_bias(), "norm_bias");
    OperatorOptions complete = o;
    complete.k = depth_ * world.num_pes();
    plan_ = make_operator(world, runs.op, complete);
  }

  std::string wrong() {
    Stream stream = world_.make_stream("main");
    std::vector<Call> calls;
    for (std::size_t i = 0; i < runs_.rows.size(); ++i) calls.push_back(prepared(static_cast<int>(i)));
    for (const Call& call : calls) enqueue(stream, call);
    stream.synchronize();
    for (std::size_t i = 0; i < calls.size(); ++i)
      if (const std::string text = verify(calls[i]); !text.empty())
        return fmt::format("PE {}, run {} of {} rows: {}", world_.pe(), i + 1, runs_.rows[i], text);
    return "";
  }

 private:
  struct Call {
    kernels::NormExample example;
    std::byte *a, *b, *residual, *c, *sum, *scales;  // copies of inputs and outputs
  };

  std::byte* room(Size bytes, const char* what) { return world_.heap().allocate_local<std::byte>(bytes, what); }
  std::byte* copied(const Bytes& bytes, const char* what) {
    std::byte* const memory = room(static_cast<Size>(bytes.size()), what);
    world_.copy_in(memory, bytes.data(), static_cast<Size>(bytes.size()));
    return memory;
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
    std::byte* const a = copied(matrix(example.rows(), [](Size row, Size l) { return row == l ? 1 : 0; }), "identity");
    std::byte* const b = copied(columns_of(example), "columns");
    std::byte* const residual = copied(example.residual(world_.pe()), "residual");
    return {example,
            a,
            b,
            residual,
            room(example.out_bytes(), "results"),
            room(example.sum_bytes(world_.pe()), "results"),
            room(example.scales_bytes(), "results")};
  }

  /// Returns this PE's part of `bytes` of all rows.
  Size own(Size bytes, Size rows) const {
    if (runs_.op == Operator::kGemmAllReduce || rows == 0) return bytes;
    return bytes / rows * split(rows, world_.num_pes())[world_.pe()].size();
  }

  void enqueue(Stream& stream, const Call& call) {
    const OperatorOptions& o = runs_.options;
    const Size rows = call.example.rows();
    stream.copy_async(a_, call.a, rows * depth_ * size_of(o.type));
    stream.copy_async(b_, call.b, o.n * depth_ * size_of(o.type));
    stream.copy_async(residual_, call.residual, own(rows * o.n * size_of(o.result_type()), rows));
    const void* const b = b_;
    void* const c = c_;
    OperatorCall run{.m = rows, .a = a_, .b = {&b, 1}, .c = {&c, 1}};
    if (o.norm.residual) run.residual = residual_;
    if (o.norm.norm != Norm::kNone) run.norm_weight = weight_;
    if (o.norm.norm_bias) run.norm_bias = norm_bias_;
    if (o.norm.sum) run.sum = sum_;
    if (most_.scales_bytes() > 0) run.scales = reinterpret_cast<float*>(scales_);
    plan_->run(stream, run);
    stream.copy_async(call.c, c_, own(call.example.out_bytes(), rows));
    stream.copy_async(call.sum, sum_, call.example.sum_bytes(world_.pe()));
    stream.copy_async(call.scales, scales_, own(call.example.scales_bytes(), rows));
  }

  std::string verify(const Call& call) {
    const auto of_device = [&](const std::byte* memory, Size bytes) {
      Bytes host(static_cast<std::size_t>(bytes));
      world_.copy_out(host.data(), memory, bytes);
      return host;
    };
    const Bytes c = of_device(call.c, call.example.out_bytes());
    const Bytes sum = of_device(call.sum, call.example.sum_bytes(world_.pe()));
    const Bytes scales = of_device(call.scales, call.example.scales_bytes());
    if (runs_.op == Operator::kGemmAllReduce)
      return call.example.errors(world_.pe(), c.data(), sum.data(), scales.data()).first;
    return call.example.errors_of_own(world_.pe(), c.data(), sum.data(), scales.data()).first;
  }

  World& world_;
  const NormedRuns& runs_;
  Size depth_;
  kernels::NormExample most_;
  std::byte *a_, *b_, *c_, *residual_, *sum_, *scales_, *weight_, *norm_bias_;
  std::unique_ptr<OperatorPlan> plan_;
};

}  // namespace

std::string wrong_of_normed_runs(World& world, const NormedRuns& runs) { return Runs(world, runs).wrong(); }

}  // namespace tandem::ops
