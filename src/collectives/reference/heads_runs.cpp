#include "collectives/reference/heads_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace tandem::kernels {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Partial outputs and log-sum-exps of one run.
struct Example {
  const MergeHeadsOptions& options;
  int pes;
  Size batch;
  Size number;

  /// `row` counts heads over the batch.
  float lse(int pe, Size row) const {
    const Size kind = (row + number) % 5;
    if (kind == 1) return pe == static_cast<int>(row) % pes ? 7.0F : -kInfinity;
    if (kind == 2) return pe % 2 == 0 ? kNan : -kInfinity;
    if (kind == 3 && pe == static_cast<int>(row + number) % pes) return -kInfinity;
    return static_cast<float>(-50 + (row * 3 + pe * 5 + number) % 4);
  }
  float partial(int pe, Size row, Size i) const {
    if (std::isnan(lse(pe, row)) || std::isinf(lse(pe, row))) return kNan;
    return static_cast<float>((row * 7 + pe * 3 + i * 5 + number) % 9 - 4);
  }
  float merged(Size row, Size i) const {
    float greatest = -kInfinity;
    for (int pe = 0; pe < pes; ++pe)
      if (std::isfinite(lse(pe, row))) greatest = std::max(greatest, lse(pe, row));
    float sum = 0;
    float weights = 0;
    for (int pe = 0; pe < pes; ++pe) {
      if (!std::isfinite(lse(pe, row))) continue;
      const float difference = lse(pe, row) - greatest;
      const float weight = options.base == LseBase::kE ? std::exp(difference) : std::exp2(difference);
      weights += weight;
      sum += partial(pe, row, i) * weight;
    }
    return weights > 0 ? sum * (1.0F / weights) : 0;
  }
};

template <class T>
class Runs {
 public:
  Runs(World& world, const HeadsRuns& runs)
      : world_(world),
        runs_(runs),
        own_(runs.options.own_heads ? split(runs.options.heads, world.num_pes())[world.pe()]
                                    : Range{0, runs.options.heads}) {}

  std::string wrong() {
    const auto plan = make_merge_heads(world_, runs_.options);
    Stream stream = world_.make_stream("main");
    std::vector<T*> results;
    for (std::size_t i = 0; i < runs_.batches.size(); ++i) results.push_back(enqueue(*plan, stream, example(i)));
    stream.synchronize();
    for (std::size_t i = 0; i < results.size(); ++i)
      if (const std::string text = verify(example(i), results[i]); !text.empty())
        return fmt::format("PE {}, run {} of batch {}: {}", world_.pe(), i + 1, runs_.batches[i], text);
    return "";
  }

 private:
  Example example(std::size_t run) const {
    return {runs_.options, world_.num_pes(), runs_.batches[run], static_cast<Size>(run)};
  }

  template <class Element>
  Element* copied(const std::vector<Element>& values, const char* what) {
    const auto count = static_cast<Size>(values.size());
    auto* const memory = world_.heap().allocate_local<Element>(count, what);
    world_.copy_in(memory, values.data(), count * Size{sizeof(Element)});
    return memory;
  }

  /// Returns the buffer of the results.
  T* enqueue(MergeHeadsPlan& plan, Stream& stream, const Example& one) {
    const Size size = runs_.options.head_size;
    std::vector<T> partial;
    std::vector<float> lse;
    for (Size row = 0; row < one.batch * runs_.options.heads; ++row) {
      lse.push_back(one.lse(world_.pe(), row));
      for (Size i = 0; i < size; ++i) partial.push_back(convert<T>(one.partial(world_.pe(), row, i)));
    }
    T* const out = world_.heap().allocate_local<T>(one.batch * own_.size() * size, "out");
    plan.run(stream,
             {.batch = one.batch, .partial = copied(partial, "partial"), .lse = copied(lse, "lse"), .out = out});
    return out;
  }

  std::string verify(const Example& one, const T* results) {
    const Size size = runs_.options.head_size;
    std::vector<T> out(static_cast<std::size_t>(one.batch * own_.size() * size));
    world_.copy_out(out.data(), results, static_cast<Size>(out.size() * sizeof(T)));
    std::size_t at = 0;
    for (Size batch = 0; batch < one.batch; ++batch)
      for (Size head = own_.begin; head < own_.end; ++head)
        for (Size i = 0; i < size; ++i) {
          const auto got = convert<float>(out[at++]);
          const auto want = convert<float>(convert<T>(one.merged(batch * runs_.options.heads + head, i)));
          const float tolerance = runs_.options.base == LseBase::kTwo ? 0.0F : 0.01F * (1 + std::abs(want));
          if (!(std::abs(got - want) <= tolerance))
            return fmt::format("batch {}, head {}, element {}: {} instead of {}", batch, head, i, got, want);
        }
    return "";
  }

  World& world_;
  const HeadsRuns& runs_;
  Range own_;
};

}  // namespace

std::string wrong_of_runs(World& world, const HeadsRuns& runs) {
  if (runs.options.type == DType::kF32) return Runs<float>(world, runs).wrong();
  if (runs.options.type == DType::kF16) return Runs<f16>(world, runs).wrong();
  return Runs<bf16>(world, runs).wrong();
}

}  // namespace tandem::kernels
