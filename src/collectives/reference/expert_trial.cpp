#include "collectives/reference/expert_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "collectives/reference/expert_example.h"

namespace tandem::kernels {

namespace {

constexpr Size kGroup = 128;

/// A row of an expert.
struct Row {
  int expert;
  int pe;
  Size token;
};

template <class T>
class Trial final : public ExpertTrial {
 public:
  Trial(World& world, ExpertPlan& plan, const ExpertInput& input, void* routing)
      : world_(world),
        plan_(plan),
        o_(plan.options()),
        input_(input),
        one_(o_, input, world.num_pes(), world.phantom() ? world.pe() : -1) {
    if (!world.phantom()) set_rows();
    make_routing(routing);
    make_rows();
  }

  void route(Stream& stream) override { plan_.route(stream, route_); }
  void route_and_dispatch(Stream& stream) override {
    plan_.route_and_dispatch(stream, route_, dispatch_);
    is_dispatched_ = true;
  }
  void dispatch(Stream& stream, ExpertHalf half) override {
    if (half == ExpertHalf::kBoth) plan_.dispatch(stream, dispatch_);
    if (half == ExpertHalf::kSend) plan_.dispatch_send(stream, dispatch_);
    if (half == ExpertHalf::kReceive) plan_.dispatch_receive(stream, dispatch_);
    is_dispatched_ = true;
  }
  void combine(Stream& stream, ExpertHalf half) override {
    if (half == ExpertHalf::kBoth) plan_.combine(stream, combine_);
    if (half == ExpertHalf::kSend) plan_.combine_send(stream, combine_);
    if (half == ExpertHalf::kReceive) plan_.combine_receive(stream, combine_);
    is_combined_ = true;
  }
  void* routing() const override { return route_.routing; }

  ExpertErrors errors() override {
    ExpertErrors errors;
    check_routing(errors);
    if (is_dispatched_) check_rows(errors);
    if (is_combined_) check_combined(errors);
    return errors;
  }

 private:
  bool is_fp8() const { return o_.wire != ExpertWire::kType; }
  Size row_bytes() const { return o_.hidden * (is_fp8() ? 1 : Size{sizeof(T)}); }
  Size out_scales() const { return (o_.scales_by_group ? plan_.scales_stride() : plan_.dispatched_rows()) * groups(); }
  Size scale_at(Size row, Size group) const {
    return o_.scales_by_group ? group * plan_.scales_stride() + row : row * groups() + group;
  }
  Size groups() const { return ceil_div(o_.hidden, kGroup); }
  int experts_here() const { return experts_of_pe(o_, world_.num_pes()); }
  int first_here() const { return first_expert(o_, world_.num_pes(), world_.pe()); }
  /// The number of the part of an expert that PE `pe` holds. Each part has results of its own.
  int part_of(int expert, int pe) const { return expert * o_.tp_size + pe % o_.tp_size; }
  Size tokens() const { return one_.tokens(world_.pe()); }

  template <class Element>
  Element* copied(const std::vector<Element>& values, const char* what) {
    const auto count = static_cast<Size>(values.size());
    auto* const memory = world_.heap().allocate_local<Element>(count, what);
    world_.copy_in(memory, values.data(), count * Size{sizeof(Element)});
    return memory;
  }
  /// The same in memory that has contents in phantom simulations.
  template <class Element>
  Element* copied_indices(const std::vector<Element>& values, const char* what) {
    const auto bytes = static_cast<Size>(values.size() * sizeof(Element));
    auto* const memory = world_.heap().allocate_local<Index>(bytes / Size{sizeof(Index)}, what);
    world_.copy_in(memory, values.data(), bytes);
    return reinterpret_cast<Element*>(memory);
  }
  template <class Element>
  std::vector<Element> result(const void* memory, Size count) {
    std::vector<Element> values(static_cast<std::size_t>(count));
    world_.copy_out(values.data(), memory, count * Size{sizeof(Element)});
    return values;
  }

  /// Numbers the rows of the experts here in their order.
  void set_rows() {
    Size next = 0;
    for (int e = 0; e < experts_here(); ++e) {
      next = o_.layout == ExpertLayout::kByExpert ? e * o_.most_rows : round_up(next, o_.align);
      const int expert = first_here() + e;
      for (int step = 0; step < world_.num_pes(); ++step) {
        const int pe = (world_.pe() + step) % world_.num_pes();
        for (Size token = 0; token < one_.tokens(pe); ++token)
          for (int k = 0; k < o_.top_k; ++k)
            if (one_.id(pe, token, k) == expert) rows_[next++] = {expert, pe, token};
      }
    }
  }

  void make_routing(void* routing) {
    route_.tokens = tokens();
    if (input_.tokens_on_device) {
      route_.tokens = o_.max_tokens;
      route_.tokens_on_device = copied_indices(std::vector{static_cast<std::int32_t>(tokens())}, "tokens");
    }
    std::vector<std::int32_t> ids = one_.ids(world_.pe());
    ids.resize(static_cast<std::size_t>(route_.tokens * o_.top_k));
    if (input_.long_ids) {
      route_.id_type = DType::kI64;
      route_.ids = copied_indices(std::vector<std::int64_t>(ids.begin(), ids.end()), "ids");
    } else {
      route_.ids = copied_indices(ids, "ids");
    }
    if (input_.weights) {
      std::vector<float> weights;
      for (Size token = 0; token < tokens(); ++token)
        for (int k = 0; k < o_.top_k; ++k) weights.push_back(one_.weight(world_.pe(), token, k));
      weights.resize(ids.size());
      route_.weights = copied(weights, "weights");
    }
    route_.routing =
        routing != nullptr ? routing : world_.heap().allocate_local<Index>(plan_.routing_bytes() / 4, "routing");
  }

  void make_rows() {
    make_calls();
    if (!world_.phantom()) fill_rows();
  }

  void make_calls() {
    SymmetricHeap& heap = world_.heap();
    const bool is_given = o_.wire == ExpertWire::kGiven;
    const Size x_bytes = tokens() * o_.hidden * (is_given ? 1 : Size{sizeof(T)});
    dispatch_.tokens = tokens();
    dispatch_.routing = route_.routing;
    dispatch_.x = heap.allocate_local<std::byte>(x_bytes, "x");
    // A PE without tokens has no scales, but gets those of other PEs' rows.
    if (is_given && tokens() > 0) dispatch_.x_scales = heap.allocate_local<float>(tokens() * groups(), "x scales");
    dispatch_.out = heap.allocate_local<std::byte>(plan_.dispatched_rows() * row_bytes(), "rows");
    if (is_fp8()) dispatch_.out_scales = heap.allocate_local<float>(out_scales(), "scales");
    combine_.tokens = tokens();
    combine_.routing = route_.routing;
    combine_.y = heap.allocate_local<T>(plan_.rows() * o_.hidden, "y");
    if (input_.add) combine_.add = heap.allocate_local<T>(tokens() * o_.hidden, "add");
    combine_.out = heap.allocate_local<T>(tokens() * o_.hidden, "out");
  }

  template <class Element>
  void fill(const void* memory, const std::vector<Element>& values) {
    world_.copy_in(const_cast<void*>(memory), values.data(), static_cast<Size>(values.size() * sizeof(Element)));
  }

  void fill_rows() {
    std::vector<T> x;
    std::vector<T> add;
    for (Size token = 0; token < tokens(); ++token)
      for (Size i = 0; i < o_.hidden; ++i) {
        x.push_back(convert<T>(one_.x(world_.pe(), token, i)));
        add.push_back(convert<T>(one_.add(token, i)));
      }
    std::vector<T> y(static_cast<std::size_t>(plan_.rows() * o_.hidden));
    for (const auto& [number, row] : rows_)
      for (Size i = 0; i < o_.hidden; ++i)
        y[static_cast<std::size_t>(number * o_.hidden + i)] =
            convert<T>(one_.y(part_of(row.expert, world_.pe()), row.pe, row.token, i));
    if (o_.wire == ExpertWire::kGiven) {
      std::vector<fp8_e4m3> given(x.size());
      std::vector<float> scales(static_cast<std::size_t>(tokens() * groups()));
      quantise(x, given.data(), scales.data());
      fill(dispatch_.x, given);
      if (tokens() > 0) fill(dispatch_.x_scales, scales);
    } else {
      fill(dispatch_.x, x);
    }
    fill(combine_.y, y);
    if (input_.add) fill(combine_.add, add);
  }

  /// Quantises rows as `dispatch` does.
  void quantise(const std::vector<T>& x, fp8_e4m3* to, float* scales) const {
    for (std::size_t row = 0; row < x.size(); row += static_cast<std::size_t>(o_.hidden))
      for (Size begin = 0; begin < o_.hidden; begin += kGroup) {
        const auto first = row + static_cast<std::size_t>(begin);
        const auto last = row + static_cast<std::size_t>(std::min(begin + kGroup, o_.hidden));
        float greatest = 0;
        for (std::size_t i = first; i < last; ++i) greatest = std::max(greatest, std::abs(convert<float>(x[i])));
        const float scale = greatest < 1e-30F ? 1.0F : greatest / 448.0F;
        *scales++ = scale;
        for (std::size_t i = first; i < last; ++i) to[i] = convert<fp8_e4m3>(convert<float>(x[i]) * (1.0F / scale));
      }
  }

  void check_routing(ExpertErrors& errors) {
    const ExpertRouting routing = plan_.routing(route_.routing);
    const auto counts = result<std::int32_t>(routing.counts, experts_here());
    const auto starts = result<std::int32_t>(routing.starts, experts_here() + 1);
    const auto all_tokens = result<std::int32_t>(routing.tokens, world_.num_pes());
    for (int pe = 0; pe < world_.num_pes(); ++pe)
      errors.expect(all_tokens[static_cast<std::size_t>(pe)] == one_.tokens(pe),
                    [&] { return fmt::format("another number of tokens of PE {}", pe); });
    for (int e = 0; e < experts_here(); ++e) {
      const int expert = first_here() + e;
      const auto count =
          std::count_if(rows_.begin(), rows_.end(), [&](const auto& row) { return row.second.expert == expert; });
      const std::int32_t got = counts[static_cast<std::size_t>(e)];
      errors.expect(got == count,
                    [&] { return fmt::format("expert {} has {} rows instead of {}", expert, got, count); });
    }
    const Size end = std::clamp<Size>(starts.back(), 0, plan_.rows());
    const auto slots = result<std::int32_t>(routing.slots, end);
    errors.expect(rows_.empty() || rows_.rbegin()->first < end, [] { return std::string("rows are missing"); });
    for (Size i = 0; i < end; ++i) {
      const auto row = rows_.find(i);
      const Size slot = row == rows_.end() ? -1 : row->second.pe * o_.max_tokens + row->second.token;
      const std::int32_t got = slots[static_cast<std::size_t>(i)];
      errors.expect(got == slot, [&] { return fmt::format("row {} has the slot {} instead of {}", i, got, slot); });
    }
  }

  void check_rows(ExpertErrors& errors) {
    const auto got = result<std::byte>(dispatch_.out, plan_.dispatched_rows() * row_bytes());
    const auto scales = result<float>(dispatch_.out_scales, is_fp8() ? out_scales() : 0);
    std::vector<T> x(static_cast<std::size_t>(o_.hidden));
    std::vector<fp8_e4m3> fp8(x.size());
    std::vector<float> want_scales(static_cast<std::size_t>(groups()));
    for (const auto& [number, row] : rows_) {
      for (Size i = 0; i < o_.hidden; ++i) x[static_cast<std::size_t>(i)] = convert<T>(one_.x(row.pe, row.token, i));
      quantise(x, fp8.data(), want_scales.data());
      const Size at = o_.layout == ExpertLayout::kInPlace ? row.pe * o_.max_tokens + row.token : number;
      const auto* const want =
          is_fp8() ? reinterpret_cast<const std::byte*>(fp8.data()) : reinterpret_cast<const std::byte*>(x.data());
      const auto describe = [&, &row = row] {
        return fmt::format("row {} of expert {}, token {} of PE {}: other values", at, row.expert, row.token, row.pe);
      };
      const Size element = row_bytes() / o_.hidden;
      for (Size i = 0; i < o_.hidden; ++i)
        errors.expect(
            std::equal(want + i * element, want + (i + 1) * element, got.data() + at * row_bytes() + i * element),
            describe);
      for (Size i = 0; is_fp8() && i < groups(); ++i)
        errors.expect(want_scales[static_cast<std::size_t>(i)] == scales[static_cast<std::size_t>(scale_at(at, i))],
                      describe);
    }
  }

  /// The sum of a token's experts on a PE.
  float sum_on(int pe, Size token, Size i) const {
    float sum = 0;
    for (int k = 0; k < o_.top_k; ++k)
      if (const int id = one_.id(world_.pe(), token, k); id >= 0 && id / experts_here() == pe / o_.tp_size)
        sum += one_.y(part_of(id, pe), world_.pe(), token, i) * one_.weight(world_.pe(), token, k);
    return convert<float>(convert<T>(sum));
  }

  void check_combined(ExpertErrors& errors) {
    const auto out = result<T>(combine_.out, tokens() * o_.hidden);
    for (Size token = 0; token < tokens(); ++token)
      for (Size i = 0; i < o_.hidden; ++i) {
        float total = 0;
        for (int pe = 0; pe < world_.num_pes(); ++pe) total += sum_on(pe, token, i);
        if (input_.add) total += one_.add(token, i);
        const auto got = convert<float>(out[static_cast<std::size_t>(token * o_.hidden + i)]);
        const auto want = convert<float>(convert<T>(total));
        errors.expect(got == want, [&] {
          return fmt::format("combined token {}, element {}: {} instead of {}", token, i, got, want);
        });
      }
  }

  World& world_;
  ExpertPlan& plan_;
  ExpertOptions o_;
  ExpertInput input_;
  ExpertExample one_;
  std::map<Size, Row> rows_;
  RouteCall route_;
  DispatchCall dispatch_;
  CombineCall combine_;
  bool is_dispatched_ = false;
  bool is_combined_ = false;
};

}  // namespace

std::unique_ptr<ExpertTrial> make_expert_trial(World& world, ExpertPlan& plan, const ExpertInput& input,
                                               void* routing) {
  if (plan.options().type == DType::kF16) return std::make_unique<Trial<f16>>(world, plan, input, routing);
  return std::make_unique<Trial<bf16>>(world, plan, input, routing);
}

}  // namespace tandem::kernels
