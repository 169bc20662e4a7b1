#include "support/collective_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <span>
#include <vector>

#include "support/collective_values.h"
#include "support/earlier_calls.h"
#include "support/in_place.h"
#include "support/kept_memory.h"
#include "support/two_copies.h"
#include "tandem/advanced/local_handle.h"

namespace tandem::test {

namespace {

constexpr Size kGuard = 64;  // elements around every buffer that no PE may touch
constexpr int kGuardByte = 0xA5;

Machine machine_of(const CollectiveCase& c) {
  Machine machine = load_machine(c.machine);
  const int per_node = c.pes / c.nodes;
  if (machine.max_nodes > 1)
    machine.pes_per_node = per_node;
  else
    machine.pes_per_node = std::max(machine.pes_per_node, c.pes);
  return machine;
}

/// One call's buffers on one PE.
template <class T>
struct Buffers {
  Symm<T> first, second;  // with guards
  Symm<T> in, out;
  T* given = nullptr;                    // what is put into `in`
  Symm<T> saved;                         // what was in `out`
  Size first_size = 0, second_size = 0;  // without guards
};

/// One PE's part in a case.
template <class T>
class Program {
 public:
  Program(World& world, const CollectiveCase& c, CollectiveResult& result) : world_(world), c_(c), result_(result) {
    team_ = c.team_size == 0 ? world.team() : world.split_strided(c.team_first, c.team_stride, c.team_size);
    values_ = {c.op, c.random, c.seed, team_.size};
  }

  void run() {
    CollectiveOptions options;
    options.type = c_.type;
    options.op = c_.op;
    options.scale_of_run = c_.scale != CollectiveCase::Scale::kOfPlan;
    options.scale = options.scale_of_run ? 1 : values_.scale(team_.me);
    options.root = c_.root;
    options.max_count = c_.count;
    options.algorithm = c_.algorithm;
    options.blocks = c_.blocks;
    options.local_in = c_.local_in;
    options.local_out = c_.local_out;
    if (c_.staging_bytes > 0)
      options.staging = {world_.heap().allocate<std::byte>(c_.staging_bytes, "staging for in"),
                         world_.heap().allocate<std::byte>(c_.staging_bytes, "staging for out"), c_.staging_bytes};
    EarlierCalls earlier(world_);
    const auto plan = make_collective(world_, c_.collective, options, team_);
    if (c_.earlier_calls > 0) earlier.pretend(c_.earlier_calls);
    const Size most = std::max(in_size(0, c_.root), out_size(0, c_.root));
    T* const junk = world_.heap().allocate_local<T>(most, "junk");
    std::memset(static_cast<void*>(junk), kGuardByte / 2, static_cast<std::size_t>(most) * sizeof(T));
    noise_ = world_.heap().allocate<std::byte>(2 * kNoise, "noise");
    for (int call = 0; call < c_.calls; ++call) calls_.push_back(allocate(call));
    if (team_.me >= 0) {
      result_.algorithm = plan->algorithm();
      for (int call = 0; call < c_.calls; ++call) fill(call);
      Stream stream = world_.make_stream("main");
      Stream noise = world_.make_stream("noise");
      for (int call = 0; call < c_.calls; ++call) {
        const Buffers<T>& b = calls_[static_cast<std::size_t>(call)];
        const Size ins = in_size(call, team_.me);
        const Size outs = out_size(call, team_.me);
        disturb(stream, noise, call);
        stream.launch<TwoCopies<T>>({2, 32},
                                    {b.in.local(), b.given, ins, b.out.local(), junk, shares() ? 0 : outs, false});
        run_call(*plan, stream, b, count_of(call));
        stream.launch<TwoCopies<T>>(
            {2, 32}, {b.saved.local(), b.out.local(), outs, b.in.local(), junk, spoils(call) ? ins : 0, shares()});
      }
      stream.synchronize();
    }
    world_.barrier();
    if (team_.me >= 0)
      for (int call = 0; call < c_.calls; ++call) check(call);
    world_.barrier();
  }

 private:
  static constexpr Size kNoise = Size{1} << 18;

  void run_call(CollectivePlan& plan, Stream& stream, const Buffers<T>& b, Size count) {
    const auto in = Symm<const T>(b.in).template as<const std::byte>();
    const auto out = b.out.template as<std::byte>();
    if (c_.scale == CollectiveCase::Scale::kOfPlan) return plan.run(stream, in, out, count);
    const T factor = convert<T>(values_.scale(team_.me));
    RunScale scale;
    if (c_.scale == CollectiveCase::Scale::kOfRun) {
      std::memcpy(scale.value.data(), &factor, sizeof(T));
    } else {
      T* const at = world_.heap().template allocate_local<T>(1, "factor");
      *at = factor;
      scale.at = at;
    }
    plan.run_scaled(stream, in, out, count, scale);
  }

  /// Some PEs are late for a call, and one has traffic on its link meanwhile.
  void disturb(Stream& stream, Stream& noise, int call) {
    const std::uint64_t seed = c_.schedule != 0 ? c_.schedule : c_.seed;
    const auto copy = [&](Stream& on, int from) { on.copy_async(noise_.local(), noise_.on(from) + kNoise, kNoise); };
    for (std::uint64_t i = mix(seed, 77, call, world_.pe()) % 8; i > 5; --i) copy(stream, world_.pe());
    const Team node = world_.node_team();
    if (mix(seed, 78, call, 0) % static_cast<std::uint64_t>(world_.num_pes()) ==
        static_cast<std::uint64_t>(world_.pe()))
      for (int i = 0; i < 4; ++i) copy(noise, node.world_pe((node.me + 1) % node.size));
  }

  Size count_of(int call) const { return call % 2 == 0 ? c_.count : c_.count / 3; }
  Size in_size(int call, int pe) const {
    return input_elements(c_.collective, count_of(call), team_.size, pe, c_.root);
  }
  Size out_size(int call, int pe) const {
    return output_elements(c_.collective, count_of(call), team_.size, pe, c_.root);
  }

  /// Whether this PE's input and output share memory.
  bool shares() const { return c_.in_place && shares_memory(c_.collective, team_.me, c_.root); }

  bool spoils(int call) const { return shares() || mix(c_.seed, 55, call, 0) % 2 == 0; }

  Buffers<T> allocate(int call) {
    const Size most = std::max(in_size(call, c_.root), out_size(call, c_.root));
    const auto buffer = [&](const char* what, bool is_local) {
      const std::string name = fmt::format("{} {}", what, call);
      const Size size = most + 2 * kGuard;
      const Symm<T> made = is_local ? local_handle(world_, world_.heap().template allocate_local<T>(size, name))
                                    : world_.heap().template allocate<T>(size, name);
      std::memset(made.local(), kGuardByte, static_cast<std::size_t>(size) * sizeof(T));
      return made;
    };
    Buffers<T> b;
    b.first = buffer("first", c_.local_in);
    b.second = buffer("second", c_.local_out);
    b.given = world_.heap().template allocate_local<T>(most, "given");
    b.saved = world_.heap().template allocate<T>(most, fmt::format("saved {}", call));
    b.first_size = b.second_size = most;
    b.in = b.first + kGuard;
    b.out = b.second + kGuard;
    if (shares()) put_in_place(c_.collective, count_of(call), team_.me, c_.root, b.in, b.out);
    return b;
  }

  T input(int call, int pe, Size i) const { return values_.template input<T>(call, pe, i); }

  void fill(int call) {
    T* const given = calls_[static_cast<std::size_t>(call)].given;
    const Size ins = in_size(call, team_.me);
    for (Size i = 0; i < ins; ++i) given[i] = input(call, team_.me, i);
  }

  void check(int call) {
    const Buffers<T>& b = calls_[static_cast<std::size_t>(call)];
    const Size ins = in_size(call, team_.me);
    const Size outs = out_size(call, team_.me);
    result_.checked += outs;
    const T* const results = b.saved.local();
    const T* const other = b.saved.on(team_.world_pe(0));
    if (c_.collective != Collective::kAllReduce || team_.me == 0) {
      for (Size i = 0; i < outs; ++i) check_result(call, i, results[i]);
    } else if (outs > 0 && std::memcmp(results, other, static_cast<std::size_t>(outs) * sizeof(T)) != 0) {
      for (Size i = 0; i < outs; ++i)
        if (!same_bits(results[i], other[i]))
          wrong(call, "element", i, difference(results[i], other[i]) + " as on PE 0");
    }
    // A sum, so that it does not matter which PE checks first.
    result_.data_hash += hash_bytes(mix(0, call, team_.me, 0), results, outs * static_cast<Size>(sizeof(T)));
    if (!spoils(call))
      for (Size i = 0; i < ins; ++i)
        if (!same_bits(b.in.local()[i], input(call, team_.me, i))) wrong(call, "input", i, "was changed");
    check_untouched(call, b, b.first, b.first_size);
    check_untouched(call, b, b.second, b.second_size);
  }

  void check_result(int call, Size i, T got) {
    const CollectiveSource from = traits(c_.collective).source({count_of(call), team_.size, c_.root}, team_.me, i);
    if (reduces(c_.collective)) {
      const Expected<T> want = values_.template reduced<T>(call, from);
      if (!want.allows(got)) wrong(call, "element", i, difference(got, want.value));
    } else if (const T want = input(call, from.first, from.index); !same_bits(got, want)) {
      wrong(call, "element", i, difference(got, want));
    }
  }

  /// Memory without a result holds the guard's pattern; inputs are checked separately.
  void check_untouched(int call, const Buffers<T>& b, Symm<T> buffer, Size size) {
    const T* const begin = buffer.local();
    const std::span<const T> in(b.in.local(), static_cast<std::size_t>(in_size(call, team_.me)));
    const std::span<const T> out(b.out.local(), static_cast<std::size_t>(out_size(call, team_.me)));
    const auto holds = [](std::span<const T> used, const T* at) {
      return at >= used.data() && at < used.data() + used.size();
    };
    for (const T* at = begin; at < begin + size + 2 * kGuard; ++at) {
      if (holds(in, at) || holds(out, at)) continue;
      const auto* const bytes = reinterpret_cast<const unsigned char*>(at);
      if (std::any_of(bytes, bytes + sizeof(T), [](unsigned char byte) { return byte != kGuardByte; }))
        wrong(call, "memory around the buffers, at", at - begin - kGuard, "was written");
    }
  }

  static std::string difference(T got, T want) {
    return fmt::format("got {}, expected {}", convert<double>(got), convert<double>(want));
  }

  void wrong(int call, const char* what, Size i, const std::string& why) {
    if (result_.wrong++ == 0)
      result_.first_wrong =
          fmt::format("call {} ({} elements), PE {}, {} {}: {}", call, count_of(call), team_.me, what, i, why);
  }

  World& world_;
  const CollectiveCase& c_;
  CollectiveResult& result_;
  Team team_;
  Values values_;
  Symm<std::byte> noise_;
  std::vector<Buffers<T>> calls_;
};

}  // namespace

std::string describe(const CollectiveCase& c) {
  std::string text =
      fmt::format("{} {} on {}x{} of {}, {} x {}", name(c.collective), c.algorithm.empty() ? "(default)" : c.algorithm,
                  c.nodes, c.pes / c.nodes, c.machine, c.count, name(c.type));
  if (reduces(c.collective)) text += std::string(", ") + name(c.op);
  if (c.root != 0) text += fmt::format(", root {}", c.root);
  if (c.blocks != 0) text += fmt::format(", {} blocks", c.blocks);
  if (c.in_place) text += ", in-place";
  if (c.local_in) text += ", local in";
  if (c.local_out) text += ", local out";
  if (c.scale != CollectiveCase::Scale::kOfPlan)
    text += c.scale == CollectiveCase::Scale::kOfRun ? ", a factor a run" : ", a factor a run in memory";
  if (c.staging_bytes > 0) text += fmt::format(", {} bytes of staging", c.staging_bytes);
  if (c.random) text += ", random";
  if (c.earlier_calls != 0) text += fmt::format(", after {} calls", c.earlier_calls);
  if (c.team_size != 0) text += fmt::format(", team {}+{}x{}", c.team_first, c.team_size, c.team_stride);
  return text + fmt::format(", seed {}", c.seed);
}

std::ostream& operator<<(std::ostream& out, const CollectiveCase& c) { return out << describe(c); }

CollectiveResult check_collective(const CollectiveCase& c) {
  keep_memory();
  SimOptions options;
  options.seed = c.schedule != 0 ? c.schedule : c.seed;
  options.heap_bytes = Size{1} << 30;
  const Machine machine = machine_of(c);
  if (c.nodes > 1 && machine.max_nodes == 1) options.pes_per_node = c.pes / c.nodes;
  CollectiveResult result;
  Simulation simulation(machine, c.pes, options);
  dispatch(c.type, [&]<class T>() { simulation.run([&](World& world) { Program<T>(world, c, result).run(); }); });
  result.trace_hash = simulation.trace_hash();
  result.time_us = simulation.time_us();
  return result;
}

}  // namespace tandem::test
