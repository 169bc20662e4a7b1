#pragma once
/// A fused GEMM on one GPU, its data, and its comparison with the host's reference.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#include "gemm/contract/epilogue.h"
#include "gemm/host/host_gemm.h"
#include "gemm/host/reference.h"
#include "support/collective_values.h"
#include "support/in_threads.h"
#include "tandem/advanced/gemm_order.h"
#include "tandem/world.h"

namespace tandem::test {

struct Case {
  Size m = 0, n = 0, k = 0;
  DType type = DType::kBF16;
  int tile_n = 256;
  TileOrder order = TileOrder::kRowMajor;
  int shards = 1, splits = 1, me = 0, panel_group = 0, sms = 0;
  bool own = false, gated = false, notified = false, collected = false;
  BLayout layout = BLayout::kNxK;
  bool biased = false;
  Activation activation = Activation::kNone;
  DType out_type = DType::kBF16;
  enum class Scales { kNone, kOfTensors, kOfRowsAndColumns } scales = Scales::kNone;
  bool shared = false;  ///< the depth of the last tiles
  bool fast = false;    ///< accumulation
};

inline std::string describe(const Case& c) {
  return fmt::format(
      "{}x{}x{} {} tile_n={} order={} shards={} splits={} me={} group={} sms={}{}{}{}{}{}{} activation={} out={} "
      "scales={}{}{}",
      c.m, c.n, c.k, name(c.type), c.tile_n, static_cast<int>(c.order), c.shards, c.splits, c.me, c.panel_group, c.sms,
      c.own ? " own" : "", c.gated ? " gated" : "", c.notified ? " notified" : "", c.collected ? " collected" : "",
      c.layout == BLayout::kKxN ? " KxN" : "", c.biased ? " bias" : "", static_cast<int>(c.activation),
      name(c.out_type), static_cast<int>(c.scales), c.shared ? " stream-K" : "", c.fast ? " fast" : "");
}

/// Small integers: their products' sums are exact in f32.
inline float element(int matrix, Size i) { return static_cast<float>(static_cast<int>(mix(7, 3, matrix, i) % 7) - 3); }

inline std::vector<float> integers(int matrix, Size count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  in_threads({0, count}, 1, [&](Range some) {
    for (Size i = some.begin; i < some.end; ++i) values[static_cast<std::size_t>(i)] = element(matrix, i);
  });
  return values;
}

template <class T>
std::vector<T> converted(const std::vector<float>& values) {
  std::vector<T> result(values.size());
  std::transform(values.begin(), values.end(), result.begin(), [](float value) { return convert<T>(value); });
  return result;
}

/// Memory of one PE for any case.
struct Buffers {
  static constexpr Size kBytes = Size{64} << 20;
  std::byte *a, *own, *b, *c, *bias;
  float *a_scales, *b_scales, *c_scale;
  Symm<std::byte> staging;
  Signals words, counts;
  Epoch* epoch;
  GemmWorkspace workspace;

  explicit Buffers(World& world)
      : a(world.heap().allocate_local<std::byte>(kBytes, "a")),
        own(world.heap().allocate_local<std::byte>(kBytes, "own a")),
        b(world.heap().allocate_local<std::byte>(3 * kBytes, "b")),
        c(world.heap().allocate_local<std::byte>(kBytes, "c")),
        bias(world.heap().allocate_local<std::byte>(1 << 16, "bias")),
        a_scales(world.heap().allocate_local<float>(1 << 14, "scales of a")),
        b_scales(world.heap().allocate_local<float>(1 << 14, "scales of b")),
        c_scale(world.heap().allocate_local<float>(1, "scale of c")),
        staging(world.heap().allocate<std::byte>(kBytes, "staging")),
        words(world.heap().signals(64, "arrived")),
        counts(world.heap().signals(64, "computed")),
        epoch(world.heap().epochs(1, "epoch").words) {
    const int sms = world.machine().gpu.sm_count;
    workspace.words = world.heap().signals(GemmWorkspace::words_for(sms), "partial sums given").local();
    workspace.sums = world.heap().allocate_local<float>(GemmWorkspace::sums_for(sms), "partial sums");
  }
};

inline Gemm gemm_of(const Case& c, const Buffers& buffers) {
  Gemm gemm;
  gemm.m = c.m;
  gemm.n = c.n;
  gemm.k = c.k;
  gemm.type = c.type;
  gemm.out_type = c.out_type;
  gemm.tile_n = c.tile_n;
  gemm.panel_group = c.panel_group;
  gemm.sms = c.sms;
  gemm.a = buffers.a;
  gemm.b = buffers.b;
  gemm.b_layout = c.layout;
  if (c.biased) gemm.bias = buffers.bias;
  gemm.activation = c.activation;
  const bool each = c.scales == Case::Scales::kOfRowsAndColumns;
  if (c.scales != Case::Scales::kNone)
    gemm.scales = {buffers.a_scales, each, buffers.b_scales, each, c.collected ? nullptr : buffers.c_scale};
  gemm.fast_accumulation = c.fast;
  gemm.order = c.order;
  gemm.me = c.me;
  gemm.node_size = 1;
  gemm.rows = {c.m, c.shards, c.splits, gemm.tile_m};
  if (c.own) gemm.own_a = buffers.own;
  if (c.gated) gemm.gate = {buffers.words.local(), buffers.epoch, 1};
  if (c.shared) gemm.workspace = buffers.workspace;
  // Every owner's collector is this PE.
  const Signals notify = c.notified ? Signals(buffers.counts.local(), 0, 0) : Signals{};
  if (c.collected)
    gemm.destination = GemmScatter{Symm<std::byte>(buffers.staging.local(), 0, 0), notify};
  else
    gemm.destination = GemmLocal{buffers.c, {notify, true}};
  return gemm;
}

template <class T, class Out = T>
class Check {
  using Bias = std::conditional_t<sizeof(Out) == 1, bf16, Out>;

 public:
  Check(World& world, Stream& stream, Buffers& buffers, const Case& c)
      : world_(world), stream_(stream), buffers_(buffers), case_(c), gemm_(gemm_of(c, buffers)) {
    a_ = converted<T>(integers(0, c.m * c.k));
    b_ = converted<T>(integers(1, c.n * c.k));
    bias_ = converted<Bias>(integers(2, c.n));
    // Powers of two: all results but those of exponentials stay exact.
    for (Size i = 0; i < c.m; ++i) a_scales_.push_back(i % 3 == 0 ? 0.5F : 2);
    for (Size i = 0; i < c.n; ++i) b_scales_.push_back(i % 5 == 0 ? 4 : 0.25F);
    std::vector<float> sums(static_cast<std::size_t>(c.m * c.n));
    in_threads({0, c.m}, c.n * c.k / 4, [&](Range rows) {
      host_gemm_tile(a_.data() + rows.begin * c.k, c.k, b_.data(), c.layout == BLayout::kNxK ? c.k : c.n,
                     sums.data() + rows.begin * c.n, c.n, rows.size(), c.n, c.k, c.type, c.layout);
    });
    Gemm host = gemm_;
    if (c.biased) host.bias = bias_.data();
    if (c.scales != Case::Scales::kNone) {
      host.scales.a = a_scales_.data();
      host.scales.b = b_scales_.data();
      if (host.scales.c != nullptr) host.scales.c = &c_scale_;
    }
    apply_epilogue(host, {0, c.m}, {0, c.n}, sums.data());
    expected_ = converted<Out>(sums);
  }

  std::string run() {
    const Range own = gemm_.rows.shard(case_.me);
    world_.copy_in(buffers_.b, b_.data(), bytes(case_.n * case_.k));
    world_.copy_in(buffers_.a, a_.data(), bytes(case_.m * case_.k));
    world_.copy_in(buffers_.bias, bias_.data(), case_.n * Size{sizeof(Bias)});
    world_.copy_in(buffers_.a_scales, a_scales_.data(), case_.m * Size{sizeof(float)});
    world_.copy_in(buffers_.b_scales, b_scales_.data(), case_.n * Size{sizeof(float)});
    world_.copy_in(buffers_.c_scale, &c_scale_, sizeof(float));
    if (case_.own) {
      world_.copy_in(buffers_.own, a_.data() + own.begin * case_.k, bytes(own.size() * case_.k));
      const std::vector<std::byte> garbage(static_cast<std::size_t>(bytes(own.size() * case_.k)), std::byte{0xFF});
      world_.copy_in(buffers_.a + bytes(own.begin * case_.k), garbage.data(), bytes(own.size() * case_.k));
    }
    const std::vector<std::byte> cleared(static_cast<std::size_t>(out_bytes(case_.m * case_.n) + 4096),
                                         std::byte{0xFF});
    world_.copy_in(buffers_.c, cleared.data(), static_cast<Size>(cleared.size()));
    std::vector<Signal> before(64);
    world_.copy_out(before.data(), buffers_.counts.local(), 64 * 8);
    stream_.gemm(gemm_, world_.team());
    stream_.synchronize();
    std::string problem = case_.collected ? check_collected() : check_rows(buffers_.c, 0, case_.m);
    if (problem.empty() && case_.notified) problem = check_counts(before);
    if (problem.empty() && !case_.collected) problem = check_untouched();
    return problem;
  }

  /// The rows of A arrive piece by piece, in the order of the GEMM, while it runs.
  std::string run_late(Stream& copies, int round) {
    const Size row_bytes = bytes(case_.k);
    const std::vector<std::byte> garbage(static_cast<std::size_t>(bytes(case_.m * case_.k)), std::byte{0xFF});
    world_.copy_in(buffers_.b, b_.data(), bytes(case_.n * case_.k));
    world_.copy_in(buffers_.staging.local(), a_.data(), bytes(case_.m * case_.k));
    world_.copy_in(buffers_.a, garbage.data(), static_cast<Size>(garbage.size()));
    const Epoch epoch = static_cast<Epoch>(round + 1);
    world_.copy_in(buffers_.epoch, &epoch, 8);
    stream_.gemm(gemm_, world_.team());
    const TileSequence sequence(gemm_);
    for (int i = 0; i < sequence.chunks(); ++i) {
      const TileSequence::Chunk chunk = sequence.chunk(i);
      const Size begin = chunk.rows.begin * row_bytes;
      // Time for the GEMM to be waiting.
      for (int j = 0; j < 3; ++j) copies.copy_async(buffers_.own, buffers_.c, Buffers::kBytes);
      copies.copy_async(buffers_.a + begin, buffers_.staging.local() + begin, chunk.rows.size() * row_bytes);
      copies.write_signal(buffers_.words.local() + gemm_.rows.slot(chunk.owner, chunk.part), epoch);
    }
    copies.synchronize();
    stream_.synchronize();
    return check_rows(buffers_.c, 0, case_.m);
  }

 private:
  static Size bytes(Size elements) { return elements * Size{sizeof(T)}; }
  static Size out_bytes(Size elements) { return elements * Size{sizeof(Out)}; }

  std::string check_rows(const std::byte* from, Size begin, Size rows) {
    std::vector<Out> got(static_cast<std::size_t>(rows * case_.n));
    world_.copy_out(got.data(), from, out_bytes(rows * case_.n));
    Size wrong = 0;
    std::string first;
    for (Size i = 0; i < rows * case_.n; ++i) {
      const Out want = expected_[static_cast<std::size_t>(begin * case_.n + i)];
      if (is_right(static_cast<float>(got[static_cast<std::size_t>(i)]), static_cast<float>(want),
                   case_.fast ? allowed_of_fast(begin + i / case_.n, i % case_.n) : 0))
        continue;
      if (wrong++ == 0)
        first = fmt::format("row {} column {}: {} instead of {}", begin + i / case_.n, i % case_.n,
                            static_cast<float>(got[static_cast<std::size_t>(i)]), static_cast<float>(want));
    }
    return wrong == 0 ? "" : fmt::format("{} of {} wrong, first {}", wrong, rows * case_.n, first);
  }

  /// Exact but for what an approximated exponential changes before the result is rounded.
  bool is_right(float got, float want, float allowed_before_rounding) const {
    if (got == want) return true;
    if (case_.fast && std::abs(got - want) <= 2 * static_cast<float>(rounding_unit(case_.out_type)) * std::abs(want) +
                                                  allowed_before_rounding)
      return true;
    if (case_.activation != Activation::kGelu && case_.activation != Activation::kSilu) return false;
    return std::abs(got - want) <= 2 * static_cast<float>(rounding_unit(case_.out_type)) * std::abs(want) + 4e-6F;
  }

  /// The error of fast accumulation: values of A and B are integers about 2, and slopes of activations at most 1.13.
  float allowed_of_fast(Size row, Size column) const {
    const bool each = case_.scales == Case::Scales::kOfRowsAndColumns;
    const bool scaled = case_.scales != Case::Scales::kNone;
    const float of_row = scaled ? a_scales_[static_cast<std::size_t>(each ? row : 0)] : 1;
    const float of_column = scaled ? b_scales_[static_cast<std::size_t>(each ? column : 0)] : 1;
    const double typical = 4 * std::sqrt(static_cast<double>(case_.k));
    return static_cast<float>(1.13 * fast_accumulation_tolerance(case_.k) * typical) * of_row * of_column;
  }

  std::string check_collected() {
    for (int owner = 0; owner < case_.shards; ++owner) {
      const Range rows = gemm_.rows.shard(owner);
      const Size block = gemm_.block_at_collector(owner) * gemm_.rows.shard_rows() * case_.n;
      const std::string problem = check_rows(buffers_.staging.local() + out_bytes(block), rows.begin, rows.size());
      if (!problem.empty()) return fmt::format("owner {}: {}", owner, problem);
    }
    return "";
  }

  std::string check_counts(const std::vector<Signal>& before) {
    std::vector<Signal> after(64);
    world_.copy_out(after.data(), buffers_.counts.local(), 64 * 8);
    for (int owner = 0; owner < case_.shards; ++owner)
      for (int part = 0; part < case_.splits; ++part) {
        const auto slot = static_cast<std::size_t>(gemm_.rows.slot(owner, part));
        const auto sent = static_cast<Size>(after[slot].value - before[slot].value);
        if (sent != gemm_.tiles_of_chunk(owner, part))
          return fmt::format("owner {} part {}: {} tiles told, it has {}", owner, part, sent,
                             gemm_.tiles_of_chunk(owner, part));
      }
    return "";
  }

  std::string check_untouched() {
    std::vector<unsigned char> got(4096);
    world_.copy_out(got.data(), buffers_.c + out_bytes(case_.m * case_.n), 4096);
    for (const unsigned char byte : got)
      if (byte != 0xFF) return "it wrote behind C";
    return "";
  }

  World& world_;
  Stream& stream_;
  Buffers& buffers_;
  Case case_;
  Gemm gemm_;
  std::vector<T> a_, b_;
  std::vector<Bias> bias_;
  std::vector<float> a_scales_, b_scales_;
  float c_scale_ = 0.5F;
  std::vector<Out> expected_;
};

}  // namespace tandem::test
