// Inputs of a GEMM are not written while it runs.
#include "check/conformance.h"
#include "tandem/advanced/gemm.h"

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
  gemm.c = matrix("c");
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
}

}  // namespace tandem::check_test
