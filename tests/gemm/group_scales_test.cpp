// Grouped GEMMs of fp8 values with scales, on the simulator and on CPUs, bit for bit against their definition.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "gemm/contract/activation.h"
#include "support/host_pes.h"
#include "tandem/error.h"
#include "tandem/layer/group_panels.h"
#include "tandem/machine.h"
#include "tandem/simulation.h"

namespace tandem::group_scales_test {
namespace {

constexpr int kTileM = 8;

enum class Form { kNone, kOfGroups, kOfRows, kBlocks };

struct Case {
  Form form = Form::kBlocks;
  Activation activation = Activation::kNone;
  bool quantised = false, indexed = false, dense = false;
  BLayout layout = BLayout::kNxK;
  Size n = 144, k = 300;
  int tile_n = 48;
  std::vector<std::int32_t> counts = {0, 1, kTileM - 1, kTileM, kTileM + 1, 20};
};

std::size_t at(Size i) { return static_cast<std::size_t>(i); }

template <class T>
T* on_device(World& world, const std::vector<T>& values, const char* name) {
  T* const memory = world.heap().allocate_local<T>(std::max<Size>(1, static_cast<Size>(values.size())), name);
  world.copy_in(memory, values.data(), static_cast<Size>(values.size() * sizeof(T)));
  return memory;
}

template <class T>
std::vector<T> copied(World& world, const void* from, Size count) {
  std::vector<T> values(at(count));
  world.copy_out(values.data(), from, count * Size{sizeof(T)});
  return values;
}

/// Small integers, whose sums are exact in f32.
std::vector<fp8_e4m3> integers(Size count, Size step) {
  std::vector<fp8_e4m3> values;
  for (Size i = 0; i < count; ++i) values.push_back(convert<fp8_e4m3>(static_cast<float>(i * step % 7 - 3)));
  return values;
}
std::vector<float> scales(Size count, float least) {
  std::vector<float> values;
  for (Size i = 0; i < count; ++i) values.push_back(least + 0.013F * static_cast<float>(i * 11 % 37));
  return values;
}

/// One PE's grouped GEMM, and what its definition gives.
class Scaled {
 public:
  Scaled(World& world, const Case& c) : world_(world), case_(c), groups_(static_cast<Size>(c.counts.size())) {
    for (const std::int32_t count : c.counts) {
      starts_.push_back(static_cast<std::int32_t>(gemm_.m));
      gemm_.m += round_up(count, kTileM);
    }
    rows_of_a_ = c.indexed ? 13 : gemm_.m;
    a_ = integers(rows_of_a_ * c.k, 5);
    b_ = integers(groups_ * c.n * c.k, 3);
    steps_ = (c.k + 127) / 128;
    blocks_ = is_gated(c.activation) ? (c.n + 255) / 256 * 2 : (c.n + 127) / 128;
    if (c.form == Form::kOfGroups) a_scales_ = scales(1, 0.7F), b_scales_ = scales(groups_, 0.3F);
    if (c.form == Form::kOfRows) a_scales_ = scales(rows_of_a_, 0.7F), b_scales_ = scales(groups_ * c.n, 0.3F);
    if (c.form == Form::kBlocks)
      a_scales_ = scales(rows_of_a_ * steps_, 0.7F), b_scales_ = scales(groups_ * blocks_ * steps_, 0.3F);
    for (Size row = 0; row < gemm_.m; ++row) index_.push_back(static_cast<std::int32_t>(row * 5 % 14 - 1));
    make_gemm();
  }

  Gemm& gemm() { return gemm_; }

  void run() {
    Stream stream = world_.make_stream("main");
    if (case_.dense) {
      gemm_.groups = {};
      stream.gemm(gemm_, world_.team());
      return stream.synchronize();
    }
    const auto panels =
        make_group_panels(world_, {.groups = static_cast<int>(groups_), .tile_m = kTileM, .most_panels = 64});
    gemm_.groups.panels = panels->groups().panels;
    gemm_.groups.panel_count = panels->groups().panel_count;
    panels->make(stream, on_device(world_, case_.counts, "counts"), on_device(world_, starts_, "starts"));
    stream.gemm(gemm_, world_.team());
    stream.synchronize();
  }

  void expect_right() {
    const Size columns = columns_after(case_.activation, case_.n);
    const Size of_row = (columns + 127) / 128;
    const auto values = copied<float>(world_, gemm_.destination.c(), case_.quantised ? 0 : gemm_.m * columns);
    const auto small = copied<fp8_e4m3>(world_, gemm_.destination.c(), case_.quantised ? gemm_.m * columns : 0);
    const auto out = copied<float>(world_, gemm_.scales.out, case_.quantised ? gemm_.m * of_row : 0);
    for (Size g = 0; g < groups_; ++g)
      for (Size row = starts_[at(g)]; row < starts_[at(g)] + case_.counts[at(g)]; ++row) {
        const std::vector<float> want = row_of_c(g, row, columns);
        for (Size first = 0; first < columns; first += 128) {
          float greatest = 0;
          for (Size col = first; col < std::min(first + 128, columns); ++col)
            greatest = std::max(greatest, std::fabs(want[at(col)]));
          const float scale = greatest < 1e-30F ? 1 : greatest / 448;
          if (case_.quantised) {
            ASSERT_EQ(out[at(row * of_row + first / 128)], scale) << "group " << g << " row " << row;
          }
          for (Size col = first; col < std::min(first + 128, columns); ++col) {
            const Size i = row * columns + col;
            const float found = case_.quantised ? convert<float>(small[at(i)]) : values[at(i)];
            const float right =
                case_.quantised ? convert<float>(convert<fp8_e4m3>(want[at(col)] * (1 / scale))) : want[at(col)];
            ASSERT_EQ(found, right) << "group " << g << " row " << row << " column " << col;
          }
        }
      }
  }

 private:
  void make_gemm() {
    gemm_.n = case_.n;
    gemm_.k = case_.k;
    gemm_.type = DType::kE4M3;
    gemm_.out_type = case_.quantised ? DType::kE4M3 : DType::kF32;
    gemm_.tile_m = kTileM;
    gemm_.tile_n = case_.tile_n;
    gemm_.a = on_device(world_, a_, "a");
    gemm_.b = on_device(world_, b_, "b");
    gemm_.b_layout = case_.layout;
    gemm_.activation = case_.activation;
    const Size columns = columns_after(case_.activation, case_.n);
    gemm_.destination = GemmLocal{on_device(world_, std::vector<float>(at(gemm_.m * columns)), "c")};
    if (case_.form != Form::kNone) {
      gemm_.scales.a = on_device(world_, a_scales_, "scales of a");
      gemm_.scales.b = on_device(world_, b_scales_, "scales of b");
    }
    gemm_.scales.a_per_row = gemm_.scales.b_per_column = case_.form == Form::kOfRows;
    gemm_.scales.blocks = case_.form == Form::kBlocks;
    if (case_.quantised)
      gemm_.scales.out = on_device(world_, std::vector<float>(at(gemm_.m * ((columns + 127) / 128))), "scales of c");
    gemm_.groups.count = static_cast<int>(groups_);
    gemm_.groups.most_panels = 64;
    if (!case_.indexed) return;
    gemm_.groups.a_rows = on_device(world_, index_, "index");
    gemm_.groups.rows_of_a = rows_of_a_;
  }

  float element_of_b(Size group, Size col, Size i) const {
    const Size place = case_.layout == BLayout::kNxK ? col * case_.k + i : i * case_.n + col;
    return convert<float>(b_[at(group * case_.n * case_.k + place)]);
  }
  float scale_of_b(Size group, Size col, Size step) const {
    switch (case_.form) {
      case Form::kNone:
        return 1;
      case Form::kOfGroups:
        return b_scales_[at(group)];
      case Form::kOfRows:
        return b_scales_[at(group * case_.n + col)];
      case Form::kBlocks:
        break;
    }
    // Gates and ups take turns of 8 columns, and their blocks follow each other.
    const Size block = is_gated(case_.activation) ? col / 256 * 2 + col / 8 % 2 : col / 128;
    return b_scales_[at((group * blocks_ + block) * steps_ + step)];
  }
  float scale_of_a(Size row, Size step) const {
    if (case_.form == Form::kNone) return 1;
    return a_scales_[at(case_.form == Form::kBlocks ? row * steps_ + step : (case_.form == Form::kOfRows ? row : 0))];
  }

  float sum(Size group, Size row, Size col) const {
    const Size of_a = case_.indexed ? index_[at(row)] : row;
    if (of_a < 0) return 0;
    float whole = 0;
    float scaled = 0;
    for (Size step = 0; step < steps_; ++step) {
      float product = 0;
      for (Size i = step * 128; i < std::min(step * 128 + 128, case_.k); ++i)
        product += convert<float>(a_[at(of_a * case_.k + i)]) * element_of_b(group, col, i);
      whole += product;
      scaled = std::fma(product, scale_of_a(of_a, step) * scale_of_b(group, col, step), scaled);
    }
    return case_.form == Form::kBlocks ? scaled : whole * (scale_of_a(of_a, 0) * scale_of_b(group, col, 0));
  }
  std::vector<float> row_of_c(Size group, Size row, Size columns) const {
    std::vector<float> values;
    for (Size col = 0; col < columns; ++col) {
      const Size gate = column_of_gate(col);
      values.push_back(is_gated(case_.activation)
                           ? gated(case_.activation, sum(group, row, gate), sum(group, row, gate + 8))
                           : activate(case_.activation, sum(group, row, col)));
    }
    return values;
  }

  World& world_;
  Case case_;
  Size groups_, rows_of_a_ = 0, steps_ = 0, blocks_ = 0;
  Gemm gemm_;
  std::vector<std::int32_t> starts_, index_;
  std::vector<fp8_e4m3> a_, b_;
  std::vector<float> a_scales_, b_scales_;
};

void expect_right(const Case& c) {
  const auto program = [&](World& world) {
    Scaled scaled(world, c);
    scaled.run();
    scaled.expect_right();
  };
  Simulation(load_machine("h200x8"), 1, {}).run(program);
  test::HostPes(1, {.threads = 3}).run(program);
}

TEST(GroupScales, OfGroupsRowsAndBlocks) {
  for (const Form form : {Form::kNone, Form::kOfGroups, Form::kOfRows, Form::kBlocks}) {
    expect_right({.form = form});
    expect_right({.form = form, .activation = Activation::kSwiGlu, .n = 272, .k = 129});
  }
  expect_right({.indexed = true, .layout = BLayout::kKxN, .k = 128});
  expect_right({.form = Form::kOfRows, .indexed = true});
  expect_right({.counts = {0, 0}});
}

/// Without groups, as one product of all rows.
TEST(GroupScales, OfOneProduct) {
  expect_right({.dense = true, .counts = {20}});
  expect_right(
      {.activation = Activation::kSwiGlu, .quantised = true, .dense = true, .n = 256, .tile_n = 256, .counts = {9}});
}

TEST(GroupScales, OfBlocksOfC) {
  expect_right({.quantised = true, .n = 160, .tile_n = 128});
  expect_right({.activation = Activation::kSwiGlu, .quantised = true, .n = 272, .tile_n = 256});
  expect_right({.form = Form::kOfRows,
                .activation = Activation::kGeGlu,
                .quantised = true,
                .indexed = true,
                .n = 256,
                .tile_n = 256});
}

TEST(GroupScalesErrors, EveryField) {
  struct Wrong {
    const char* what;
    std::function<void(Gemm&)> spoil;
  };
  const Wrong wrongs[] = {
      {"scales.blocks is set and scales.a null, allowed: both", [](Gemm& g) { g.scales.a = nullptr; }},
      {"scales.blocks is set and scales.b null, allowed: both", [](Gemm& g) { g.scales.b = nullptr; }},
      {"scales.a_per_row is set, allowed: not with scales.blocks", [](Gemm& g) { g.scales.a_per_row = true; }},
      {"scales.b_per_column is set, allowed: not with scales.blocks", [](Gemm& g) { g.scales.b_per_column = true; }},
      {"fast_accumulation is set, allowed: not with scales.blocks", [](Gemm& g) { g.fast_accumulation = true; }},
      {"fast_accumulation is set with type bf16, allowed: fp8_e4m3",
       [](Gemm& g) {
         g.type = DType::kBF16;
         g.fast_accumulation = true;
       }},
      {"out_type is f32, allowed: fp8_e4m3 with scales.out", [](Gemm& g) { g.out_type = DType::kF32; }},
      {"scales.c is set, allowed: not with scales.out", [](Gemm& g) { g.scales.c = g.scales.a; }},
      {"tile_n is 64, allowed with scales.out: multiples of 128", [](Gemm& g) { g.tile_n = 64; }},
      {"tile_n is 128, allowed with scales.out: multiples of 256", [](Gemm& g) { g.activation = Activation::kSwiGlu; }},
      {"scales.out is", [](Gemm& g) { g.scales.out += 30; }},
      {"scales.b is", [](Gemm& g) { g.scales.b += 1; }},
  };
  for (const Wrong& wrong : wrongs) {
    std::string message = "nothing";
    try {
      Simulation(load_machine("h200x8"), 1, {}).run([&](World& world) {
        Scaled scaled(world, {.quantised = true, .tile_n = 128});
        wrong.spoil(scaled.gemm());
        scaled.run();
      });
    } catch (const Error& error) {
      message = error.what();
    }
    EXPECT_THAT(message, testing::HasSubstr(wrong.what));
  }
}

}  // namespace
}  // namespace tandem::group_scales_test
