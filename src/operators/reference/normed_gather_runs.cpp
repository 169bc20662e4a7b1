#include "operators/reference/normed_gather_runs.h"

#include <fmt/format.h>

#include <cstring>

#include "collectives/reference/norm_example.h"
#include "operators/reference/example_runs.h"
#include "operators/resolve/operator_check.h"

namespace tandem::ops {

namespace {

using Bytes = std::vector<std::byte>;

/// The example's inputs of all PEs add up to A.
AllReduceNormOptions gathered_example(const OperatorOptions& o) {
  AllReduceNormOptions norm =
      example_of_steps(o, given_a_type(Operator::kAllGatherGemm, o), quantisation_of_a(Operator::kAllGatherGemm, o));
  norm.sharded_residual = true;
  return norm;
}

class GatherRuns {
 public:
  GatherRuns(World& world, Stream& main, const NormedRuns& runs)
      : world_(world),
        main_(main),
        runs_(runs),
        type_(runs.options.type),
        out_type_(runs.options.result_type()),
        k_(runs.options.n) {
    const OperatorOptions& o = runs.options;
    const kernels::NormExample any(gathered_example(o), world.num_pes(), 0, 0);
    weight_ = memory_.copied(any.weight(), "weight");
    norm_bias_ = memory_.copied(any.norm_bias(), "norm_bias");
    Size begin = 0;
    for (const Size n : o.ns.empty() ? std::vector{o.n} : o.ns) {
      const Range own = split(n, world.num_pes())[world.pe()];
      columns_.push_back({begin + own.begin, begin + own.end});
      b_.push_back(memory_.copied(identity(columns_.back()), "part of the identity"));
      begin += n;
    }
    if (o.block_scales) {
      const auto blocks = static_cast<std::size_t>(ceil_div(k_, Size{128}) * ceil_div(k_, Size{128}));
      const std::vector<float> ones(blocks, 1.0F);
      ones_ = world.heap().allocate_local<float>(static_cast<Size>(blocks), "scales of the identity");
      world.copy_in(ones_, ones.data(), static_cast<Size>(blocks * sizeof(float)));
    }
    if (!runs.own_buffers) shared_ = buffers(o.m);
    OperatorOptions complete = o;
    complete.k = k_;
    plan_ = make_operator(world, Operator::kAllGatherGemm, complete);
  }

  std::string wrong() {
    return first_wrong(
        world_, main_, runs_.rows, [this](int number) { return prepared(number); },
        [this](const Call& call) { runs_.own_buffers ? run(call, call.buffers) : run_in_shared(call); },
        [this](const Call& call) { return verify(call); });
  }

 private:
  struct Buffers {
    std::byte *a, *residual, *sum, *gathered;
    std::vector<void*> c;
  };
  struct Call {
    kernels::NormExample example;
    Buffers buffers;  // of the run, or copies of its inputs and outputs
    bool keeps_gathered;
  };

  Size row() const { return k_ * size_of(out_type_); }
  Size own_rows(Size rows) const { return split(rows, world_.num_pes())[world_.pe()].size(); }

  /// Returns buffers for a run of up to `rows` rows. A later PE's part can be larger for fewer rows.
  Buffers buffers(Size rows) {
    const Size own = split(rows, world_.num_pes())[0].size() * row();
    Buffers all{};
    all.a = memory_.room(own, "a");
    all.residual = memory_.room(own, "residual");
    all.sum = runs_.sum_in_residual ? all.residual : memory_.room(own, "sum");
    all.gathered = memory_.room(rows * row(), "gathered");
    for (const Range& columns : columns_)
      all.c.push_back(memory_.room(rows * columns.size() * size_of(out_type_), "c"));
    return all;
  }

  Bytes identity(Range columns) const {
    return dispatch(type_, [&]<class T>() {
      std::vector<T> all(static_cast<std::size_t>(columns.size() * k_), convert<T>(0.0F));
      for (Size i = 0; i < columns.size(); ++i)
        all[static_cast<std::size_t>(i * k_ + columns.begin + i)] = convert<T>(1.0F);
      Bytes bytes(all.size() * sizeof(T));
      std::memcpy(bytes.data(), all.data(), bytes.size());
      return bytes;
    });
  }

  /// Returns this PE's rows of A.
  Bytes own_a(const kernels::NormExample& example) const {
    const Range own = split(example.rows(), world_.num_pes())[world_.pe()];
    return dispatch(out_type_, [&]<class T>() {
      std::vector<float> sums(static_cast<std::size_t>(own.size() * k_));
      for (int pe = 0; pe < world_.num_pes(); ++pe) {
        const Bytes part = example.in(pe);
        const T* const values = reinterpret_cast<const T*>(part.data()) + own.begin * k_;
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += convert<float>(values[i]);
      }
      Bytes bytes(sums.size() * sizeof(T));
      for (std::size_t i = 0; i < sums.size(); ++i) {
        const T value = convert<T>(sums[i]);
        std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
      }
      return bytes;
    });
  }

  Call prepared(int number) {
    const Size rows = runs_.rows[static_cast<std::size_t>(number)];
    kernels::NormExample example(gathered_example(runs_.options), world_.num_pes(), rows, number);
    Buffers own = buffers(rows);
    const auto fill = [&](std::byte* to, const Bytes& from) {
      world_.copy_in(to, from.data(), static_cast<Size>(from.size()));
    };
    fill(own.a, own_a(example));
    fill(own.residual, example.residual(world_.pe()));
    // In shared buffers the sum of the residual's place goes to another one.
    if (!runs_.own_buffers) own.sum = memory_.room(own_rows(rows) * row(), "sum");
    // Normed rows of fp8 are compared times their scales, which C has.
    return {example, own, runs_.keeps_gathered && number % 2 == 0 && type_ == out_type_};
  }

  void run(const Call& call, const Buffers& in) {
    const OperatorNorm& norm = runs_.options.norm;
    const std::vector<const void*> b(b_.begin(), b_.end());
    OperatorCall run{.m = call.example.rows(), .a = in.a, .b = b, .c = in.c};
    const std::vector<const float*> b_scale(b.size(), ones_);
    if (ones_ != nullptr) run.b_scale = b_scale;
    if (call.keeps_gathered) run.gathered = in.gathered;
    if (norm.residual) run.residual = in.residual;
    if (norm.norm != Norm::kNone) run.norm_weight = weight_;
    if (norm.norm_bias) run.norm_bias = norm_bias_;
    if (norm.sum) run.sum = in.sum;
    plan_->run(main_, run);
  }

  void run_in_shared(const Call& call) {
    const Size rows = call.example.rows();
    const Buffers& kept = call.buffers;
    main_.copy_async(shared_.a, kept.a, own_rows(rows) * row());
    main_.copy_async(shared_.residual, kept.residual, own_rows(rows) * row());
    run(call, shared_);
    for (std::size_t i = 0; i < columns_.size(); ++i)
      main_.copy_async(kept.c[i], shared_.c[i], rows * columns_[i].size() * size_of(out_type_));
    main_.copy_async(kept.sum, shared_.sum, call.example.sum_bytes(world_.pe()));
    if (call.keeps_gathered) main_.copy_async(kept.gathered, shared_.gathered, rows * row());
  }

  std::string verify(const Call& call) {
    const Size rows = call.example.rows();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const Bytes c = memory_.read(call.buffers.c[i], rows * columns_[i].size() * size_of(out_type_));
      if (const auto errors = call.example.errors_of_columns(columns_[i], c.data()); errors.wrong > 0)
        return errors.first;
    }
    const Bytes sum = memory_.read(call.buffers.sum, call.example.sum_bytes(world_.pe()));
    if (!call.keeps_gathered) return call.example.errors_of_sum(world_.pe(), sum.data()).first;
    const Bytes gathered = memory_.read(call.buffers.gathered, rows * row());
    return call.example.errors(world_.pe(), gathered.data(), sum.data(), nullptr).first;
  }

  World& world_;
  PeMemory memory_{world_};
  Stream& main_;
  const NormedRuns& runs_;
  DType type_, out_type_;  // of what is multiplied; of A, C and the norm
  Size k_;
  std::vector<Range> columns_;  // of each B, in the whole
  std::vector<std::byte*> b_;
  float* ones_ = nullptr;
  Buffers shared_{};
  std::byte *weight_, *norm_bias_;
  std::unique_ptr<OperatorPlan> plan_;
};

}  // namespace

std::string wrong_of_normed_gather(World& world, Stream& main, const NormedRuns& runs) {
  return GatherRuns(world, main, runs).wrong();
}

}  // namespace tandem::ops
