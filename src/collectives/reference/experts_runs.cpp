#include "collectives/reference/experts_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "collectives/reference/expert_choices.h"

namespace tandem::kernels {

namespace {

constexpr Size kGroup = 128;

/// The choices of all PEs in one round, and the values of rows.
class Example {
 public:
  Example(const ExpertRuns& runs, std::size_t number, int pes)
      : runs_(runs), round_(runs.rounds[number]), number_(number), pes_(pes) {
    const ExpertOptions& o = runs.options;
    for (int pe = 0; pe < pes; ++pe) {
      const Size tokens = tokens_of_pe(round_.routing, pe, round_.tokens, number);
      ids_.push_back(expert_choices(round_.routing, o.experts, pes, o.top_k, pe, tokens, number));
    }
  }

  Size tokens(int pe) const { return static_cast<Size>(ids_[static_cast<std::size_t>(pe)].size()) / top_k(); }
  const std::vector<std::int32_t>& ids(int pe) const { return ids_[static_cast<std::size_t>(pe)]; }
  int id(int pe, Size token, int k) const { return ids(pe)[static_cast<std::size_t>(token * top_k() + k)]; }
  float weight(int pe, Size token, int k) const {
    return runs_.weights ? static_cast<float>(1 << (pe + token + k) % 3) * 0.5F : 1.0F;
  }
  float x(int pe, Size token, Size i) const { return small(pe * 7 + token * 5 + i * 3, 17); }
  float y(int expert, int pe, Size token, Size i) const { return small(expert * 11 + pe * 3 + token * 7 + i * 5, 9); }
  float add(Size token, Size i) const { return small(token + i, 5); }

  int top_k() const { return runs_.options.top_k; }
  const ExpertRound& round() const { return round_; }

 private:
  float small(Size number, Size kinds) const {
    return static_cast<float>((number + static_cast<Size>(number_)) % kinds - kinds / 2);
  }

  const ExpertRuns& runs_;
  const ExpertRound& round_;
  std::size_t number_;
  int pes_;
  std::vector<std::vector<std::int32_t>> ids_;  // by PE
};

/// A row of an expert.
struct Row {
  int expert;
  int pe;
  Size token;
};

template <class T>
class Runs {
 public:
  Runs(World& world, const ExpertRuns& runs) : world_(world), runs_(runs), o_(runs.options) {}

  std::string wrong() {
    plan_ = make_experts(world_, o_);
    Stream stream = world_.make_stream("main");
    for (std::size_t i = 0; i < runs_.rounds.size(); ++i) enqueue(stream, i);
    stream.synchronize();
    for (const Results& results : results_)
      if (const std::string text = verify(results); !text.empty())
        return fmt::format("PE {}, round {} ({}): {}", world_.pe(), results.round + 1,
                           runs_.rounds[results.round].routing, text);
    return "";
  }

 private:
  struct Results {
    std::size_t round;
    const void* routing;
    const std::byte* rows = nullptr;  // null: only the routing was made
    const float* scales = nullptr;
    const T* out = nullptr;
  };

  bool quantised() const { return o_.wire != ExpertWire::kType; }
  Size groups() const { return ceil_div(o_.hidden, kGroup); }

  template <class Element>
  Element* copied(const std::vector<Element>& values, const char* what) {
    const auto count = static_cast<Size>(values.size());
    auto* const memory = world_.heap().allocate_local<Element>(count, what);
    world_.copy_in(memory, values.data(), count * Size{sizeof(Element)});
    return memory;
  }

  /// The rows of the experts here in their order, by number.
  std::map<Size, Row> rows(const Example& one) const {
    std::map<Size, Row> list;
    const int here = o_.experts / world_.num_pes();
    Size next = 0;
    for (int e = 0; e < here; ++e) {
      next = o_.layout == ExpertLayout::kByExpert ? e * plan_->options().most_rows : round_up(next, o_.align);
      const int expert = world_.pe() * here + e;
      for (int step = 0; step < world_.num_pes(); ++step) {
        const int pe = (world_.pe() + step) % world_.num_pes();
        for (Size token = 0; token < one.tokens(pe); ++token)
          for (int k = 0; k < o_.top_k; ++k)
            if (one.id(pe, token, k) == expert) list[next++] = {expert, pe, token};
      }
    }
    return list;
  }

  void enqueue(Stream& stream, std::size_t round) {
    const Example one(runs_, round, world_.num_pes());
    const int me = world_.pe();
    const Size tokens = one.tokens(me);
    std::vector<float> weights;
    std::vector<T> x;
    std::vector<T> add;
    for (Size token = 0; token < tokens; ++token) {
      for (int k = 0; k < o_.top_k; ++k) weights.push_back(one.weight(me, token, k));
      for (Size i = 0; i < o_.hidden; ++i) x.push_back(convert<T>(one.x(me, token, i)));
      for (Size i = 0; i < o_.hidden; ++i) add.push_back(convert<T>(one.add(token, i)));
    }
    std::vector<T> y(static_cast<std::size_t>(plan_->rows() * o_.hidden));
    for (const auto& [number, row] : rows(one))
      for (Size i = 0; i < o_.hidden; ++i)
        y[static_cast<std::size_t>(number * o_.hidden + i)] = convert<T>(one.y(row.expert, row.pe, row.token, i));
    RouteCall route{.tokens = tokens};
    if (runs_.tokens_on_device) {
      route.tokens = o_.max_tokens;
      route.tokens_on_device = copied(std::vector{static_cast<std::int32_t>(tokens)}, "tokens");
    }
    std::vector<std::int32_t> ids = one.ids(me);
    ids.resize(static_cast<std::size_t>(route.tokens * o_.top_k));
    if (runs_.long_ids) {
      route.id_type = DType::kI64;
      route.ids = copied(std::vector<std::int64_t>(ids.begin(), ids.end()), "ids");
    } else {
      route.ids = copied(ids, "ids");
    }
    weights.resize(ids.size());
    if (runs_.weights) route.weights = copied(weights, "weights");
    route.routing = world_.heap().allocate_local<std::int32_t>(plan_->routing_bytes() / 4, "routing");
    plan_->route(stream, route);
    // All dispatches come first: a PE that receives nothing is held back by none of them.
    std::vector<Results> uses(static_cast<std::size_t>(one.round().uses), {round, route.routing});
    for (Results& use : uses) dispatch(stream, use, tokens, x);
    for (Results& use : uses) combine(stream, use, tokens, y, add);
    if (uses.empty()) uses.push_back({round, route.routing});
    results_.insert(results_.end(), uses.begin(), uses.end());
  }

  void dispatch(Stream& stream, Results& use, Size tokens, const std::vector<T>& x) {
    const Size rows = plan_->dispatched_rows();
    const Size bytes = o_.hidden * (quantised() ? 1 : Size{sizeof(T)});
    std::byte* const out = world_.heap().allocate_local<std::byte>(rows * bytes, "rows");
    float* const scales = quantised() ? world_.heap().allocate_local<float>(rows * groups(), "scales") : nullptr;
    DispatchCall call{.tokens = tokens, .routing = use.routing, .out = out, .out_scales = scales};
    if (o_.wire == ExpertWire::kGiven) {
      std::vector<fp8_e4m3> given(x.size());
      std::vector<float> given_scales(static_cast<std::size_t>(tokens * groups()));
      quantise(x, given.data(), given_scales.data());
      call.x = copied(given, "x");
      call.x_scales = copied(given_scales, "x scales");
    } else {
      call.x = copied(x, "x");
    }
    plan_->dispatch(stream, call);
    use.rows = out;
    use.scales = scales;
  }

  void combine(Stream& stream, Results& use, Size tokens, const std::vector<T>& y, const std::vector<T>& add) {
    T* const out = world_.heap().allocate_local<T>(tokens * o_.hidden, "out");
    plan_->combine(stream, {.tokens = tokens,
                            .y = copied(y, "y"),
                            .routing = use.routing,
                            .add = runs_.add ? copied(add, "add") : nullptr,
                            .out = out});
    use.out = out;
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

  template <class Element>
  std::vector<Element> result(const void* memory, Size count) {
    std::vector<Element> values(static_cast<std::size_t>(count));
    world_.copy_out(values.data(), memory, count * Size{sizeof(Element)});
    return values;
  }

  std::string verify(const Results& results) {
    const Example one(runs_, results.round, world_.num_pes());
    const std::map<Size, Row> expected = rows(one);
    if (std::string text = verify_routing(results, one, expected); !text.empty() || results.rows == nullptr)
      return text;
    if (std::string text = verify_rows(results, one, expected); !text.empty()) return text;
    return verify_combined(results, one);
  }

  std::string verify_routing(const Results& results, const Example& one, const std::map<Size, Row>& expected) {
    const ExpertRouting routing = plan_->routing(results.routing);
    const int here = o_.experts / world_.num_pes();
    const auto counts = result<std::int32_t>(routing.counts, here);
    const auto starts = result<std::int32_t>(routing.starts, here + 1);
    const auto tokens = result<std::int32_t>(routing.tokens, world_.num_pes());
    for (int pe = 0; pe < world_.num_pes(); ++pe)
      if (tokens[static_cast<std::size_t>(pe)] != one.tokens(pe)) return fmt::format("tokens of PE {}", pe);
    const auto slots = result<std::int32_t>(routing.slots, starts.back());
    Size rows = 0;
    for (int e = 0; e < here; ++e) {
      const int expert = world_.pe() * here + e;
      const auto count =
          std::count_if(expected.begin(), expected.end(), [&](const auto& row) { return row.second.expert == expert; });
      if (counts[static_cast<std::size_t>(e)] != count)
        return fmt::format("expert {} has {} rows instead of {}", expert, counts[static_cast<std::size_t>(e)], count);
      rows += count;
    }
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const auto row = expected.find(static_cast<Size>(i));
      const Size slot = row == expected.end() ? -1 : row->second.pe * o_.max_tokens + row->second.token;
      if (slots[i] != slot) return fmt::format("row {} has the slot {} instead of {}", i, slots[i], slot);
    }
    return rows == static_cast<Size>(expected.size()) ? "" : "rows";
  }

  std::string verify_rows(const Results& results, const Example& one, const std::map<Size, Row>& expected) {
    const Size bytes = o_.hidden * (quantised() ? 1 : Size{sizeof(T)});
    const auto rows = result<std::byte>(results.rows, plan_->dispatched_rows() * bytes);
    const auto scales = result<float>(results.scales, quantised() ? plan_->dispatched_rows() * groups() : 0);
    std::vector<T> x(static_cast<std::size_t>(o_.hidden));
    std::vector<fp8_e4m3> fp8(x.size());
    std::vector<float> want_scales(static_cast<std::size_t>(groups()));
    for (const auto& [number, row] : expected) {
      for (Size i = 0; i < o_.hidden; ++i) x[static_cast<std::size_t>(i)] = convert<T>(one.x(row.pe, row.token, i));
      quantise(x, fp8.data(), want_scales.data());
      const Size at = o_.layout == ExpertLayout::kInPlace ? row.pe * o_.max_tokens + row.token : number;
      const auto* const want =
          quantised() ? reinterpret_cast<const std::byte*>(fp8.data()) : reinterpret_cast<const std::byte*>(x.data());
      if (!std::equal(want, want + bytes, rows.data() + at * bytes))
        return fmt::format("row {} of expert {}, token {} of PE {}: other values", number, row.expert, row.token,
                           row.pe);
      if (quantised() && !std::equal(want_scales.begin(), want_scales.end(), scales.data() + at * groups()))
        return fmt::format("row {} of expert {}: other scales", number, row.expert);
    }
    return "";
  }

  std::string verify_combined(const Results& results, const Example& one) {
    const int me = world_.pe();
    const auto out = result<T>(results.out, one.tokens(me) * o_.hidden);
    for (Size token = 0; token < one.tokens(me); ++token)
      for (Size i = 0; i < o_.hidden; ++i) {
        float total = 0;
        for (int pe = 0; pe < world_.num_pes(); ++pe) {
          float sum = 0;
          for (int k = 0; k < o_.top_k; ++k)
            if (const int id = one.id(me, token, k); id >= 0 && id / (o_.experts / world_.num_pes()) == pe)
              sum += one.y(id, me, token, i) * one.weight(me, token, k);
          total += convert<float>(convert<T>(sum));
        }
        if (runs_.add) total += one.add(token, i);
        const auto got = convert<float>(out[static_cast<std::size_t>(token * o_.hidden + i)]);
        if (const auto want = convert<float>(convert<T>(total)); got != want)
          return fmt::format("combined token {}, element {}: {} instead of {}", token, i, got, want);
      }
    return "";
  }

  World& world_;
  const ExpertRuns& runs_;
  const ExpertOptions& o_;
  std::unique_ptr<ExpertPlan> plan_;
  std::vector<Results> results_;
};

}  // namespace

std::string wrong_of_runs(World& world, const ExpertRuns& runs) {
  return runs.options.type == DType::kF16 ? Runs<f16>(world, runs).wrong() : Runs<bf16>(world, runs).wrong();
}

}  // namespace tandem::kernels
