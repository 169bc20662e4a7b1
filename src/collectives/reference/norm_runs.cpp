#include "collectives/reference/norm_runs.h"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/all_reduce_norm/check.h"
#include "collectives/reference/norm_example.h"

namespace tandem::kernels {

namespace {

using Bytes = std::vector<std::byte>;

class Runs {
 public:
  Runs(World& world, const NormRuns& runs)
      : world_(world), runs_(runs), most_(runs.options, world.num_pes(), runs.options.max_rows, 0) {
    SymmetricHeap& heap = world.heap();
    const AllReduceNormOptions& o = runs.options;
    whole_ = o.max_rows * o.hidden * size_of(o.type);
    const bool quantised = o.quantisation != Quantisation::kNone;
    in_ = heap.allocate<std::byte>(whole_, "in");
    residual_ = heap.allocate<std::byte>(whole_, "residual");
    sum_ = heap.allocate<std::byte>(whole_, "sum");
    out_ = heap.allocate<std::byte>(most_.out_bytes(), "out");
    scales_ = heap.allocate<float>(most_.scales_bytes() / Size{sizeof(float)}, "scales");
    if (runs.places != NormPlaces::kSeparate && o.residual) {
      const bool in_input = runs.places == NormPlaces::kSumInInput;
      if (o.sum) sum_ = in_input && !o.sharded_residual ? in_ : residual_;
      if (!quantised && !o.sharded_residual) out_ = in_input ? residual_ : in_;
    }
    weight_ = copied(most_.weight(), "weight");
    bias_ = copied(most_.bias(), "bias");
    norm_bias_ = copied(most_.norm_bias(), "norm_bias");
    plan_ = make_all_reduce_norm(world, o);
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
    NormExample example;
    std::byte *in, *residual, *out, *sum, *scales;  // copies of inputs and outputs
  };

  std::byte* copied(const Bytes& bytes, const char* what) {
    auto* const memory = world_.heap().allocate_local<std::byte>(static_cast<Size>(bytes.size()), what);
    world_.copy_in(memory, bytes.data(), static_cast<Size>(bytes.size()));
    return memory;
  }

  Call prepared(int number) {
    NormExample example(runs_.options, world_.num_pes(), runs_.rows[static_cast<std::size_t>(number)], number,
                        runs_.fractions);
    const auto room = [&](Size bytes) { return world_.heap().allocate_local<std::byte>(bytes, "results"); };
    std::byte* const in = copied(example.in(world_.pe()), "input");
    std::byte* const residual = copied(example.residual(world_.pe()), "residual");
    return {example,
            in,
            residual,
            room(example.out_bytes()),
            room(example.sum_bytes(world_.pe())),
            room(example.scales_bytes())};
  }

  void enqueue(Stream& stream, const Call& call) {
    const AllReduceNormOptions& o = runs_.options;
    const Size rows = call.example.rows();
    const Size row = o.hidden * size_of(o.type);
    stream.copy_async(in_.local(), call.in, rows * row);
    stream.copy_async(residual_.local(), call.residual, held_rows(o, world_.team(), rows) * row);
    AllReduceNormCall run{.rows = rows, .in = in_, .out = out_};
    if (o.residual) run.residual = residual_.local();
    if (o.norm != Norm::kNone) run.weight = weight_;
    if (o.bias) run.bias = bias_;
    if (o.norm_bias) run.norm_bias = norm_bias_;
    if (o.sum) run.sum = sum_;
    if (most_.scales_bytes() > 0) run.scales = scales_;
    plan_->run(stream, run);
    stream.copy_async(call.out, out_.local(), call.example.out_bytes());
    stream.copy_async(call.sum, sum_.local(), call.example.sum_bytes(world_.pe()));
    stream.copy_async(call.scales, scales_.as<std::byte>().local(), call.example.scales_bytes());
  }

  std::string verify(const Call& call) {
    const auto of_device = [&](const std::byte* memory, Size bytes) {
      Bytes host(static_cast<std::size_t>(bytes));
      world_.copy_out(host.data(), memory, bytes);
      return host;
    };
    const Bytes out = of_device(call.out, call.example.out_bytes());
    const Bytes sum = of_device(call.sum, call.example.sum_bytes(world_.pe()));
    const Bytes scales = of_device(call.scales, call.example.scales_bytes());
    return call.example.errors(world_.pe(), out.data(), sum.data(), scales.data()).first;
  }

  World& world_;
  const NormRuns& runs_;
  NormExample most_;
  Size whole_ = 0;
  Symm<std::byte> in_, residual_, sum_, out_;
  Symm<float> scales_;
  std::byte *weight_, *bias_, *norm_bias_;
  std::unique_ptr<AllReduceNormPlan> plan_;
};

}  // namespace

std::string wrong_of_runs(World& world, const NormRuns& runs) { return Runs(world, runs).wrong(); }

}  // namespace tandem::kernels
