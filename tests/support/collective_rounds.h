#pragma once
/// Runs one collective on real devices, again and again with new data, and counts wrong elements.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/collective_values.h"
#include "support/in_place.h"
#include "support/in_threads.h"
#include "support/replay.h"
#include "tandem/collectives.h"

namespace tandem::test {

struct RoundsCase {
  AlgorithmInfo algorithm;
  DType type = DType::kF32;
  ReduceOp op = ReduceOp::kSum;
  Size count = 1003;
  int root = 0;
  bool in_place = false;
  bool random = false;
  int rounds = 1;      ///< each with data of its own
  bool graph = false;  ///< one captured graph, replayed every round; else plain launches
  int blocks = 0;      ///< 0: the plan's choice
};

inline std::string describe(const RoundsCase& c, int pes) {
  return fmt::format("{} {} on {} PEs, {} x {}, {}{}{}{}", name(c.algorithm.collective), c.algorithm.name, pes, c.count,
                     name(c.type), name(c.op), c.in_place ? ", in-place" : "", c.random ? ", random" : "",
                     c.graph ? fmt::format(", {} replays", c.rounds) : "");
}

struct RoundsResult {
  Size checked = 0;
  Size wrong = 0;
  std::string first_wrong = {};
  std::uint64_t hash = 0;    ///< of the results of all PEs
  std::uint64_t common = 0;  ///< of a PE's results, where all PEs have to have the same

  void add(const RoundsResult& other) {
    checked += other.checked;
    if (wrong == 0) first_wrong = other.first_wrong;
    wrong += other.wrong;
    hash += other.hash;
    common += other.common;
  }
};

/// Whether all PEs end up with the same bits.
inline bool is_common(Collective collective) {
  return collective == Collective::kAllReduce || collective == Collective::kAllGather ||
         collective == Collective::kBroadcast;
}

/// One PE's part in a case.
template <class T>
class CollectiveRounds {
 public:
  /// `capture`: of cases with `graph`.
  CollectiveRounds(World& world, const RoundsCase& c, Capture capture = nullptr)
      : world_(world), c_(c), capture_(std::move(capture)), values_{c.op, c.random, 1, world.num_pes()} {
    options_.type = c.type;
    options_.op = c.op;
    options_.scale = values_.scale(world.pe());
    // A plan has the factor of runs in place. Other runs give it: in memory if a graph is replayed, else by value.
    options_.scale_of_run = c.op == ReduceOp::kPremulSum && !c.in_place;
    options_.root = c.root;
    options_.max_count = c.count;
    options_.algorithm = c.algorithm.name;
    options_.blocks = c.blocks;
  }

  RoundsResult run() {
    Stream stream = world_.make_stream("main");
    return run(stream);
  }
  RoundsResult run(Stream& stream) {
    const auto plan = make_collective(world_, c_.algorithm.collective, options_);
    for (int call = 0; call < kCalls; ++call) buffers_.push_back(allocate(call));
    const RunScale scale = scale_of_runs();
    const auto enqueue = [&] {
      for (int call = 0; call < kCalls; ++call) {
        const Buffers& b = buffers_[static_cast<std::size_t>(call)];
        const auto in = Symm<const T>(b.in).template as<const std::byte>();
        const auto out = b.out.template as<std::byte>();
        if (options_.scale_of_run)
          plan->run_scaled(stream, in, out, count_of(call), scale);
        else
          plan->run(stream, in, out, count_of(call));
      }
    };
    const std::unique_ptr<Replay> graph = c_.graph ? capture_(stream, enqueue) : nullptr;
    for (int round = 0; round < c_.rounds; ++round) {
      fill(round);
      world_.barrier();
      if (graph)
        graph->launch();
      else
        enqueue();
      stream.synchronize();
      world_.barrier();  // peers may read and write here until all are done
      check(round);
      world_.barrier();
    }
    return result_;
  }

 private:
  static constexpr int kCalls = 3;    // back to back
  static constexpr Size kGuard = 64;  // elements around every buffer that no PE may touch
  static constexpr int kGuardByte = 0xA5;

  struct Buffers {
    Symm<T> first, second;  // with guards
    Symm<T> in, out;
    Size size = 0;  // of each, without guards
  };

  RunScale scale_of_runs() {
    RunScale scale;
    const T factor = convert<T>(values_.scale(me()));
    std::memcpy(scale.value.data(), &factor, sizeof(T));
    if (!options_.scale_of_run || !c_.graph) return scale;
    T* const at = world_.heap().template allocate_local<T>(1, "factor");
    world_.copy_in(at, &factor, sizeof(T));
    scale.at = at;
    return scale;
  }

  int me() const { return world_.pe(); }
  Collective collective() const { return c_.algorithm.collective; }
  Size count_of(int call) const { return call == 1 ? c_.count / 3 : c_.count; }
  Size ins(int call, int pe) const {
    return input_elements(collective(), count_of(call), world_.num_pes(), pe, c_.root);
  }
  Size outs(int call, int pe) const {
    return output_elements(collective(), count_of(call), world_.num_pes(), pe, c_.root);
  }
  bool shares() const { return c_.in_place && shares_memory(collective(), me(), c_.root); }

  Buffers allocate(int call) {
    Buffers b;
    b.size = std::max(ins(call, c_.root), outs(call, c_.root));
    b.first = world_.heap().template allocate<T>(b.size + 2 * kGuard, fmt::format("first {}", call));
    b.second = world_.heap().template allocate<T>(b.size + 2 * kGuard, fmt::format("second {}", call));
    b.in = b.first + kGuard;
    b.out = b.second + kGuard;
    if (shares()) put_in_place(collective(), count_of(call), me(), c_.root, b.in, b.out);
    return b;
  }

  /// Each round and call has data of its own.
  T input(int round, int call, int pe, Size i) const { return values_.template input<T>(round * kCalls + call, pe, i); }

  using Host = std::vector<T>;  // a buffer with its guards

  void fill(int round) {
    for (int call = 0; call < kCalls; ++call) {
      const Buffers& b = buffers_[static_cast<std::size_t>(call)];
      const Size bytes = (b.size + 2 * kGuard) * Size{sizeof(T)};
      for (const Symm<T>& buffer : {b.first, b.second})
        world_.copy_in(buffer.local(), made(round, call, buffer).data(), bytes);
    }
  }

  /// Returns the contents of a buffer before a call: guards, and the input if it lies there.
  Host made(int round, int call, const Symm<T>& buffer) const {
    const Buffers& b = buffers_[static_cast<std::size_t>(call)];
    const Size whole = b.size + 2 * kGuard;
    Host host(static_cast<std::size_t>(whole));
    std::memset(static_cast<void*>(host.data()), kGuardByte, host.size() * sizeof(T));
    const Size at = b.in.local() - buffer.local();
    if (at < 0 || at >= whole) return host;
    in_threads({0, ins(call, me())}, 1, [&](Range part) {
      for (Size i = part.begin; i < part.end; ++i) host[static_cast<std::size_t>(at + i)] = input(round, call, me(), i);
    });
    return host;
  }

  void check(int round) {
    for (int call = 0; call < kCalls; ++call) {
      const Buffers& b = buffers_[static_cast<std::size_t>(call)];
      const Size whole = b.size + 2 * kGuard;
      Host host(static_cast<std::size_t>(whole));
      for (const Symm<T>& buffer : {b.first, b.second}) {
        world_.copy_out(host.data(), buffer.local(), whole * Size{sizeof(T)});
        check_buffer(round, call, buffer, host);
      }
      result_.checked += outs(call, me());
    }
  }

  /// In pieces, always the same ones: what they hash to has to be comparable.
  void check_buffer(int round, int call, const Symm<T>& buffer, const Host& host) {
    constexpr Size piece = 4096;
    const Buffers& b = buffers_[static_cast<std::size_t>(call)];
    const Size whole = b.size + 2 * kGuard;
    const Size out_at = b.out.local() - buffer.local();
    const Size in_at = b.in.local() - buffer.local();
    const bool has_out = out_at >= 0 && out_at < whole;
    const bool has_in = in_at >= 0 && in_at < whole;
    const Range out = has_out ? Range{out_at, out_at + outs(call, me())} : Range{0, 0};
    const Range in = has_in ? Range{in_at, in_at + ins(call, me())} : Range{0, 0};
    std::vector<RoundsResult> results(static_cast<std::size_t>(ceil_div(whole, piece)));
    in_threads({0, static_cast<Size>(results.size())}, piece * (reduces(collective()) ? world_.num_pes() : 1),
               [&](Range some) {
                 for (Size i = some.begin; i < some.end; ++i)
                   check_chunk(round, call, {i * piece, std::min((i + 1) * piece, whole)}, out, in, host,
                               results[static_cast<std::size_t>(i)]);
               });
    for (const RoundsResult& result : results) result_.add(result);
  }

  /// Elements `piece` of a buffer, of which `out` is output and `in`, unless it is output as well, input.
  void check_chunk(int round, int call, Range piece, Range out, Range in, const Host& host,
                   RoundsResult& result) const {
    for (Size at = piece.begin; at < piece.end; ++at) {
      const T got = host[static_cast<std::size_t>(at)];
      if (at >= out.begin && at < out.end) {
        if (!is_result(round, call, at - out.begin, got)) wrong(result, round, call, "element", at - out.begin);
      } else if (at >= in.begin && at < in.end) {
        // In place, what is not output is input that may be overwritten.
        if (!shares() && !same_bits(got, input(round, call, me(), at - in.begin)))
          wrong(result, round, call, "input", at - in.begin);
      } else if (!is_guard(got)) {
        wrong(result, round, call, "memory around the buffers, at", at - kGuard);
      }
    }
    // Pieces of the output, wherever in the buffer it begins.
    const Range own{std::max(piece.begin, out.begin), std::min(piece.end, out.end)};
    if (own.end <= own.begin) return;
    const T* const from = &host[static_cast<std::size_t>(own.begin)];
    const Size bytes = own.size() * Size{sizeof(T)};
    const Size first = own.begin - out.begin;
    result.hash += hash_bytes(mix(static_cast<std::uint64_t>(first), round, call, me()), from, bytes);
    if (is_common(collective()))
      result.common += hash_bytes(mix(static_cast<std::uint64_t>(first), round, call, 0), from, bytes);
  }

  static bool is_guard(T value) {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(&value);
    return std::all_of(bytes, bytes + sizeof(T), [](unsigned char byte) { return byte == kGuardByte; });
  }

  bool is_result(int round, int call, Size i, T got) const {
    const CollectiveSource from = traits(collective()).source({count_of(call), world_.num_pes(), c_.root}, me(), i);
    if (reduces(collective())) return values_.template reduced<T>(round * kCalls + call, from).allows(got);
    return same_bits(got, input(round, call, from.first, from.index));
  }

  void wrong(RoundsResult& result, int round, int call, const char* what, Size i) const {
    if (result.wrong++ == 0)
      result.first_wrong = fmt::format("round {}, call {}, PE {}, {} {}", round, call, me(), what, i);
  }

  World& world_;
  const RoundsCase& c_;
  const Capture capture_;
  Values values_;
  CollectiveOptions options_;
  std::vector<Buffers> buffers_;
  RoundsResult result_;
};

}  // namespace tandem::test
