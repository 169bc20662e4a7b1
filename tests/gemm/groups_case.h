#pragma once
/// A grouped GEMM on one PE, by the simulator or on CPUs, and its comparison with sums by definition.

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gemm/contract/activation.h"
#include "support/host_pes.h"
#include "tandem/advanced/gemm_order.h"
#include "tandem/layer/group_panels.h"
#include "tandem/machine.h"
#include "tandem/simulation.h"

namespace tandem::test {

constexpr int kTileM = 8, kTileN = 16;

/// Small integers: sums of their products are exact in f32.
inline float element(int matrix, Size row, Size col) {
  return static_cast<float>((row * 7 + col * 3 + matrix * 5) % 7 - 3);
}

struct Case {
  std::vector<std::int32_t> counts = {0, 1, kTileM - 1, kTileM, kTileM + 1, 0, 5 * kTileM + 3};
  Size n = 50, k = 23;
  DType type = DType::kBF16;
  BLayout layout = BLayout::kNxK;
  Size most_rows = 0;  ///< of each group; 0: groups behind one another
  bool indexed = false;
  bool gated = false;
  int column_chunks = 1;
  int together = 2;
  Activation activation = Activation::kNone;
  int room = 64;  ///< most_panels
};

template <class T>
T* on_device(World& world, const std::vector<T>& values, const char* name) {
  T* const memory = world.heap().allocate_local<T>(std::max<Size>(1, static_cast<Size>(values.size())), name);
  world.copy_in(memory, values.data(), static_cast<Size>(values.size() * sizeof(T)));
  return memory;
}

/// One PE's grouped GEMM.
template <class T>
class Groups {
 public:
  Groups(World& world, const Case& c)
      : world_(world), case_(c), stream_(world.make_stream("main")), copies_(world.make_stream("copies")) {
    std::int32_t row = 0;
    for (const std::int32_t count : c.counts) {
      starts_.push_back(row);
      row += static_cast<std::int32_t>(c.most_rows > 0 ? c.most_rows : round_up(count, kTileM));
    }
    m_ = row;
    rows_of_a_ = c.indexed ? 11 : m_;
    const int groups = static_cast<int>(c.counts.size());
    panels_ = make_group_panels(world, {.groups = groups,
                                        .tile_m = kTileM,
                                        .most_panels = c.room,
                                        .together = c.together,
                                        .most_rows = c.most_rows,
                                        .words = c.gated ? 1 : 0});
    make_gemm(groups);
  }

  void run() {
    const std::int32_t* const counts = on_device(world_, case_.counts, "counts");
    panels_->make(stream_, counts, case_.most_rows > 0 ? nullptr : on_device(world_, starts_, "starts"));
    stream_.gemm(gemm_, world_.team());
    if (case_.gated) send_rows();
    for (int i = 0; has_room() && i < case_.column_chunks; ++i) stream_.wait_signal(words_.local() + i, tiles_of(i));
    stream_.synchronize();
  }

  std::string problem() {
    const Size columns = columns_after(case_.activation, case_.n);
    std::vector<T> got(static_cast<std::size_t>(m_ * columns));
    world_.copy_out(got.data(), gemm_.destination.c(), static_cast<Size>(got.size() * sizeof(T)));
    for (std::size_t g = 0; g < case_.counts.size(); ++g)
      for (Size row = starts_[g]; row < starts_[g] + case_.counts[g]; ++row)
        for (Size col = 0; col < columns; ++col) {
          const auto found = convert<float>(got[static_cast<std::size_t>(row * columns + col)]);
          const auto want = convert<float>(convert<T>(expected(static_cast<int>(g), row, col)));
          if (found != want)
            return fmt::format("group {} row {} column {}: {} instead of {}", g, row, col, found, want);
        }
    return check_chunks();
  }

  Gemm& gemm() { return gemm_; }
  Stream& stream() { return stream_; }

 private:
  void make_gemm(int groups) {
    std::vector<T> b;
    const bool rows_of_b = case_.layout == BLayout::kNxK;
    for (int g = 0; g < groups; ++g)
      for (Size i = 0; i < (rows_of_b ? case_.n : case_.k); ++i)
        for (Size j = 0; j < (rows_of_b ? case_.k : case_.n); ++j)
          b.push_back(convert<T>(rows_of_b ? element(g + 1, i, j) : element(g + 1, j, i)));
    for (Size i = 0; i < rows_of_a_; ++i)
      for (Size j = 0; j < case_.k; ++j) a_values_.push_back(convert<T>(element(0, i, j)));
    a_ = on_device(world_, case_.gated ? std::vector<T>(a_values_.size()) : a_values_, "a");
    gemm_.m = m_;
    gemm_.n = case_.n;
    gemm_.k = case_.k;
    gemm_.type = gemm_.out_type = case_.type;
    gemm_.tile_m = kTileM;
    gemm_.tile_n = kTileN;
    gemm_.a = a_;
    gemm_.b = on_device(world_, b, "b");
    gemm_.b_layout = case_.layout;
    const Size columns = columns_after(case_.activation, case_.n);
    T* const c = on_device(world_, std::vector<T>(static_cast<std::size_t>(m_ * columns)), "c");
    gemm_.activation = case_.activation;
    gemm_.groups = panels_->groups();
    gemm_.groups.column_chunks = case_.column_chunks;
    words_ = world_.heap().signals(case_.column_chunks, "tiles");
    gemm_.destination = GemmLocal{c, {words_, true}};
    arrived_ = world_.heap().signals(groups, "arrived");
    if (case_.gated) gemm_.gate = {arrived_.local(), on_device(world_, std::vector<Epoch>{1}, "epoch"), 1};
    if (!case_.indexed) return;
    for (Size row = 0; row < m_; ++row) index_.push_back(static_cast<std::int32_t>(row * 5 % (rows_of_a_ + 1) - 1));
    gemm_.groups.a_rows = on_device(world_, index_, "index");
    gemm_.groups.rows_of_a = rows_of_a_;
  }

  /// The rows of A, group by group, while the GEMM runs.
  void send_rows() {
    const T* const source = on_device(world_, a_values_, "source");
    for (std::size_t g = 0; g < case_.counts.size(); ++g) {
      const Size begin = starts_[g] * case_.k;
      if (case_.counts[g] > 0)
        copies_.copy_async(a_ + begin, source + begin, case_.counts[g] * case_.k * Size{sizeof(T)});
      copies_.write_signal(arrived_.local() + g, 1);
    }
    copies_.synchronize();
  }

  float expected(int group, Size row, Size col) const {
    if (!is_gated(case_.activation)) return activate(case_.activation, sum(group, row, col));
    const Size gate = column_of_gate(col);
    return gated(case_.activation, sum(group, row, gate), sum(group, row, gate + kGateGroup));
  }
  float sum(int group, Size row, Size col) const {
    const Size of_a = case_.indexed ? index_[static_cast<std::size_t>(row)] : row;
    float sum = 0;
    for (Size i = 0; of_a >= 0 && i < case_.k; ++i) sum += element(0, of_a, i) * element(group + 1, col, i);
    return sum;
  }

  Size panels() const {
    Size panels = 0;
    for (const Size count : case_.counts)
      panels += ceil_div(case_.most_rows > 0 ? min(count, case_.most_rows) : count, kTileM);
    return panels;
  }
  bool has_room() const { return panels() <= case_.room; }
  /// Returns the tiles of a chunk of columns.
  Epoch tiles_of(int chunk) const {
    const Size columns = ceil_div(case_.n, kTileN);
    const Size of_chunk = ceil_div(columns, case_.column_chunks);
    return static_cast<Epoch>(max(0, min(of_chunk, columns - chunk * of_chunk)) * panels());
  }
  std::string check_chunks() {
    std::vector<Signal> tiles(static_cast<std::size_t>(case_.column_chunks));
    world_.copy_out(tiles.data(), words_.local(), static_cast<Size>(tiles.size() * sizeof(Signal)));
    for (int i = 0; i < case_.column_chunks; ++i)
      if (const Epoch found = tiles[static_cast<std::size_t>(i)].value; found != tiles_of(i))
        return fmt::format("chunk {}: {} tiles, {} expected", i, found, tiles_of(i));
    return "";
  }

  World& world_;
  Case case_;
  Stream stream_, copies_;
  std::unique_ptr<GroupPanels> panels_;
  Gemm gemm_;
  std::vector<std::int32_t> starts_, index_;
  std::vector<T> a_values_;
  T* a_ = nullptr;
  Signals words_, arrived_;
  Size m_ = 0, rows_of_a_ = 0;
};

enum class Backend { kSimulator, kHost };

inline void on(Backend backend, const std::function<void(World&)>& program) {
  if (backend == Backend::kSimulator)
    Simulation(load_machine("h200x8"), 1, {}).run(program);
  else
    HostPes(1, {.threads = 3}).run(program);
}

}  // namespace tandem::test
