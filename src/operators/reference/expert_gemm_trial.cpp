#include "operators/reference/expert_gemm_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "collectives/reference/expert_example.h"
#include "operators/reference/expert_gemm_memory.h"

namespace tandem::ops {

namespace {

using kernels::ExpertErrors;
using kernels::ExpertInput;

constexpr float kScale = 7.0F / 448;  // of rows whose greatest value is 7

/// A row of an expert.
struct Row {
  int expert;
  int pe;
  Size token;
};

/// T: the type of tokens' rows. W: that of weights and of rows before both products.
template <class T, class W>
class Trial final : public ExpertGemmTrial {
 public:
  Trial(World& world, ExpertGemmPlan& plan, const ExpertInput& input, const Trial* other)
      : world_(world),
        plan_(plan),
        o_(plan.options()),
        here_(experts_of_pe(o_.experts, world.num_pes())),
        one_(o_.experts, input, world.num_pes(), world.phantom() ? world.pe() : -1),
        weights_{o_},
        adds_(input.add),
        memory_(other != nullptr ? other->memory_ : std::make_shared<ExpertGemmMemory<T, W>>(world, plan)) {
    make_calls(input);
    if (world_.phantom()) return;
    set_rows();
    fill(input);
    if (other == nullptr) memory_->fill(world_, weights_);
  }

  void route(Stream& stream) override { plan_.route(stream, route_); }
  void dispatch_gemm(Stream& stream) override {
    plan_.dispatch_gemm(stream, first_);
    is_dispatched_ = true;
    memory_->owner = this;
  }
  void gemm_combine(Stream& stream) override {
    plan_.gemm_combine(stream, second_);
    is_combined_ = true;
  }

  ExpertErrors errors() override {
    ExpertErrors errors;
    if (is_dispatched_) check_first(errors);
    if (is_combined_) check_combined(errors);
    return errors;
  }

 private:
  Size tokens() const { return one_.tokens(world_.pe()); }
  Size rows() const { return plan_.experts().rows(); }
  Size hidden() const { return o_.experts.hidden; }
  static constexpr bool kIsFp8 = sizeof(W) == 1;
  bool is_given() const { return o_.experts.wire == ExpertWire::kGiven; }

  float* scales(Size count, const char* what) {
    return kIsFp8 ? world_.heap().allocate_local<float>(count, what) : nullptr;
  }
  void make_calls(const ExpertInput& input) {
    SymmetricHeap& heap = world_.heap();
    const Size choices = tokens() * o_.experts.top_k;
    auto* const ids = heap.allocate_local<Index>(choices, "ids");
    world_.copy_in(ids, one_.ids(world_.pe()).data(), choices * 4);
    auto* const weights = input.weights ? heap.allocate_local<float>(choices, "weights") : nullptr;
    route_ = {.tokens = tokens(), .ids = ids, .weights = weights, .routing = memory_->routing};
    auto* const h = heap.allocate_local<W>(rows() * o_.intermediate, "intermediate");
    float* const h_scales = scales(rows() * scale_blocks(o_.intermediate), "intermediate scales");
    const Size element = is_given() ? 1 : Size{sizeof(T)};
    first_ = {.tokens = tokens(),
              .x = heap.allocate_local<std::byte>(tokens() * hidden() * element, "x"),
              .routing = memory_->routing,
              .b = memory_->first_weights,
              .rows = memory_->rows,
              .out = h,
              .x_scales = is_given() ? scales(max(tokens(), 1) * scale_blocks(hidden()), "x scales") : nullptr,
              .b_scales = memory_->first_scales,
              .row_scales = memory_->row_scales,
              .out_scales = h_scales};
    second_ = {.tokens = tokens(),
               .a = h,
               .routing = memory_->routing,
               .b = memory_->second_weights,
               .y = memory_->y,
               .add = adds_ ? heap.allocate_local<T>(tokens() * hidden(), "add") : nullptr,
               .out = heap.allocate_local<T>(tokens() * hidden(), "out"),
               .a_scales = h_scales,
               .b_scales = memory_->second_scales};
  }

  /// Numbers the rows of the experts here in their order.
  void set_rows() {
    Size next = 0;
    for (int e = 0; e < here_; ++e) {
      next = round_up(next, o_.experts.align);
      for (int step = 0; step < world_.num_pes(); ++step) {
        const int pe = (world_.pe() + step) % world_.num_pes();
        for (Size token = 0; token < one_.tokens(pe); ++token)
          for (int k = 0; k < o_.experts.top_k; ++k)
            if (const int expert = first_expert(o_.experts, world_.num_pes(), world_.pe()) + e;
                one_.id(pe, token, k) == expert)
              rows_[next++] = {expert, pe, token};
      }
    }
  }

  template <class Element>
  void put(const void* memory, const std::vector<Element>& values) {
    world_.copy_in(const_cast<void*>(memory), values.data(), static_cast<Size>(values.size() * sizeof(Element)));
  }

  float x(int pe, Size token, Size i) const { return kIsFp8 ? one_.few(pe, token, i) : one_.x(pe, token, i); }

  void fill(const ExpertInput& input) {
    std::vector<T> all;
    std::vector<W> fp8;
    std::vector<T> add;
    std::vector<float> weights;
    for (Size token = 0; token < tokens(); ++token) {
      for (Size i = 0; i < hidden(); ++i) {
        const float value = x(world_.pe(), token, i);
        if (is_given())
          fp8.push_back(convert<W>(value / kScale));
        else
          all.push_back(convert<T>(value));
        add.push_back(convert<T>(one_.add(token, i)));
      }
      for (int k = 0; k < o_.experts.top_k; ++k) weights.push_back(one_.weight(world_.pe(), token, k));
    }
    if (is_given())
      put(first_.x, fp8);
    else
      put(first_.x, all);
    if (is_given())
      put(first_.x_scales, std::vector<float>(static_cast<std::size_t>(tokens() * scale_blocks(hidden())), kScale));
    if (adds_) put(second_.add, add);
    if (input.weights) put(route_.weights, weights);
    put(first_.out, std::vector<W>(static_cast<std::size_t>(rows() * o_.intermediate), convert<W>(0.0F)));
    if (kIsFp8)
      put(first_.out_scales,
          std::vector<float>(static_cast<std::size_t>(rows() * scale_blocks(o_.intermediate)), 1.0F));
  }

  template <class Element>
  std::vector<Element> result(const void* memory, Size count) {
    std::vector<Element> values(static_cast<std::size_t>(count));
    world_.copy_out(values.data(), memory, count * Size{sizeof(Element)});
    return values;
  }

  /// Returns the row of a token of PE `pe` between both products, on PE `at`.
  MiddleRow middle_row(int expert, int at, int pe, Size token) const {
    return weights_.middle_row<W>(weights_.part(expert, at), [&](Size i) { return x(pe, token, i); });
  }

  void check_first(ExpertErrors& errors) {
    const auto got = result<W>(first_.rows, rows() * hidden());
    const auto h = result<W>(first_.out, rows() * o_.intermediate);
    const auto row_scales = result<float>(first_.row_scales, kIsFp8 ? rows() * scale_blocks(hidden()) : 0);
    const auto h_scales = result<float>(first_.out_scales, kIsFp8 ? rows() * scale_blocks(o_.intermediate) : 0);
    for (const auto& [number, row] : rows_) {
      const auto expect = [&, number = number, &row = row](const char* what, Size i, float found, float wanted,
                                                           float allowed) {
        errors.expect(std::abs(found - wanted) <= allowed, [&] {
          return fmt::format("{} of row {}, expert {}, token {} of PE {}, element {}: {} instead of {}", what, number,
                             row.expert, row.token, row.pe, i, found, wanted);
        });
      };
      const bool is_own = memory_->owner == this;
      for (Size i = 0; is_own && i < hidden(); ++i)
        expect("dispatched", i, convert<float>(got[static_cast<std::size_t>(number * hidden() + i)]),
               x(row.pe, row.token, i) / (kIsFp8 ? kScale : 1), 0);
      for (Size i = 0; is_own && kIsFp8 && i < scale_blocks(hidden()); ++i)
        expect("dispatched scale", i, row_scales[static_cast<std::size_t>(number * scale_blocks(hidden()) + i)], kScale,
               0);
      const MiddleRow want = middle_row(row.expert, world_.pe(), row.pe, row.token);
      for (Size j = 0; j < o_.intermediate; ++j) {
        const float value = want.values[static_cast<std::size_t>(j)];
        expect("product", j, convert<float>(h[static_cast<std::size_t>(number * o_.intermediate + j)]), value,
               is_exact() ? 0 : slack_of(value));
      }
      for (Size i = 0; kIsFp8 && i < scale_blocks(o_.intermediate); ++i) {
        const float scale = want.scales[static_cast<std::size_t>(i)];
        expect("scale", i, h_scales[static_cast<std::size_t>(number * scale_blocks(o_.intermediate) + i)], scale,
               is_exact() ? 0 : 0.01F * scale);
      }
    }
  }

  /// Gated and smooth activations have the rounding errors of their functions, which may reach the next fp8 value.
  bool is_exact() const { return o_.activation == Activation::kNone || o_.activation == Activation::kRelu; }
  static float slack_of(float value) { return kIsFp8 ? 0.13F * std::abs(value) + 0.002F : 0.01F * std::abs(value); }
  static constexpr float kSlackOfSums = kIsFp8 ? 0.15F : 0.03F;  // of the terms

  void check_combined(ExpertErrors& errors) {
    const auto out = result<T>(second_.out, tokens() * hidden());
    const int me = world_.pe(), top_k = o_.experts.top_k;
    const Size parts = o_.experts.tp_size;
    std::vector<MiddleRow> rows(static_cast<std::size_t>(top_k * parts));
    for (Size token = 0; token < tokens(); ++token) {
      for (int k = 0; k < top_k; ++k)
        for (int part = 0; part < parts; ++part)
          if (const int id = one_.id(me, token, k); id >= 0)
            rows[static_cast<std::size_t>(k * parts + part)] = middle_row(id, part, me, token);
      for (Size i = 0; i < hidden(); ++i) {
        float total = adds_ ? one_.add(token, i) : 0;
        float terms = 0;
        for (int pe = 0; pe < world_.num_pes(); ++pe) {
          float sum = 0;
          for (int k = 0; k < top_k; ++k) {
            const int id = one_.id(me, token, k);
            if (id < 0 || id / here_ != pe / parts || !is_dispatched_) continue;
            const float y =
                weights_.result(weights_.part(id, pe), i, rows[static_cast<std::size_t>(k * parts + pe % parts)]);
            const float term = convert<float>(convert<T>(y)) * one_.weight(me, token, k);
            sum += term;
            terms += std::abs(term);
          }
          total += convert<float>(convert<T>(sum));
        }
        const auto got = convert<float>(out[static_cast<std::size_t>(token * hidden() + i)]);
        const auto want = convert<float>(convert<T>(total));
        errors.expect(std::abs(got - want) <= (is_exact() ? 0 : kSlackOfSums * terms), [&] {
          return fmt::format("combined token {}, element {}: {} instead of {}", token, i, got, want);
        });
      }
    }
  }

  World& world_;
  ExpertGemmPlan& plan_;
  const ExpertGemmOptions o_;
  const int here_;
  kernels::ExpertExample one_;
  ExpertWeights weights_;
  const bool adds_;
  std::shared_ptr<ExpertGemmMemory<T, W>> memory_;
  std::map<Size, Row> rows_;
  RouteCall route_;
  DispatchGemmCall first_;
  GemmCombineCall second_;
  bool is_dispatched_ = false;
  bool is_combined_ = false;
};

}  // namespace

std::unique_ptr<ExpertGemmTrial> make_expert_gemm_trial(World& world, ExpertGemmPlan& plan, const ExpertInput& input,
                                                        const ExpertGemmTrial* other) {
  const auto make = [&]<class T, class W>(const Trial<T, W>* first) -> std::unique_ptr<ExpertGemmTrial> {
    return std::make_unique<Trial<T, W>>(world, plan, input, first);
  };
  if (is_fp8(plan.options())) return make(static_cast<const Trial<bf16, fp8_e4m3>*>(other));
  if (plan.options().experts.type == DType::kF16) return make(static_cast<const Trial<f16, f16>*>(other));
  return make(static_cast<const Trial<bf16, bf16>*>(other));
}

}  // namespace tandem::ops
