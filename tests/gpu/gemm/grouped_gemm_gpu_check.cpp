// The grouped fused GEMM on one GPU, with tables of panels that the GPU makes. It is compared with sums by the
// host on integers, with scales of any bits, so every element must be exact. Gated activations have an approximated
// exponential, which may change the last bit of a result.
//
//   grouped_gemm_gpu_check [ROUNDS]     rounds of the test in which rows of A arrive while the GEMM runs; default 10

#include <cstdio>
#include <cstdlib>

#include "gpu/gemm/grouped_gemm_check.h"
#include "tandem/cuda.h"
#include "tandem/error.h"

namespace tandem::test {

namespace {

template <class T>
void check_type(World& world, Stream& stream, Stream& copies, Buffers& buffers, int rounds) {
  const std::vector<std::int32_t> ragged{0, 1, 127, 128, 129, 0, 700, 5};
  const auto check = [&](const Case& c) {
    attempt(fmt::format("{} {}", name(dtype_of<T>()), describe(c)),
            [&] { return Check<T>(world, stream, buffers, c).run(nullptr, 1); });
  };
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
  // Panels without rows for the second warpgroup, and with some, in many tiles of each block.
  const std::vector<std::int32_t> few{50, 64, 1, 64, 33, 64, 63, 2, 64, 64, 40, 65, 64, 64, 128, 3, 64, 192, 64, 193};
  for (const Activation activation : {Activation::kNone, Activation::kSwiGlu})
    check({.counts = few, .n = 1040, .k = 64, .column_chunks = 2, .together = 1, .sms = 2, .activation = activation});
  Case gated{.counts = ragged, .n = 520, .k = 264, .gated = true, .column_chunks = 2};
  Case swiglu = gated;
  swiglu.n = 528;
  swiglu.activation = Activation::kSwiGlu;
  Check<T> late(world, stream, buffers, gated), late_swiglu(world, stream, buffers, swiglu);
  for (int round = 0; round < rounds; ++round) {
    attempt("rows arrive: " + describe(gated), [&] { return late.run(&copies, late_rounds++); });
    attempt("rows arrive: " + describe(swiglu), [&] { return late_swiglu.run(&copies, late_rounds++); });
  }
}

template <class Out>
void check_fp8_to(World& world, Stream& stream, Buffers& buffers, const Case& c) {
  attempt(fmt::format("fp8 to {} {}", name(dtype_of<Out>()), describe(c)),
          [&] { return Check<fp8_e4m3, Out>(world, stream, buffers, c).run(nullptr, 1); });
}

/// fp8 with each kind of scales; C in bf16, or in fp8 with scales of its blocks. TMA stores rows of multiples of 16
/// bytes, so a gated fp8 C needs multiples of 32 columns.
void check_fp8(World& world, Stream& stream, Buffers& buffers) {
  const std::vector<std::int32_t> ragged{0, 1, 127, 128, 129, 0, 700, 5};
  for (const Scales of : {Scales::kNone, Scales::kOfRows, Scales::kOfBlocks})
    for (const bool indexed : {false, true})
      for (const Size k : {272, 1040}) {
        Case c{.counts = ragged, .n = 528, .k = k, .indexed = indexed, .column_chunks = 2, .together = 2, .scales = of};
        check_fp8_to<bf16>(world, stream, buffers, c);
        c.activation = Activation::kSwiGlu;
        check_fp8_to<bf16>(world, stream, buffers, c);
        c.n = 544;
        check_fp8_to<fp8_e4m3>(world, stream, buffers, c);
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
    check_fp8(world, stream, buffers);
    check_type<bf16>(world, stream, copies, buffers, rounds);
    check_type<f16>(world, stream, copies, buffers, rounds);
    check_few_rows(world, stream, copies, buffers, rounds);
  });
  return finish();
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
