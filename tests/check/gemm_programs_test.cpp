// Inputs of a GEMM are not written while it runs.
#include "check/conformance.h"
#include "gemm/contract/skinny.h"
#include "tandem/advanced/gemm.h"
#include "tandem/layer/group_panels.h"

namespace tandem::check_test {

namespace {

constexpr Size kLength = 16;
constexpr Size kElements = kLength * kLength;

struct Operand {
  const char* name;
  void (*set)(Gemm& gemm, const float* values);
};

/// A copy overwrites the operand, beside the GEMM or after it.
void run(World& world, const Operand& operand, bool joins) {
  const std::vector<float> ones(kElements, 1);
  const auto matrix = [&](const char* name) {
    float* const memory = world.heap().allocate_local<float>(kElements, name);
    world.copy_in(memory, ones.data(), kElements * Size{sizeof(float)});
    return memory;
  };
  Gemm gemm;
  gemm.m = gemm.n = gemm.k = gemm.tile_m = gemm.tile_n = kLength;
  gemm.type = gemm.out_type = DType::kF32;
  gemm.a = matrix("a");
  gemm.b = matrix("b");
  gemm.destination = GemmLocal{matrix("c")};
  float* const values = matrix(operand.name);
  operand.set(gemm, values);
  Stream main = world.make_stream("main");
  Stream side = world.make_stream("side");
  main.gemm(gemm, world.team());
  if (joins) side.wait_for(main);
  side.copy_async(values, matrix("source"), Size{sizeof(float)});
  main.synchronize();
  side.synchronize();
}

/// Two GEMMs add up one row. With `starts_anew` the second one takes its call for the first one's.
void add_up(World& world, bool starts_anew) {
  constexpr Size kColumns = 7680, kDepth = 8;
  const SkinnyExchange exchange(kColumns, world.num_pes());
  Gemm gemm;
  gemm.m = 1;
  gemm.n = kColumns;
  gemm.k = kDepth;
  const auto matrix = [&](Size elements, const char* name) {
    bf16* const memory = world.heap().allocate_local<bf16>(elements, name);
    const std::vector<bf16> zeros(static_cast<std::size_t>(elements));
    world.copy_in(memory, zeros.data(), elements * Size{sizeof(bf16)});
    return memory;
  };
  gemm.a = matrix(kDepth, "a");
  gemm.b = matrix(kColumns * kDepth, "b");
  GemmSum sum;
  sum.c = matrix(kColumns, "c");
  sum.exchange = world.heap().allocate<std::byte>(exchange.bytes(1), "exchange");
  sum.arrived = world.heap().signals(exchange.words(1), "arrived");
  sum.calls = world.heap().epochs(exchange.tiles(1), "calls").words;
  gemm.destination = sum;
  Stream main = world.make_stream("main");
  main.gemm(gemm, world.team());
  if (starts_anew) sum.calls = world.heap().epochs(exchange.tiles(1), "calls again").words;
  gemm.destination = sum;
  main.gemm(gemm, world.team());
  main.synchronize();
}

/// Data on the device that a grouped GEMM reads, or the kernel that makes its table.
enum class Groups { kPanels, kCounts, kIndex };

/// One of these is made anew, beside its reader or before it.
void run_groups(World& world, Groups what, bool joins) {
  const auto panels = make_group_panels(world, {.groups = 2, .tile_m = 8, .most_panels = 4, .most_rows = 16});
  const auto numbers = [&](const char* name, const std::vector<std::int32_t>& values) {
    auto* const memory = world.heap().allocate_local<std::int32_t>(static_cast<Size>(values.size()), name);
    world.copy_in(memory, values.data(), static_cast<Size>(values.size() * sizeof(values[0])));
    return memory;
  };
  const auto zeros = [&](Size elements, const char* name) {
    const std::vector<float> values(static_cast<std::size_t>(elements));
    float* const memory = world.heap().allocate_local<float>(elements, name);
    world.copy_in(memory, values.data(), elements * Size{sizeof(float)});
    return memory;
  };
  Gemm gemm;
  gemm.m = 32;
  gemm.n = gemm.k = gemm.tile_n = kLength;
  gemm.tile_m = 8;
  gemm.type = gemm.out_type = DType::kF32;
  gemm.a = zeros(gemm.m * gemm.k, "a");
  gemm.b = zeros(2 * gemm.n * gemm.k, "b");
  gemm.destination = GemmLocal{zeros(gemm.m * gemm.n, "c")};
  gemm.groups = panels->groups();
  Stream main = world.make_stream("main");
  Stream side = world.make_stream("side");
  std::int32_t* const counts = numbers("counts", {9, 3});
  panels->make(main, counts);
  main.synchronize();
  const std::vector<std::int32_t> rows_of_a(static_cast<std::size_t>(gemm.m));
  std::int32_t* const index = numbers("index", rows_of_a);
  if (what == Groups::kIndex) {
    gemm.groups.a_rows = index;
    gemm.groups.rows_of_a = gemm.m;
  }
  if (what == Groups::kPanels) panels->make(side, counts);
  if (what == Groups::kCounts) side.copy_async(counts, numbers("other counts", {9, 3}), 8);
  if (what == Groups::kIndex) side.copy_async(index, numbers("other index", rows_of_a), gemm.m * 4);
  if (joins) main.wait_for(side);
  if (what == Groups::kCounts) panels->make(main, counts);
  main.gemm(gemm, world.team());
  main.synchronize();
  side.synchronize();
}

}  // namespace

void add_gemm_programs(Programs& programs) {
  const Operand operands[] = {
      {"A", [](Gemm& gemm, const float* values) { gemm.a = values; }},
      {"B", [](Gemm& gemm, const float* values) { gemm.b = values; }},
      {"bias", [](Gemm& gemm, const float* values) { gemm.bias = values; }},
      {"scale of A", [](Gemm& gemm, const float* values) { gemm.scales.a = values; }},
      {"scales of B", [](Gemm& gemm, const float* values) { gemm.scales.b = values, gemm.scales.b_per_column = true; }},
      {"scale of C", [](Gemm& gemm, const float* values) { gemm.scales.c = values; }},
  };
  for (const Operand& operand : operands)
    for (const bool joins : {false, true})
      programs.host(
          std::string("a GEMM's ") + operand.name + (joins ? ", copied over after it" : ", copied over beside it"),
          !joins, [operand, joins](World& world, const Env&) { run(world, operand, joins); });
  programs.host(
      "two GEMMs that add up a row", false, [](World& world, const Env&) { add_up(world, false); }, Place::kOneNode);
  programs.host(
      "two GEMMs that add up a row in one place", true, [](World& world, const Env&) { add_up(world, true); },
      Place::kOneNode);
  for (const auto& [what, text] : {std::pair{Groups::kPanels, "a grouped GEMM's panels, made "},
                                   {Groups::kCounts, "the numbers of rows of a grouped GEMM's panels, copied over "},
                                   {Groups::kIndex, "a grouped GEMM's row index, copied over "}})
    for (const bool joins : {false, true})
      programs.host(std::string(text) + (joins ? "before it" : "beside it"), !joins,
                    [what, joins](World& world, const Env&) { run_groups(world, what, joins); });
}

}  // namespace tandem::check_test
