#pragma once
/// One case of an overlapped operator on one PE of a GPU world. Runs and replays have changing data, rows and delays.
/// Data are small integers, so that every element must be exact. Runs with fractions must give the same bits each time.

#include <cmath>
#include <map>
#include <mutex>
#include <sstream>

#include "operators/operator_case.h"
#include "support/replay.h"

namespace tandem::test {

inline constexpr int kOperatorData = 3;  // sets of inputs
inline constexpr Size kOperatorBytes = Size{64} << 20;

inline std::string describe(const OperatorCase& c) {
  std::ostringstream text;
  text << c << " tile_n=" << c.options.tile_n;
  if (c.options.reduction) text << (c.options.reduction == Reduction::kChain ? " chain" : " owner");
  text << (c.fewer_rows ? " fewer rows" : "") << (c.options.ns.empty() ? "" : " several B");
  return text.str();
}

/// Returns the expected result of all runs, which is the same for all cases of a shape.
inline const std::vector<std::vector<double>>& expected(const OperatorOptions& o) {
  static std::map<std::tuple<Size, Size, Size>, std::vector<std::vector<double>>> known;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  auto& found = known[{o.m, o.n, o.k}];
  if (found.empty()) found = reference(o, kOperatorData);
  return found;
}

/// Everything that one PE needs for any case.
struct OperatorMemory {
  Size bytes;  ///< of each matrix
  std::byte *a, *b, *c, *idle;
  explicit OperatorMemory(World& world, Size of_each = kOperatorBytes)
      : bytes(of_each),
        a(world.heap().allocate_local<std::byte>(bytes, "a")),
        b(world.heap().allocate_local<std::byte>(bytes, "b")),
        c(world.heap().allocate_local<std::byte>(bytes, "c")),
        idle(world.heap().allocate_local<std::byte>(2 * bytes, "idle")) {}
};

template <class T>
class OperatorRounds {
 public:
  OperatorRounds(World& world, Stream& stream, const OperatorMemory& memory, const OperatorCase& c)
      : world_(world), stream_(stream), memory_(memory), case_(c), plan_(make_operator(world, c.op, c.options)) {
    Size first = 0;
    for (const Size n : c.options.ns.empty() ? std::vector{c.options.n} : c.options.ns) {
      const Range all{first, first + n};
      columns_.push_back(c.op == Operator::kAllGatherGemm ? split(all, world.num_pes())[world.pe()] : all);
      first += n;
    }
  }

  /// How many elements are wrong in runs, and in `replays` of graphs, one for each number of rows.
  Size run(int replays, const Capture& capture = nullptr) {
    Size wrong = 0;
    for (int i = 0; i < kOperatorData; ++i) wrong += round(i, rows(i), 1, [&] { enqueue(rows(i)); });
    if (replays == 0) return wrong;
    std::vector<std::unique_ptr<Replay>> graphs;
    for (int i = 0; i < kOperatorData; ++i) graphs.push_back(capture(stream_, [&] { enqueue(rows(i)); }));
    world_.barrier();  // making a graph may wait for the kernels of other PEs on the same GPU
    for (int i = 0; i < replays; ++i) {
      const int which = i % 5 % kOperatorData;  // no cycle of the data's length
      wrong += round(i, rows(which), 1, [&] { graphs[static_cast<std::size_t>(which)]->launch(); });
    }
    return wrong;
  }

  /// How many bytes differ between `runs` runs of the same fractions; gemm_all_reduce: also between the PEs' results.
  Size differing_bits(int runs, const std::function<bool(std::uint64_t)>& same_on_all) {
    std::vector<T> first;
    Size differing = 0;
    for (int i = 0; i < runs; ++i) {
      std::vector<T> got = result_of(0, case_.options.m, 1.0F / 7, i, [&] { enqueue(case_.options.m); });
      if (i == 0) first = got;
      const auto* const x = reinterpret_cast<const std::byte*>(first.data());
      const auto* const y = reinterpret_cast<const std::byte*>(got.data());
      for (std::size_t byte = 0; byte < got.size() * sizeof(T); ++byte) differing += x[byte] != y[byte];
    }
    if (case_.op == Operator::kGemmAllReduce) {
      std::uint64_t hash = 0;
      for (const T value : first) hash = hash * 1000003 + std::hash<float>{}(convert<float>(value));
      differing += same_on_all(hash) ? 0 : 1;
    }
    return differing;
  }

 private:
  /// Returns the rows of the i-th run: all, one, an odd number.
  Size rows(int i) const {
    const Size m = case_.options.m;
    if (!case_.fewer_rows || i % kOperatorData == 0) return m;
    return i % kOperatorData == 1 ? 1 : m * 2 / 3 | 1;
  }

  Range of_c(Size m) const {
    return case_.op == Operator::kGemmReduceScatter ? split(m, world_.num_pes())[world_.pe()] : Range{0, m};
  }

  /// Rounds sums of deep products. Sums of few steps are exact.
  static float rounded(double sum) { return convert<float>(convert<T>(static_cast<float>(sum))); }

  /// Matrices lie behind one another, each at a multiple of 256 bytes.
  static Size bytes_of(Size elements) { return ceil_div(elements * Size{sizeof(T)}, 256) * 256; }

  void enqueue(Size m) {
    std::vector<const void*> b;
    std::vector<void*> c;
    const std::byte* next_b = memory_.b;
    std::byte* next_c = memory_.c;
    const Shards shards(case_.op, case_.options, world_.pe(), world_.num_pes());
    for (const Range& columns : columns_) {
      b.push_back(next_b);
      c.push_back(next_c);
      next_b += bytes_of(columns.size() * shards.b_cols.size());
      next_c += bytes_of(of_c(case_.options.m).size() * columns.size());
    }
    plan_->run(stream_, {m, memory_.a, b, c});
  }

  /// Wrong elements of one run.
  template <class Go>
  Size round(int number, Size m, float scale, const Go& go) {
    const int data = number % kOperatorData;
    const std::vector<T> got = result_of(data, m, scale, number, go);
    const std::vector<double>& want = expected(case_.options)[static_cast<std::size_t>(data)];
    const Range c_rows = of_c(m);
    Size wrong = 0;
    const T* at = got.data();
    for (const Range& columns : columns_) {
      wrong += count_in_threads(c_rows, columns.size(), [&](Range rows) {
        const T* is = at + (rows.begin - c_rows.begin) * columns.size();
        Size found = 0;
        for (Size i = rows.begin; i < rows.end; ++i)
          for (Size j = columns.begin; j < columns.end; ++j)
            found += convert<float>(*is++) != rounded(want[static_cast<std::size_t>(i * case_.options.n + j)]);
        return found;
      });
      at += c_rows.size() * columns.size();
      // The memory after the rows of this run stays unchanged.
      const Size behind = (of_c(case_.options.m).size() - c_rows.size()) * columns.size();
      for (Size i = 0; i < behind; ++i) wrong += convert<float>(*at++) != 77.0F;
    }
    return wrong;
  }

  /// The result of one run that some PEs begin late: all matrices in turn, with the plan's rows.
  template <class Go>
  std::vector<T> result_of(int data, Size m, float scale, int number, const Go& go) {
    OperatorOptions now = case_.options;
    now.m = m;
    const Shards shards(case_.op, now, world_.pe(), world_.num_pes());
    copy_in(memory_.a, 0, data, shards.a_rows, shards.a_cols, scale);
    std::byte* next_b = memory_.b;
    std::byte* next_c = memory_.c;
    for (const Range& columns : columns_) {
      copy_in(next_b, 1, data, columns, shards.b_cols, scale);
      const Size count = of_c(case_.options.m).size() * columns.size();
      const std::vector<T> before(static_cast<std::size_t>(count), convert<T>(77.0F));
      world_.copy_in(next_c, before.data(), count * Size{sizeof(T)});
      next_b += bytes_of(columns.size() * shards.b_cols.size());
      next_c += bytes_of(count);
    }
    for (int i = (number * 3 + world_.pe()) % world_.num_pes(); i > 0; --i)
      for (int j = 0; j < number % 5; ++j)
        stream_.copy_async(memory_.idle, memory_.idle + memory_.bytes, memory_.bytes);
    go();
    stream_.synchronize();  // no barrier: peers may still be in this run when the inputs change
    std::vector<T> got;
    next_c = memory_.c;
    for (const Range& columns : columns_) {
      const Size count = of_c(case_.options.m).size() * columns.size();
      const std::size_t begin = got.size();
      got.resize(begin + static_cast<std::size_t>(count));
      world_.copy_out(got.data() + begin, next_c, count * Size{sizeof(T)});
      next_c += bytes_of(count);
    }
    return got;
  }

  void copy_in(std::byte* to, int matrix, int data, Range rows, Range columns, float scale) {
    std::vector<T> values(static_cast<std::size_t>(rows.size() * columns.size()));
    fill(values.data(), data, matrix, rows, columns);
    if (scale != 1)
      for (T& value : values) value = convert<T>(convert<float>(value) * scale + scale / 3);
    world_.copy_in(to, values.data(), static_cast<Size>(values.size() * sizeof(T)));
  }

  World& world_;
  Stream& stream_;
  const OperatorMemory& memory_;
  const OperatorCase& case_;
  std::unique_ptr<OperatorPlan> plan_;
  std::vector<Range> columns_;  // of each B
};

}  // namespace tandem::test
