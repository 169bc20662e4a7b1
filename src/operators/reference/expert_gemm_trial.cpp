#include "operators/reference/expert_gemm_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "collectives/reference/expert_example.h"
#include "operators/reference/expert_gemm_example.h"

namespace tandem::ops {

namespace {

using kernels::ExpertErrors;
using kernels::ExpertInput;

/// A row of an expert.
struct Row {
  int expert;
  int pe;
  Size token;
};

/// The memory of trials with the same choices.
template <class T>
struct SharedMemory {
  Index* routing;
  T* first_weights;
  T* second_weights;
  T* rows;
  T* y;
  const void* owner = nullptr;  ///< the trial that dispatched rows last
};

template <class T>
class Trial final : public ExpertGemmTrial {
 public:
  Trial(World& world, ExpertGemmPlan& plan, const ExpertInput& input, const Trial* other)
      : world_(world),
        plan_(plan),
        o_(plan.options()),
        here_(o_.experts.experts / world.num_pes()),
        one_(o_.experts, input, world.num_pes(), world.phantom() ? world.pe() : -1),
        weights_{o_},
        adds_(input.add),
        memory_(other != nullptr ? other->memory_ : make_memory()) {
    make_calls(input);
    if (world_.phantom()) return;
    set_rows();
    fill(input);
    if (other == nullptr) fill_matrices();
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
  Size columns() const { return o_.intermediate * (is_gated(o_.activation) ? 2 : 1); }

  std::shared_ptr<SharedMemory<T>> make_memory() {
    SymmetricHeap& heap = world_.heap();
    SharedMemory<T> memory{heap.allocate_local<Index>(plan_.experts().routing_bytes() / 4, "routing"),
                           heap.allocate_local<T>(here_ * columns() * hidden(), "first weights"),
                           heap.allocate_local<T>(here_ * hidden() * o_.intermediate, "second weights"),
                           heap.allocate_local<T>(rows() * hidden(), "rows"),
                           heap.allocate_local<T>(rows() * hidden(), "y")};
    return std::make_shared<SharedMemory<T>>(memory);
  }

  void make_calls(const ExpertInput& input) {
    SymmetricHeap& heap = world_.heap();
    const Size choices = tokens() * o_.experts.top_k;
    auto* const ids = heap.allocate_local<Index>(choices, "ids");
    world_.copy_in(ids, one_.ids(world_.pe()).data(), choices * 4);
    auto* const weights = input.weights ? heap.allocate_local<float>(choices, "weights") : nullptr;
    route_ = {.tokens = tokens(), .ids = ids, .weights = weights, .routing = memory_->routing};
    auto* const h = heap.allocate_local<T>(rows() * o_.intermediate, "intermediate");
    first_ = {.tokens = tokens(),
              .x = heap.allocate_local<T>(tokens() * hidden(), "x"),
              .routing = memory_->routing,
              .b = memory_->first_weights,
              .rows = memory_->rows,
              .out = h};
    second_ = {.tokens = tokens(),
               .a = h,
               .routing = memory_->routing,
               .b = memory_->second_weights,
               .y = memory_->y,
               .add = adds_ ? heap.allocate_local<T>(tokens() * hidden(), "add") : nullptr,
               .out = heap.allocate_local<T>(tokens() * hidden(), "out")};
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
            if (const int expert = world_.pe() * here_ + e; one_.id(pe, token, k) == expert)
              rows_[next++] = {expert, pe, token};
      }
    }
  }

  template <class Element>
  void put(const void* memory, const std::vector<Element>& values) {
    world_.copy_in(const_cast<void*>(memory), values.data(), static_cast<Size>(values.size() * sizeof(Element)));
  }

  void fill(const ExpertInput& input) {
    std::vector<T> x;
    std::vector<T> add;
    std::vector<float> weights;
    for (Size token = 0; token < tokens(); ++token) {
      for (Size i = 0; i < hidden(); ++i) {
        x.push_back(convert<T>(one_.x(world_.pe(), token, i)));
        add.push_back(convert<T>(one_.add(token, i)));
      }
      for (int k = 0; k < o_.experts.top_k; ++k) weights.push_back(one_.weight(world_.pe(), token, k));
    }
    put(first_.x, x);
    if (adds_) put(second_.add, add);
    if (input.weights) put(route_.weights, weights);
    put(first_.out, std::vector<T>(static_cast<std::size_t>(rows() * o_.intermediate), convert<T>(0.0F)));
  }

  void fill_matrices() {
    const auto set = [](T* row, const SparseRow& sparse) {
      row[sparse.first] = convert<T>(sparse.sign);
      row[sparse.second] = convert<T>(convert<float>(row[sparse.second]) + 2);
    };
    std::vector<T> first(static_cast<std::size_t>(columns() * hidden()));
    std::vector<T> second(static_cast<std::size_t>(hidden() * o_.intermediate));
    for (int e = 0; e < here_; ++e) {
      const int expert = world_.pe() * here_ + e;
      std::fill(first.begin(), first.end(), convert<T>(0.0F));
      std::fill(second.begin(), second.end(), convert<T>(0.0F));
      for (Size j = 0; j < o_.intermediate; ++j)
        for (const bool is_up : {false, true})
          if (!is_up || is_gated(o_.activation))
            set(first.data() + weights_.row_of(j, is_up) * hidden(), weights_.first(expert, j, is_up));
      for (Size i = 0; i < hidden(); ++i) set(second.data() + i * o_.intermediate, weights_.second(expert, i));
      put(memory_->first_weights + e * columns() * hidden(), first);
      put(memory_->second_weights + e * hidden() * o_.intermediate, second);
    }
  }

  std::vector<T> result(const void* memory, Size count) {
    std::vector<T> values(static_cast<std::size_t>(count));
    world_.copy_out(values.data(), memory, count * Size{sizeof(T)});
    return values;
  }

  float intermediate(int expert, int pe, Size token, Size j) const {
    return convert<float>(convert<T>(weights_.intermediate(expert, j, [&](Size i) { return one_.x(pe, token, i); })));
  }

  void check_first(ExpertErrors& errors) {
    const auto got = result(first_.rows, rows() * hidden());
    const auto h = result(first_.out, rows() * o_.intermediate);
    for (const auto& [number, row] : rows_) {
      const auto expect = [&, number = number, &row = row](const char* what, Size i, float found, float wanted,
                                                           float allowed) {
        errors.expect(std::abs(found - wanted) <= allowed, [&] {
          return fmt::format("{} of row {}, expert {}, token {} of PE {}, element {}: {} instead of {}", what, number,
                             row.expert, row.token, row.pe, i, found, wanted);
        });
      };
      for (Size i = 0; memory_->owner == this && i < hidden(); ++i)
        expect("dispatched", i, convert<float>(got[static_cast<std::size_t>(number * hidden() + i)]),
               one_.x(row.pe, row.token, i), 0);
      for (Size j = 0; j < o_.intermediate; ++j) {
        const float want = intermediate(row.expert, row.pe, row.token, j);
        expect("product", j, convert<float>(h[static_cast<std::size_t>(number * o_.intermediate + j)]), want,
               is_exact() ? 0 : 0.01F * std::abs(want));
      }
    }
  }

  /// Gated and smooth activations have the rounding errors of their functions.
  bool is_exact() const { return o_.activation == Activation::kNone || o_.activation == Activation::kRelu; }

  void check_combined(ExpertErrors& errors) {
    const auto out = result(second_.out, tokens() * hidden());
    for (Size token = 0; token < tokens(); ++token)
      for (Size i = 0; i < hidden(); ++i) {
        float total = adds_ ? one_.add(token, i) : 0;
        float terms = 0;
        for (int pe = 0; pe < world_.num_pes(); ++pe) {
          float sum = 0;
          for (int k = 0; k < o_.experts.top_k; ++k) {
            const int id = one_.id(world_.pe(), token, k);
            if (id < 0 || id / here_ != pe || !is_dispatched_) continue;
            const float y =
                weights_.second(id, i).times([&](Size j) { return intermediate(id, world_.pe(), token, j); });
            const float term = convert<float>(convert<T>(y)) * one_.weight(world_.pe(), token, k);
            sum += term;
            terms += std::abs(term);
          }
          total += convert<float>(convert<T>(sum));
        }
        const auto got = convert<float>(out[static_cast<std::size_t>(token * hidden() + i)]);
        const auto want = convert<float>(convert<T>(total));
        errors.expect(std::abs(got - want) <= (is_exact() ? 0 : 0.03F * terms), [&] {
          return fmt::format("combined token {}, element {}: {} instead of {}", token, i, got, want);
        });
      }
  }

  World& world_;
  ExpertGemmPlan& plan_;
  const ExpertGemmOptions o_;
  const int here_;
  kernels::ExpertExample one_;
  ExpertWeights weights_;
  const bool adds_;
  std::shared_ptr<SharedMemory<T>> memory_;
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
  if (plan.options().experts.type == DType::kF16)
    return std::make_unique<Trial<f16>>(world, plan, input, static_cast<const Trial<f16>*>(other));
  return std::make_unique<Trial<bf16>>(world, plan, input, static_cast<const Trial<bf16>*>(other));
}

std::string wrong_of_expert_gemms(World& world, Stream& main, const ExpertGemmRuns& runs) {
  const auto plan = make_expert_gemms(world, runs.options);
  std::vector<std::vector<std::unique_ptr<ExpertGemmTrial>>> rounds;
  for (const kernels::ExpertRound& round : runs.rounds) {
    ExpertInput input = runs.input;
    input.routing = round.routing;
    input.tokens = round.tokens;
    input.seed = rounds.size();
    auto& trials = rounds.emplace_back();
    trials.push_back(make_expert_gemm_trial(world, *plan, input));
    while (static_cast<int>(trials.size()) < round.uses) {
      input.values = trials.size();
      trials.push_back(make_expert_gemm_trial(world, *plan, input, trials.front().get()));
    }
    trials.front()->route(main);
    if (round.uses == 0) continue;
    for (const auto& trial : trials) trial->dispatch_gemm(main);
    for (const auto& trial : trials)
      if (runs.combines) trial->gemm_combine(main);
  }
  main.synchronize();
  for (std::size_t i = 0; i < rounds.size(); ++i)
    for (const auto& trial : rounds[i])
      if (const auto errors = trial->errors(); errors.wrong > 0)
        return fmt::format("PE {}, round {} ({}): {}", world.pe(), i + 1, runs.rounds[i].routing, errors.first);
  return "";
}

}  // namespace tandem::ops
