#pragma once
/// Calls of routing, dispatch and combine back to back, from PEs that are late at random. The bits of each call have to
/// be those of the first call with the same choices and rows.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "collectives/reference/expert_choices.h"
#include "support/collective_values.h"
#include "support/expert_stress_kernels.h"
#include "support/replay.h"
#include "tandem/layer/experts.h"

namespace tandem::test {

inline std::string describe_stress(const ExpertOptions& o) {
  return fmt::format("{} {} align {} batches {}", name(o.transport), name(o.wire), o.align, o.batches);
}

/// The plans under stress: each transport, quantised rows, and calls in halves.
inline std::vector<ExpertOptions> stressed_experts(int pes) {
  ExpertOptions packets{.max_tokens = 12, .hidden = 512, .experts = 4 * pes, .top_k = 4};
  packets.transport = ExpertTransport::kPackets;
  ExpertOptions chunks = packets;
  chunks.transport = ExpertTransport::kChunks;
  chunks.align = 8;
  ExpertOptions fused = packets;
  fused.transport = ExpertTransport::kFused;
  ExpertOptions quantised = packets;
  quantised.wire = ExpertWire::kQuantised;
  quantised.batches = 1;
  return {packets, chunks, fused, quantised};
}

/// One PE's part. Four sets of choices and rows take turns in the same buffers. Two or
/// three slots take turns in a plan, so a slot's earlier contents are always of another set, and are wrong.
class ExpertStress {
 public:
  static constexpr int kSets = 4;
  /// Dispatches with each routing, and then combines. A routing meets all PEs. Behind it a PE that needs no other one
  /// can run ahead.
  static constexpr int kUses = 3;

  /// `capture`: with it calls are replayed, a call of each set at once.
  ExpertStress(World& world, const ExpertOptions& options, int most_passes, const Capture& capture = {})
      : world_(world),
        plan_(make_experts(world, options)),
        o_(plan_->options()),
        stream_(world.make_stream("experts")) {
    routing_ = words(plan_->routing_bytes() / 4);
    rows_ = words(plan_->rows() * o_.hidden / 2);
    scales_ = words(plan_->rows() * ceil_div(o_.hidden, Size{128}));
    out_ = words(o_.max_tokens * o_.hidden / 2);
    late_words_ = words(kLateWords);
    late_ = {late_words_, kLateWords, static_cast<std::uint64_t>(world.pe()), most_passes, {}};
    late_.epochs = world.heap().epochs(1, "late");
    for (int i = 0; i < kSets; ++i) make_set(i);
    for (Set& set : sets_) run_first(set);
    if (capture)
      replay_ = capture(stream_, [this] {
        for (const Set& set : sets_) call(set);
      });
  }

  /// Makes `rounds` times `turns` calls of each set. A random PE begins each round late. Returns the words that
  /// differed from the first ones in any call.
  Size wrong(int rounds, int turns) {
    for (int round = 0; round < rounds; ++round) {
      const std::uint64_t random = mix(17, round, 0, 0);
      if (random % static_cast<std::uint64_t>(world_.num_pes()) == static_cast<std::uint64_t>(world_.pe()))
        std::this_thread::sleep_for(std::chrono::microseconds((random >> 32) % kMostLateUs));
      for (int turn = 0; turn < turns; ++turn) make_turn();
      stream_.synchronize();
    }
    Size count = 0;
    for (const Set& set : sets_) {
      for (const Dispatched& one : set.dispatches) count += different(one.parts);
      for (const Combined& one : set.combines) count += different(one.parts);
    }
    return count;
  }

 private:
  static constexpr Size kLateWords = 1024;
  static constexpr std::uint64_t kMostLateUs = 3000;

  /// A result, and its words in the first call.
  struct Part {
    const std::uint32_t* got;
    std::uint32_t* want;
    std::uint32_t* differences;
    Size count;
  };
  /// A call and its results. The first dispatch of a set is with its routing.
  struct Dispatched {
    DispatchCall call;
    std::vector<Part> parts;
  };
  struct Combined {
    CombineCall call;
    std::vector<Part> parts;
  };
  struct Set {
    RouteCall route;
    std::vector<Dispatched> dispatches;
    std::vector<Combined> combines;
  };

  bool is_fp8() const { return o_.wire != ExpertWire::kType; }
  std::uint32_t* words(Size count) {
    auto* const memory = world_.heap().allocate_local<std::uint32_t>(count, "stress");
    const std::vector<std::uint32_t> zeros(static_cast<std::size_t>(count));
    world_.copy_in(memory, zeros.data(), count * 4);
    return memory;
  }
  template <class T>
  std::uint32_t* copied(const std::vector<T>& values) {
    const auto bytes = static_cast<Size>(values.size() * sizeof(T));
    std::uint32_t* const memory = words(std::max<Size>(ceil_div(bytes, Size{4}), 1));
    world_.copy_in(memory, values.data(), bytes);
    return memory;
  }
  /// Values whose sums depend on their order.
  std::uint32_t* random_rows(Size rows, int seed) {
    std::vector<bf16> values(static_cast<std::size_t>(rows * o_.hidden));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = convert<bf16>(static_cast<float>(mix(23, seed, world_.pe(), i) >> 40) * 0x1p-23F - 1.0F);
    return copied(values);
  }

  void make_set(int i) {
    constexpr const char* kRoutings[kSets] = {"random", "ragged", "zipf:1", "balanced"};
    const auto seed = static_cast<std::uint64_t>(i);
    const Size tokens = kernels::tokens_of_pe(kRoutings[i], world_.pe(), o_.max_tokens, seed);
    const auto ids =
        kernels::expert_choices(kRoutings[i], o_.experts, world_.num_pes(), o_.top_k, world_.pe(), tokens, seed);
    std::vector<float> weights(ids.size());
    for (std::size_t k = 0; k < weights.size(); ++k)
      weights[k] = static_cast<float>(mix(29, i, world_.pe(), k) >> 40) * 0x1p-24F;
    Set set;
    set.route = {.tokens = tokens,
                 .ids = copied(ids),
                 .weights = reinterpret_cast<const float*>(copied(weights)),
                 .routing = routing_};
    for (int use = 0; use < kUses; ++use) {
      const int seed_of_use = i * kUses + use;
      DispatchCall rows{.tokens = tokens, .x = random_rows(tokens, seed_of_use), .routing = routing_, .out = rows_};
      if (is_fp8()) rows.out_scales = reinterpret_cast<float*>(scales_);
      set.dispatches.push_back({rows, {}});
      set.combines.push_back(
          {{.tokens = tokens, .y = random_rows(plan_->rows(), 1000 + seed_of_use), .routing = routing_, .out = out_},
           {}});
    }
    sets_.push_back(set);
  }

  /// Keeps the words of a result as those of all later calls.
  void keep(std::vector<Part>& parts, const void* got, Size count) {
    const auto* const at = static_cast<const std::uint32_t*>(got);
    std::vector<std::uint32_t> values(static_cast<std::size_t>(count));
    world_.copy_out(values.data(), at, count * 4);
    parts.push_back({at, copied(values), words(std::max<Size>(count, 1)), count});
  }

  void run_first(Set& set) {
    for (Dispatched& one : set.dispatches) {
      enqueue(set, one);
      stream_.synchronize();
      keep_rows(one.parts);
    }
    for (Combined& one : set.combines) {
      enqueue(one);
      stream_.synchronize();
      keep(one.parts, out_, one.call.tokens * o_.hidden / 2);
    }
  }

  /// Rows that have a token. The others, which only align, are undefined.
  void keep_rows(std::vector<Part>& parts) {
    const ExpertRouting routing = plan_->routing(routing_);
    std::vector<std::int32_t> counts(static_cast<std::size_t>(experts_of_pe(o_, world_.num_pes())));
    std::vector<std::int32_t> starts(counts.size() + 1);
    world_.copy_out(counts.data(), routing.counts, static_cast<Size>(counts.size()) * 4);
    world_.copy_out(starts.data(), routing.starts, static_cast<Size>(starts.size()) * 4);
    keep(parts, routing.starts, static_cast<Size>(starts.size()));
    keep(parts, routing.slots, starts.back());
    const Size row = o_.hidden * (is_fp8() ? 1 : 2) / 4;
    const Size scales = is_fp8() ? ceil_div(o_.hidden, Size{128}) : 0;
    const auto keep_some = [&](Size first, Size count) {
      keep(parts, rows_ + first * row, count * row);
      if (scales > 0) keep(parts, scales_ + first * scales, count * scales);
    };
    if (o_.align == 1) return keep_some(0, starts.back());
    for (std::size_t e = 0; e < counts.size(); ++e) keep_some(starts[e], counts[e]);
  }

  void enqueue(const Set& set, const Dispatched& one) {
    stream_.launch<LateStart>({1, 512}, late_);
    if (&one == set.dispatches.data())
      plan_->route_and_dispatch(stream_, set.route, one.call);
    else
      plan_->dispatch(stream_, one.call);
  }
  void enqueue(const Combined& one) {
    stream_.launch<LateStart>({1, 512}, late_);
    plan_->combine(stream_, one.call);
  }
  void compare(const std::vector<Part>& parts) {
    for (const Part& part : parts)
      stream_.launch<SameWords>({1, 512}, {part.want, part.got, part.differences, part.count});
  }
  void call(const Set& set) {
    for (const Dispatched& one : set.dispatches) {
      enqueue(set, one);
      compare(one.parts);
    }
    for (const Combined& one : set.combines) {
      enqueue(one);
      compare(one.parts);
    }
  }
  void make_turn() {
    if (replay_) return replay_->launch();
    for (const Set& set : sets_) call(set);
  }

  Size different(const std::vector<Part>& parts) {
    Size count = 0;
    for (const Part& part : parts) {
      std::vector<std::uint32_t> words(static_cast<std::size_t>(part.count));
      world_.copy_out(words.data(), part.differences, part.count * 4);
      count += std::count_if(words.begin(), words.end(), [](std::uint32_t word) { return word != 0; });
    }
    return count;
  }

  World& world_;
  std::unique_ptr<ExpertPlan> plan_;
  ExpertOptions o_;
  Stream stream_;
  std::uint32_t* routing_ = nullptr;
  std::uint32_t* rows_ = nullptr;
  std::uint32_t* scales_ = nullptr;
  std::uint32_t* out_ = nullptr;
  std::uint32_t* late_words_ = nullptr;
  LateStart::Args late_{};
  std::vector<Set> sets_;
  std::unique_ptr<Replay> replay_;
};

}  // namespace tandem::test
