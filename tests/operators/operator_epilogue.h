#pragma once
/// Operators with a bias, an activation, scaled fp8, and B in either layout: inputs of one PE, and the errors of its
/// results. They serve the simulator and GPUs. Values are small integers and scales are powers of two, so all but the
/// curved activations are exact.

#include <cmath>
#include <map>
#include <mutex>
#include <ostream>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "gemm/contract/epilogue.h"
#include "gemm/host/reference.h"
#include "operators/operator_case.h"

namespace tandem::test {

struct EpilogueCase {
  Operator op = Operator::kAllGatherGemm;
  OperatorOptions options;
  bool bias = false;
  bool scaled = false;  // A and B, and C where it is fp8
};

inline std::ostream& operator<<(std::ostream& out, const EpilogueCase& c) {
  const OperatorOptions& o = c.options;
  out << name(c.op) << " " << o.m << "x" << o.n << "x" << o.k << " " << name(o.type) << " to " << name(o.result_type())
      << " " << name(o.form) << (o.b_layout == BLayout::kKxN ? " KxN" : "") << (c.bias ? " bias" : "") << " activation "
      << static_cast<int>(o.activation) << " splits=" << o.splits << " shots=" << o.shots << " order=" << o.order;
  if (o.copy_by) out << (*o.copy_by == CopyBy::kSm ? " sm" : " copy_engine");
  out << (o.direction == Direction::kPull ? " pull" : " push");
  if (o.reduction) out << (*o.reduction == Reduction::kChain ? " chain" : " owner");
  if (c.scaled)
    out << " scales" << (o.a_scale_per_row ? " by row" : "") << (o.b_scale_per_column ? " by column" : "")
        << (o.block_scales ? " by block" : "") << (o.fast_accumulation ? " fast" : "");
  return out << (o.ns.empty() ? "" : " several B");
}

inline constexpr int kEpilogueData = 3;  // sets of A and B

/// Products of A and B, the same for all cases of a shape: [set][m x n].
inline const std::vector<std::vector<double>>& products(const OperatorOptions& o) {
  static std::map<std::tuple<Size, Size, Size>, std::vector<std::vector<double>>> known;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  auto& found = known[{o.m, o.n, o.k}];
  if (found.empty()) found = reference(o, kEpilogueData);
  return found;
}

/// One PE's part of a case.
class OperatorWithEpilogue {
 public:
  /// `memory`: `room` bytes of this PE's.
  OperatorWithEpilogue(World& world, const EpilogueCase& test, std::byte* memory, Size room)
      : world_(world), case_(test), memory_(memory), room_(room), plan_(make_operator(world, test.op, test.options)) {
    const OperatorOptions& o = test.options;
    a_ = take(o.m * o.k * size_of(o.type));
    a_scale_ = reinterpret_cast<float*>(take(o.m * scale_blocks(o.k) * Size{sizeof(float)}));
    Size first = 0;
    for (const Size n : o.ns.empty() ? std::vector{o.n} : o.ns) {
      const Range all{first, first + n};
      Factor& factor = factors_.emplace_back();
      factor.columns = test.op == Operator::kAllGatherGemm ? split(all, world.num_pes())[world.pe()] : all;
      factor.b = take(n * o.k * size_of(o.type));
      factor.c = take(o.m * n * size_of(o.result_type()));
      factor.bias = take(n * 4);
      factor.b_scale = reinterpret_cast<float*>(take(n * scale_blocks(o.k) * Size{sizeof(float)}));
      factor.c_scale = reinterpret_cast<float*>(take(Size{sizeof(float)}));
      first += n;
    }
  }

  /// Inputs of a run of `m` rows; the result is overwritten.
  void fill(int run, Size m) {
    const OperatorOptions& o = case_.options;
    const Shards shards = shards_of(m);
    const int data = run % kEpilogueData;
    put(a_, o.type, shards.a_rows, shards.a_cols, [&](Size i, Size l) { return element(data, 0, i, l); });
    const Range scaled_rows = o.a_scale_per_row ? shards.a_rows : Range{0, 1};
    const Range depth{0, scale_blocks(shards.a_cols.size())};
    const int part = part_of_depth();
    if (o.block_scales)
      put(a_scale_, DType::kF32, shards.a_rows, depth, [&](Size i, Size l) { return block_a(run, part, i, l); });
    else
      put(a_scale_, DType::kF32, scaled_rows, {0, 1}, [&](Size i, Size) { return a_scale(run, i); });
    for (const Factor& factor : factors_) {
      const auto at = [&](Size j, Size l) { return element(data, 1, j, l); };
      if (o.b_layout == BLayout::kNxK)
        put(factor.b, o.type, factor.columns, shards.b_cols, at);
      else
        put(factor.b, o.type, shards.b_cols, factor.columns, [&](Size l, Size j) { return at(j, l); });
      put(factor.bias, bias_dtype(), {0, 1}, factor.columns, [&](Size, Size j) { return bias(run, j); });
      const Range scaled_cols = o.b_scale_per_column ? factor.columns : Range{0, 1};
      if (o.block_scales)
        put(factor.b_scale, DType::kF32, {0, scale_blocks(factor.columns.size())}, depth,
            [&](Size j, Size l) { return block_b(run, part, j, l); });
      else
        put(factor.b_scale, DType::kF32, {0, 1}, scaled_cols, [&](Size, Size j) { return b_scale(run, j); });
      put(factor.c_scale, DType::kF32, {0, 1}, {0, 1}, [&](Size, Size) { return kCScale; });
      put(factor.c, o.result_type(), shards_of(o.m).c_rows, factor.columns, [](Size, Size) { return kUntouched; });
    }
  }

  void enqueue(Stream& stream, Size m) {
    std::vector<const void*> b, bias;
    std::vector<void*> c;
    std::vector<const float*> b_scale, c_scale;
    for (const Factor& factor : factors_) {
      b.push_back(factor.b);
      c.push_back(factor.c);
      if (case_.bias) bias.push_back(factor.bias);
      if (case_.scaled) b_scale.push_back(factor.b_scale);
      if (scales_c()) c_scale.push_back(factor.c_scale);
    }
    plan_->run(stream, {m, a_, b, c, bias, case_.scaled ? a_scale_ : nullptr, b_scale, c_scale});
  }

  /// Elements of the result that are not as they should be.
  Size wrong(int run, Size m) const {
    Size wrong = 0;
    dispatch(case_.options.result_type(), [&]<class T>() { wrong = wrong_of<T>(run, m); });
    return wrong;
  }

 private:
  static constexpr float kCScale = 0.5F, kUntouched = 72;

  struct Factor {
    Range columns;
    std::byte *b = nullptr, *c = nullptr, *bias = nullptr;
    float *b_scale = nullptr, *c_scale = nullptr;
  };

  std::byte* take(Size bytes) {
    std::byte* const begin = memory_;
    memory_ += ceil_div(bytes, 256) * 256;
    used_ += ceil_div(bytes, 256) * 256;
    if (used_ > room_) throw std::length_error("OperatorWithEpilogue: room for its matrices");
    return begin;
  }

  Shards shards_of(Size m) const {
    OperatorOptions now = case_.options;
    now.m = m;
    return {case_.op, now, world_.pe(), world_.num_pes()};
  }
  DType bias_dtype() const {
    Gemm gemm;
    gemm.out_type = case_.options.result_type();
    return bias_type(gemm);
  }
  bool scales_c() const { return case_.scaled && case_.options.result_type() == DType::kE4M3; }
  float a_scale(int run, Size row) const {
    return case_.options.a_scale_per_row ? std::ldexp(1.0F, -static_cast<int>((row + run) % 3)) : 0.5F;
  }
  float b_scale(int run, Size col) const {
    return case_.options.b_scale_per_column ? std::ldexp(1.0F, -static_cast<int>((col / 3 + run) % 2)) : 0.5F;
  }
  /// Returns the number of this PE's part of the depth.
  int part_of_depth() const { return case_.op == Operator::kAllGatherGemm ? 0 : world_.pe(); }
  /// Scales of the block `at` of a part of the depth: of a row of A, and of 128 columns of a PE's B.
  static float block_a(int run, int part, Size row, Size at) { return (row + at + part + run) % 3 == 0 ? 0.5F : 1; }
  static float block_b(int run, int part, Size block, Size at) { return (block + at + part + run) % 2 == 0 ? 0.5F : 1; }
  double sum_of_blocks(const Factor& factor, int run, Size row, Size col) const {
    const OperatorOptions& o = case_.options;
    const int parts = case_.op == Operator::kAllGatherGemm ? 1 : world_.num_pes();
    const int data = run % kEpilogueData;
    double sum = 0;
    for (int part = 0; part < parts; ++part) {
      const Range depth = split(o.k, parts)[part];
      for (Size l = depth.begin; l < depth.end; ++l) {
        const Size at = (l - depth.begin) / kScaleBlock;
        sum += static_cast<double>(element(data, 0, row, l) * element(data, 1, col, l)) * block_a(run, part, row, at) *
               block_b(run, part, (col - factor.columns.begin) / kScaleBlock, at);
      }
    }
    return sum;
  }
  static float bias(int run, Size col) { return static_cast<float>((col * 7 + run) % 5 - 2); }

  template <class Value>
  void put(void* to, DType type, Range rows, Range cols, const Value& value) {
    dispatch(type, [&]<class T>() {
      std::vector<T> values(static_cast<std::size_t>(rows.size() * cols.size()));
      in_threads(rows, cols.size(), [&](Range some) {
        T* next = values.data() + (some.begin - rows.begin) * cols.size();
        for (Size i = some.begin; i < some.end; ++i)
          for (Size j = cols.begin; j < cols.end; ++j) *next++ = convert<T>(static_cast<float>(value(i, j)));
      });
      world_.copy_in(to, values.data(), static_cast<Size>(values.size() * sizeof(T)));
    });
  }

  template <class T>
  Size wrong_of(int run, Size m) const {
    const OperatorOptions& o = case_.options;
    const Range rows = shards_of(m).c_rows;
    const Size all_rows = shards_of(o.m).c_rows.size();
    const bool curved = o.activation == Activation::kGelu || o.activation == Activation::kSilu;
    const bool is_fast = o.fast_accumulation && world_.on_gpus();  // other backends stay exact
    const std::vector<double>& sums = products(o)[static_cast<std::size_t>(run % kEpilogueData)];
    Size wrong = 0;
    for (const Factor& factor : factors_) {
      std::vector<T> got(static_cast<std::size_t>(all_rows * factor.columns.size()));
      world_.copy_out(got.data(), factor.c, static_cast<Size>(got.size() * sizeof(T)));
      wrong += count_in_threads(rows, 8 * factor.columns.size(), [&](Range some) {
        Size found = 0;
        const T* at = got.data() + (some.begin - rows.begin) * factor.columns.size();
        for (Size i = some.begin; i < some.end; ++i)
          for (Size j = factor.columns.begin; j < factor.columns.end; ++j) {
            const double sum =
                o.block_scales ? sum_of_blocks(factor, run, i, j) : sums[static_cast<std::size_t>(i * o.n + j)];
            const float want = expected(sum, run, i, j);
            const float is = convert<float>(*at++);
            double allowed = curved ? 1.01 * rounding_unit(o.result_type()) * std::abs(want) + 2e-3 : 0;
            if (is_fast) allowed += allowed_of_fast(want);
            found +=
                !(std::abs(static_cast<double>(is) - (curved ? want : convert<float>(convert<T>(want)))) <= allowed);
          }
        return found;
      });
      for (const T* at = got.data() + rows.size() * factor.columns.size(); at != got.data() + got.size(); ++at)
        wrong += convert<float>(*at) != kUntouched;
    }
    return wrong;
  }

  /// Partial sums are rounded, too, and their errors may add up. Elements of A and B are small.
  double allowed_of_fast(double want) const {
    const OperatorOptions& o = case_.options;
    const double typical = std::max(std::abs(want), 4 * std::sqrt(static_cast<double>(o.k)));
    const double roundings = (1 + world_.num_pes()) * rounding_unit(o.result_type());
    return (fast_accumulation_tolerance(o.k) + roundings) * typical;
  }

  float expected(double sum, int run, Size row, Size col) const {
    const OperatorOptions& o = case_.options;
    if (case_.scaled && !o.block_scales) sum *= a_scale(run, row) * b_scale(run, col);
    if (case_.bias) sum += bias(run, col);
    return activate(o.activation, static_cast<float>(sum)) * (scales_c() ? kCScale : 1);
  }

  World& world_;
  const EpilogueCase& case_;
  std::byte* memory_;
  Size room_;
  Size used_ = 0;
  std::unique_ptr<OperatorPlan> plan_;
  std::byte* a_ = nullptr;
  float* a_scale_ = nullptr;
  std::vector<Factor> factors_;
};

/// Returns the forms of every operator with scales of blocks.
inline std::vector<EpilogueCase> block_scale_cases(Size m, Size n, Size k) {
  std::vector<EpilogueCase> all;
  for (const Operator op : {Operator::kAllGatherGemm, Operator::kGemmReduceScatter, Operator::kGemmAllReduce})
    for (const Form form : {Form::kOverlapped, Form::kSequential, Form::kDecomposed, Form::kSuitable})
      for (const CopyBy copy_by : {CopyBy::kCopyEngine, CopyBy::kSm}) {
        EpilogueCase c;
        c.op = op;
        c.scaled = true;
        c.bias = form == Form::kOverlapped;
        OperatorOptions& o = c.options;
        o.m = m;
        o.n = n;
        o.k = k;
        o.type = DType::kE4M3;
        o.block_scales = true;
        o.use_tuned = false;
        o.form = form;
        if (form != Form::kSuitable) o.copy_by = copy_by;
        if (form != Form::kSuitable && op != Operator::kAllGatherGemm) o.reduction = Reduction::kOwner;
        if (op == Operator::kGemmAllReduce && form == Form::kOverlapped) o.shots = copy_by == CopyBy::kSm ? 1 : 2;
        if (op == Operator::kAllGatherGemm && form == Form::kOverlapped) o.ns = {n / 2, n - n / 2};
        if (op == Operator::kGemmReduceScatter && form == Form::kSequential) o.out_type = DType::kF16;
        all.push_back(c);
        if (op == Operator::kAllGatherGemm || form != Form::kOverlapped) continue;
        all.push_back(c);
        all.back().options.shots = op == Operator::kGemmAllReduce ? 2 : 0;
        all.back().options.reduction = Reduction::kChain;
      }
  return all;
}

/// Returns every operator, form, transport, direction and reduction with each type, layout, bias, activation and kind
/// of scales. Not all combinations occur, but each value occurs with many others. `fp8_kxn`: also those that GPUs
/// refuse.
inline std::vector<EpilogueCase> epilogue_cases(Size m, Size n, Size k, bool fp8_kxn) {
  std::vector<EpilogueCase> all;
  int number = 0;
  const auto add = [&](Operator op, Form form, CopyBy copy_by, Direction direction, Reduction reduction, int kind) {
    EpilogueCase c;
    c.op = op;
    OperatorOptions& o = c.options;
    o.m = m;
    o.n = n;
    o.k = k;
    o.form = form;
    o.use_tuned = false;
    const bool gather = op == Operator::kAllGatherGemm;
    if (form != Form::kSuitable) {
      o.copy_by = copy_by;
      o.direction = direction;
      if (!gather) o.reduction = reduction;
      o.splits = 1 + number % 3;
      if (op == Operator::kGemmAllReduce && form == Form::kOverlapped) o.shots = 2;
    }
    c.scaled = kind >= 2;
    o.type = kind == 0 ? DType::kBF16 : kind == 1 ? DType::kF16 : DType::kE4M3;
    if (kind == 3) o.out_type = DType::kF16;
    if (kind == 4 && gather) o.out_type = DType::kE4M3;
    o.a_scale_per_row = kind >= 3;
    o.b_scale_per_column = kind == 3 || kind == 5;
    o.fast_accumulation = kind == 5;
    c.bias = number % 4 != 3;
    if (kind < 2 || fp8_kxn) o.b_layout = number % 2 == 0 ? BLayout::kKxN : BLayout::kNxK;
    o.activation = static_cast<Activation>(number % 4);
    if (gather && number % 5 == 0) o.ns = {n / 2, n - n / 2};
    ++number;
    all.push_back(c);
  };
  for (const Operator op : {Operator::kAllGatherGemm, Operator::kGemmReduceScatter, Operator::kGemmAllReduce})
    for (int kind = 0; kind < 6; ++kind) {
      for (const Form form : {Form::kOverlapped, Form::kSequential, Form::kDecomposed})
        for (const CopyBy copy_by : {CopyBy::kCopyEngine, CopyBy::kSm})
          for (const Direction direction : {Direction::kPush, Direction::kPull})
            add(op, form, copy_by, direction, Reduction::kOwner, kind);
      if (op != Operator::kAllGatherGemm)
        for (const CopyBy copy_by : {CopyBy::kCopyEngine, CopyBy::kSm})
          add(op, Form::kOverlapped, copy_by, Direction::kPush, Reduction::kChain, kind);
      add(op, Form::kSuitable, CopyBy::kSm, Direction::kPush, Reduction::kOwner, kind);
      if (op != Operator::kGemmAllReduce) continue;
      add(op, Form::kOverlapped, CopyBy::kSm, Direction::kPush, Reduction::kOwner, kind);
      all.back().options.shots = 1;
      all.back().options.splits = 0;
    }
  return all;
}

}  // namespace tandem::test
