// The grouped GEMM with hooks on one GPU, with tables of panels that the GPU makes. It is compared with sums by the
// host on integers, so every element must be exact. Gated activations have an approximated exponential.
//
//   grouped_gemm_gpu_check [ROUNDS]     rounds of the test in which rows of A arrive while the GEMM runs; default 10

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "gemm/contract/epilogue.h"
#include "gemm/host/host_gemm.h"
#include "gemm/host/reference.h"
#include "support/collective_values.h"
#include "support/in_threads.h"
#include "tandem/cuda.h"
#include "tandem/error.h"
#include "tandem/layer/group_panels.h"

namespace tandem::test {

namespace {

int passed = 0;
int failed = 0;
Epoch late_rounds = 1;  // words only grow

void report(const std::string& what, const std::string& problem) {
  if (problem.empty()) {
    ++passed;
    return;
  }
  if (++failed <= 40) std::printf("FAILED %s: %s\n", what.c_str(), problem.c_str());
  std::fflush(stdout);
}

constexpr int kTileM = 128;
constexpr Size kBytes = Size{64} << 20;

struct Case {
  std::vector<std::int32_t> counts;
  Size n = 0, k = 0;
  Size most_rows = 0;
  bool indexed = false, gated = false;
  int column_chunks = 1, together = 8, sms = 0;
  Activation activation = Activation::kNone;
};

std::string describe(const Case& c) {
  return fmt::format("{} groups from {} rows, {}x{}, most_rows={} chunks={} together={} sms={}{}{} activation={}",
                     c.counts.size(), c.counts.front(), c.n, c.k, c.most_rows, c.column_chunks, c.together, c.sms,
                     c.indexed ? " indexed" : "", c.gated ? " gated" : "", static_cast<int>(c.activation));
}

struct Buffers {
  std::byte *a, *b, *c, *source;
  std::int32_t *counts, *starts, *index;
  Signals arrived, tiles;
  Epoch* epoch;

  explicit Buffers(World& world)
      : a(world.heap().allocate_local<std::byte>(kBytes, "a")),
        b(world.heap().allocate_local<std::byte>(kBytes, "b")),
        c(world.heap().allocate_local<std::byte>(kBytes, "c")),
        source(world.heap().allocate_local<std::byte>(kBytes, "source")),
        counts(world.heap().allocate_local<std::int32_t>(1 << 12, "counts")),
        starts(world.heap().allocate_local<std::int32_t>(1 << 12, "starts")),
        index(world.heap().allocate_local<std::int32_t>(1 << 16, "index")),
        arrived(world.heap().signals(1 << 12, "arrived")),
        tiles(world.heap().signals(64, "tiles")),
        epoch(world.heap().epochs(1, "epoch").words) {}
};

template <class T>
std::vector<T> integers(int matrix, Size count) {
  std::vector<T> values(static_cast<std::size_t>(count));
  in_threads({0, count}, 1, [&](Range some) {
    for (Size i = some.begin; i < some.end; ++i)
      values[static_cast<std::size_t>(i)] =
          convert<T>(static_cast<float>(static_cast<int>(mix(7, 3, matrix, i) % 7) - 3));
  });
  return values;
}

template <class T>
class Check {
 public:
  Check(World& world, Stream& stream, Buffers& buffers, const Case& c)
      : world_(world), stream_(stream), buffers_(buffers), case_(c) {
    Size panels = 0;
    for (const std::int32_t count : c.counts) {
      starts_.push_back(static_cast<std::int32_t>(m_));
      m_ += c.most_rows > 0 ? c.most_rows : round_up(count, kTileM);
      panels += ceil_div(count, kTileM);
    }
    const int groups = static_cast<int>(c.counts.size());
    table_ = make_group_panels(world, {.groups = groups,
                                       .tile_m = kTileM,
                                       .most_panels = static_cast<int>(panels) + 1,
                                       .together = c.together,
                                       .most_rows = c.most_rows,
                                       .words = c.gated ? 1 : 0});
    panels_ = panels;
    columns_ = columns_after(c.activation, c.n);
    rows_of_a_ = c.indexed ? 333 : m_;
    a_ = integers<T>(0, rows_of_a_ * c.k);
    b_ = integers<T>(1, groups * c.n * c.k);
    for (Size row = 0; row < m_; ++row) index_.push_back(static_cast<std::int32_t>(row * 31 % (rows_of_a_ + 1) - 1));
    fill_gemm();
  }

  std::string run(Stream* copies, Epoch epoch) {
    put(buffers_.b, b_);
    put(copies == nullptr ? buffers_.a : buffers_.source, a_);
    if (copies != nullptr) put(buffers_.a, std::vector<unsigned char>(a_.size() * sizeof(T), 0xFF));
    put(buffers_.c, std::vector<unsigned char>(static_cast<std::size_t>(m_ * columns_) * sizeof(T) + 4096, 0xFF));
    put(buffers_.counts, case_.counts);
    put(buffers_.starts, starts_);
    put(buffers_.index, index_);
    put(buffers_.tiles.local(), std::vector<Signal>(64));
    put(buffers_.epoch, std::vector<Epoch>{epoch});
    table_->make(stream_, buffers_.counts, case_.most_rows > 0 ? nullptr : buffers_.starts);
    stream_.gemm(gemm_, world_.team());
    if (copies != nullptr) send(*copies, epoch);
    stream_.synchronize();
    for (std::size_t g = 0; g < case_.counts.size(); ++g)
      if (std::string problem = check_group(g); !problem.empty()) return problem;
    return check_rest();
  }

 private:
  template <class Value>
  void put(void* to, const std::vector<Value>& values) {
    world_.copy_in(to, values.data(), static_cast<Size>(values.size() * sizeof(Value)));
  }

  void fill_gemm() {
    gemm_.m = m_;
    gemm_.n = case_.n;
    gemm_.k = case_.k;
    gemm_.type = gemm_.out_type = dtype_of<T>();
    gemm_.sms = case_.sms;
    gemm_.a = buffers_.a;
    gemm_.b = buffers_.b;
    gemm_.activation = case_.activation;
    gemm_.groups = table_->groups();
    gemm_.groups.column_chunks = case_.column_chunks;
    gemm_.destination = GemmLocal{buffers_.c, {buffers_.tiles, true}};
    if (case_.gated) gemm_.gate = {buffers_.arrived.local(), buffers_.epoch, 1};
    if (!case_.indexed) return;
    gemm_.groups.a_rows = buffers_.index;
    gemm_.groups.rows_of_a = rows_of_a_;
    gemm_.groups.gathered = buffers_.source;
  }

  /// The rows of A, group by group, while the GEMM runs.
  void send(Stream& copies, Epoch epoch) {
    for (std::size_t g = 0; g < case_.counts.size(); ++g) {
      const Size begin = starts_[g] * case_.k * Size{sizeof(T)};
      const Size end = (starts_[g] + case_.counts[g]) * case_.k * Size{sizeof(T)};
      if (end > begin) copies.copy_async(buffers_.a + begin, buffers_.source + begin, end - begin);
      copies.write_signal(buffers_.arrived.local() + g, epoch);
    }
    copies.synchronize();
  }

  std::string check_group(std::size_t g) {
    const Size rows = case_.counts[g];
    std::vector<T> group;
    for (Size row = starts_[g]; row < starts_[g] + rows; ++row) {
      const Size from = case_.indexed ? index_[static_cast<std::size_t>(row)] : row;
      for (Size i = 0; i < case_.k; ++i)
        group.push_back(from < 0 ? convert<T>(0.0F) : a_[static_cast<std::size_t>(from * case_.k + i)]);
    }
    std::vector<float> want(static_cast<std::size_t>(rows * case_.n));
    in_threads({0, rows}, case_.n * case_.k / 4, [&](Range some) {
      host_gemm_tile(group.data() + some.begin * case_.k, case_.k, b_.data() + static_cast<Size>(g) * case_.n * case_.k,
                     case_.k, want.data() + some.begin * case_.n, case_.n, some.size(), case_.n, case_.k,
                     dtype_of<T>());
    });
    apply_epilogue(gemm_, {0, rows}, {0, case_.n}, want.data());
    std::vector<T> got(static_cast<std::size_t>(rows * columns_));
    world_.copy_out(got.data(), buffers_.c + starts_[g] * columns_ * Size{sizeof(T)},
                    static_cast<Size>(got.size() * sizeof(T)));
    for (std::size_t i = 0; i < got.size(); ++i) {
      const auto expected = convert<float>(convert<T>(want[i]));
      if (!is_right(convert<float>(got[i]), expected))
        return fmt::format("group {} row {} column {}: {} instead of {}", g, static_cast<Size>(i) / columns_,
                           static_cast<Size>(i) % columns_, convert<float>(got[i]), expected);
    }
    return "";
  }
  /// Exact but for what an approximated exponential changes before the result is rounded.
  bool is_right(float got, float want) const {
    if (got == want) return true;
    if (!is_gated(case_.activation)) return false;
    return std::abs(got - want) <= 2 * static_cast<float>(rounding_unit(gemm_.out_type)) * std::abs(want) + 4e-6F;
  }

  /// The bytes behind C, and the tiles of each chunk of columns.
  std::string check_rest() {
    std::vector<unsigned char> behind(4096);
    world_.copy_out(behind.data(), buffers_.c + m_ * columns_ * Size{sizeof(T)}, 4096);
    for (const unsigned char byte : behind)
      if (byte != 0xFF) return "it wrote behind C";
    std::vector<Signal> tiles(static_cast<std::size_t>(case_.column_chunks));
    world_.copy_out(tiles.data(), buffers_.tiles.local(), static_cast<Size>(tiles.size() * sizeof(Signal)));
    const Size columns = ceil_div(case_.n, 256);
    const Size of_chunk = ceil_div(columns, case_.column_chunks);
    for (int i = 0; i < case_.column_chunks; ++i) {
      const Size want = max(0, min(of_chunk, columns - i * of_chunk)) * panels_;
      if (static_cast<Size>(tiles[static_cast<std::size_t>(i)].value) != want)
        return fmt::format("chunk {}: {} tiles, {} expected", i, tiles[static_cast<std::size_t>(i)].value, want);
    }
    return "";
  }

  World& world_;
  Stream& stream_;
  Buffers& buffers_;
  Case case_;
  std::unique_ptr<GroupPanels> table_;
  Gemm gemm_;
  std::vector<std::int32_t> starts_, index_;
  std::vector<T> a_, b_;
  Size m_ = 0, panels_ = 0, rows_of_a_ = 0, columns_ = 0;
};

template <class T>
void check_type(World& world, Stream& stream, Stream& copies, Buffers& buffers, int rounds) {
  const std::vector<std::int32_t> ragged{0, 1, 127, 128, 129, 0, 700, 5};
  const auto check = [&](const Case& c) { report(describe(c), Check<T>(world, stream, buffers, c).run(nullptr, 1)); };
  for (const bool indexed : {false, true}) {
    check({.counts = ragged, .n = 520, .k = 264, .indexed = indexed});
    check({.counts = ragged, .n = 1536, .k = 1032, .indexed = indexed, .column_chunks = 3, .together = 2, .sms = 6});
    check({.counts = {0, 0, 2000, 0}, .n = 264, .k = 64, .indexed = indexed, .activation = Activation::kRelu});
    check({.counts = {0, 0}, .n = 256, .k = 64, .indexed = indexed});
    check({.counts = {300, 0, 256, 1}, .n = 1032, .k = 128, .most_rows = 384, .indexed = indexed, .column_chunks = 2});
    for (const Activation activation : {Activation::kSwiGlu, Activation::kGeGlu}) {
      check({.counts = ragged, .n = 528, .k = 264, .indexed = indexed, .activation = activation});
      check({.counts = {129, 0, 2000},
             .n = 1536,
             .k = 1032,
             .indexed = indexed,
             .column_chunks = 3,
             .together = 2,
             .sms = 6,
             .activation = activation});
    }
  }
  Case gated{.counts = ragged, .n = 520, .k = 264, .gated = true, .column_chunks = 2};
  Case swiglu = gated;
  swiglu.n = 528;
  swiglu.activation = Activation::kSwiGlu;
  Check<T> late(world, stream, buffers, gated), late_swiglu(world, stream, buffers, swiglu);
  for (int round = 0; round < rounds; ++round) {
    report("rows arrive: " + describe(gated), late.run(&copies, late_rounds++));
    report("rows arrive: " + describe(swiglu), late_swiglu.run(&copies, late_rounds++));
  }
}

int run(int rounds) {
  if (cuda_devices() == 0) {
    std::printf("no GPU\n");
    return 2;
  }
  CudaOptions options;
  options.heap_bytes = Size{1} << 30;
  CudaThreads threads(1, options);
  threads.run([&](World& world) {
    Stream stream = world.make_stream("main");
    Stream copies = world.make_stream("copies");
    Buffers buffers(world);
    check_type<bf16>(world, stream, copies, buffers, rounds);
    check_type<f16>(world, stream, copies, buffers, rounds);
  });
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace

}  // namespace tandem::test

int main(int argc, char** argv) {
  try {
    return tandem::test::run(argc > 1 ? std::atoi(argv[1]) : 10);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "grouped_gemm_gpu_check: %s\n", error.what());
    return 1;
  }
}
