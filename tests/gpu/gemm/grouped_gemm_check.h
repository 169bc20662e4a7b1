#pragma once
// One grouped GEMM of the GPU check, and its comparison with sums by the host.

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "gemm/contract/activation.h"
#include "gemm/contract/epilogue.h"
#include "gemm/contract/scales.h"
#include "gemm/host/host_gemm.h"
#include "gemm/host/reference.h"
#include "gemm/host/scaled_tile.h"
#include "gpu/counted_check.h"
#include "gpu/gemm/grouped_gemm_case.h"
#include "support/in_threads.h"
#include "tandem/layer/group_panels.h"

namespace tandem::test {

/// The checks of the tiles for few rows.
void check_few_rows(World& world, Stream& stream, Stream& copies, Buffers& buffers, int rounds);

inline Epoch late_rounds = 1;  // words only grow

/// Reports what `problem_of` returns, or the error that it throws.
template <class Run>
void attempt(const std::string& what, const Run& problem_of) {
  try {
    count_check(what, problem_of());
  } catch (const std::exception& error) {
    count_check(what, error.what());
  }
}

/// T is the type of A and B, Out that of C. An fp8 C has scales of its blocks.
template <class T, class Out = T>
class Check {
  static constexpr bool kQuantised = sizeof(Out) == 1;

 public:
  Check(World& world, Stream& stream, Buffers& buffers, const Case& c)
      : world_(world), stream_(stream), buffers_(buffers), case_(c) {
    Size panels = 0;
    for (const std::int32_t count : c.counts) {
      starts_.push_back(static_cast<std::int32_t>(m_));
      m_ += c.most_rows > 0 ? c.most_rows : round_up(count, c.tile_m);
      panels += ceil_div(count, c.tile_m);
    }
    const int groups = static_cast<int>(c.counts.size());
    table_ = make_group_panels(world, {.groups = groups,
                                       .tile_m = c.tile_m,
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
    put(buffers_.a_scales, a_scales_);
    put(buffers_.b_scales, b_scales_);
    put(copies == nullptr ? buffers_.a : buffers_.source, a_);
    if (copies != nullptr) put(buffers_.a, std::vector<unsigned char>(a_.size() * sizeof(T), 0xFF));
    put(buffers_.c, std::vector<unsigned char>(static_cast<std::size_t>(m_ * columns_) * sizeof(Out) + 4096, 0xFF));
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
    if (sizeof(T) == 1 && case_.tile_n == 256 && !is_gated(case_.activation)) case_.tile_n = 192;
    gemm_.m = m_;
    gemm_.n = case_.n;
    gemm_.k = case_.k;
    gemm_.type = dtype_of<T>();
    gemm_.out_type = dtype_of<Out>();
    gemm_.tile_m = case_.tile_m;
    gemm_.tile_n = case_.tile_n;
    gemm_.sms = case_.sms;
    gemm_.a = buffers_.a;
    gemm_.b = buffers_.b;
    gemm_.activation = case_.activation;
    gemm_.groups = table_->groups();
    gemm_.groups.column_chunks = case_.column_chunks;
    gemm_.destination = GemmLocal{buffers_.c, {buffers_.tiles, true}};
    if (case_.gated) gemm_.gate = {buffers_.arrived.local(), buffers_.epoch, 1};
    if (case_.indexed) {
      gemm_.groups.a_rows = buffers_.index;
      gemm_.groups.rows_of_a = rows_of_a_;
      gemm_.groups.gathered = buffers_.source;
    }
    if (kQuantised) gemm_.scales.out = buffers_.c_scales;
    if (case_.scales == Scales::kNone) return;
    gemm_.scales.a = buffers_.a_scales;
    gemm_.scales.b = buffers_.b_scales;
    gemm_.scales.a_per_row = gemm_.scales.b_per_column = case_.scales == Scales::kOfRows;
    gemm_.scales.blocks = case_.scales == Scales::kOfBlocks;
    a_scales_ = scales(2, scales_of_a(gemm_));
    b_scales_ = scales(3, scales_of_b(gemm_));
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
    const Size of_row = gemm_.scales.of_row(case_.k);
    std::vector<T> group;
    std::vector<float> group_scales;
    for (Size row = starts_[g]; row < starts_[g] + rows; ++row) {
      const Size from = case_.indexed ? index_[static_cast<std::size_t>(row)] : row;
      for (Size i = 0; i < case_.k; ++i)
        group.push_back(from < 0 ? convert<T>(0.0F) : a_[static_cast<std::size_t>(from * case_.k + i)]);
      for (Size i = 0; i < of_row; ++i)
        group_scales.push_back(from < 0 ? 1 : a_scales_[static_cast<std::size_t>(from * of_row + i)]);
    }
    const Size blocks = scale_blocks(columns_);
    std::vector<float> want(static_cast<std::size_t>(rows * case_.n)), scales(static_cast<std::size_t>(rows * blocks));
    Gemm host = gemm_;
    host.groups.a_rows = nullptr;
    if (case_.scales != Scales::kNone) host.scales.a = group_scales.data(), host.scales.b = b_scales_.data();
    if (kQuantised) host.scales.out = scales.data();
    multiply(host, group, g, want.data());
    const std::vector<float> sums = want;
    apply_epilogue(host, {0, rows}, {0, case_.n}, want.data(), static_cast<int>(g));
    if (kQuantised) quantise_blocks(host, {0, rows}, {0, columns_}, want.data());
    std::vector<Out> got(static_cast<std::size_t>(rows * columns_));
    world_.copy_out(got.data(), buffers_.c + starts_[g] * columns_ * Size{sizeof(Out)},
                    static_cast<Size>(got.size() * sizeof(Out)));
    for (std::size_t i = 0; i < got.size(); ++i) {
      const auto expected = convert<float>(convert<Out>(want[i]));
      if (!is_right(convert<float>(got[i]), expected, of_approximation(sums, i)))
        return fmt::format("group {} row {} column {}: {} instead of {}", g, static_cast<Size>(i) / columns_,
                           static_cast<Size>(i) % columns_, convert<float>(got[i]), expected);
    }
    return kQuantised ? check_scales_of_c(g, scales) : "";
  }
  /// Computes the sums of a group.
  void multiply(const Gemm& host, const std::vector<T>& rows, std::size_t g, float* to) {
    const T* const b = b_.data() + static_cast<Size>(g) * case_.n * case_.k;
    in_threads({0, static_cast<Size>(rows.size()) / case_.k}, case_.n * case_.k / 4, [&](Range some) {
      const T* const from = rows.data() + some.begin * case_.k;
      float* const sums = to + some.begin * case_.n;
      if (case_.scales == Scales::kOfBlocks)
        multiply_scaled(host, reinterpret_cast<const std::byte*>(from), reinterpret_cast<const std::byte*>(b),
                        some.begin, some.size(), {0, case_.n}, static_cast<int>(g), sums);
      else
        host_gemm_tile(from, case_.k, b, case_.k, sums, case_.n, some.size(), case_.n, case_.k, dtype_of<T>());
    });
  }
  /// The relative error is that of an approximated exponential.
  std::string check_scales_of_c(std::size_t g, const std::vector<float>& want) {
    std::vector<float> got(want.size());
    world_.copy_out(got.data(), buffers_.c_scales + starts_[g] * scale_blocks(columns_),
                    static_cast<Size>(got.size() * sizeof(float)));
    for (std::size_t i = 0; i < got.size(); ++i)
      if (!(std::abs(got[i] - want[i]) <= 1e-5F * want[i]))
        return fmt::format("group {} scale {}: {} instead of {}", g, i, got[i], want[i]);
    return "";
  }
  /// Exact but for what an approximated exponential changes before the result is rounded. Values of an fp8 C may become
  /// a neighbour.
  bool is_right(float got, float want, float least) const {
    if (got == want) return true;
    if (!is_gated(case_.activation)) return false;
    return std::abs(got - want) <= 2 * static_cast<float>(rounding_unit(gemm_.out_type)) * std::abs(want) + least;
  }
  /// Returns how much an element of C may differ because of the approximation. The error function of a negative gate is
  /// near -1, so its last bit counts as a part of the gate, however small the result is.
  float of_approximation(const std::vector<float>& sums, std::size_t i) const {
    if (kQuantised) return 0x1p-9F;
    if (case_.activation != Activation::kGeGlu) return 4e-6F;
    const auto column = column_of_gate(static_cast<Size>(i) % columns_);
    const float* const gate = &sums[(i / static_cast<std::size_t>(columns_) * static_cast<std::size_t>(case_.n)) +
                                    static_cast<std::size_t>(column)];
    return 4e-6F + 0x1p-23F * std::abs(gate[0] * gate[kGateGroup]);
  }

  /// The bytes behind C, and the tiles of each chunk of columns.
  std::string check_rest() {
    std::vector<unsigned char> behind(4096);
    world_.copy_out(behind.data(), buffers_.c + m_ * columns_ * Size{sizeof(Out)}, 4096);
    for (const unsigned char byte : behind)
      if (byte != 0xFF) return "it wrote behind C";
    std::vector<Signal> tiles(static_cast<std::size_t>(case_.column_chunks));
    world_.copy_out(tiles.data(), buffers_.tiles.local(), static_cast<Size>(tiles.size() * sizeof(Signal)));
    const Size columns = ceil_div(case_.n, case_.tile_n);
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
  std::vector<float> a_scales_, b_scales_;
  Size m_ = 0, panels_ = 0, rows_of_a_ = 0, columns_ = 0;
};

}  // namespace tandem::test
