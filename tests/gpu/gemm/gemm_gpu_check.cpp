// The fused GEMM on one GPU, against the host's reference on integers, so that every element must be exact.
//
//   gemm_gpu_check [ROUNDS]     rounds of the test in which the rows of A arrive while the GEMM runs; default 20

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "gpu/counted_check.h"
#include "gpu/gemm/gemm_case.h"
#include "tandem/advanced/gemm_order.h"
#include "tandem/cuda.h"
#include "tandem/error.h"

namespace tandem::test {

namespace {

/// Layouts of B, bias and activation, on tiles whole and cut, plain and fused.
template <class T>
void check_epilogue_of(World& world, Stream& stream, Buffers& buffers, DType type) {
  for (const BLayout layout : {BLayout::kNxK, BLayout::kKxN})
    for (const bool biased : {false, true})
      for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kSilu})
        for (const bool fused : {false, true}) {
          Case c{300, 520, 264};
          c.type = c.out_type = type;
          c.layout = layout;
          c.biased = biased;
          c.activation = activation;
          if (fused) {
            c.order = TileOrder::kOwnFirst;
            c.shards = 3;
            c.own = c.notified = true;
            c.sms = 2;
          }
          count_check(describe(c), Check<T>(world, stream, buffers, c).run());
        }
}

/// The kernel of few rows: n gives each SM a tile, and one of them is cut.
void check_skinny(World& world, Stream& stream, Buffers& buffers) {
  for (const Size m : {17, 64})
    for (const bool biased : {false, true}) {
      Case c{m, world.machine().gpu.sm_count * Size{64} - 24, 8200};
      c.biased = biased;
      c.activation = biased ? Activation::kGelu : Activation::kNone;
      count_check("few rows: " + describe(c), Check<bf16>(world, stream, buffers, c).run());
    }
}

/// fp8 with each kind of scales, whole tiles and cut ones, plain and fused.
template <class Out>
void check_fp8(World& world, Stream& stream, Buffers& buffers) {
  using enum Case::Scales;
  for (const int tile_n : {128, 256}) {
    if (tile_n == 256 && sizeof(Out) == 1) continue;  // there is no such kernel
    for (const auto scales : {kNone, kOfTensors, kOfRowsAndColumns})
      for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kSilu})
        for (const bool fused : {false, true})
          for (const Size m : {128, 5, 300}) {
            Case c{m, 528, 272};
            c.type = DType::kE4M3;
            c.out_type = dtype_of<Out>();
            c.tile_n = tile_n;
            c.scales = scales;
            c.activation = activation;
            c.biased = m == 300;
            if (fused) {
              c.order = TileOrder::kOwnFirst;
              c.shards = 3;
              c.own = c.notified = true;
              c.collected = activation == Activation::kNone && !c.biased;
            }
            count_check(describe(c), Check<fp8_e4m3, Out>(world, stream, buffers, c).run());
          }
  }
}

/// fp8 with fast accumulation: whole tiles and cut ones, plain and fused, and with the depth of the last tiles shared.
template <class Out>
void check_fast(World& world, Stream& stream, Buffers& buffers) {
  using enum Case::Scales;
  const auto check = [&](Case c) {
    c.type = DType::kE4M3;
    c.out_type = dtype_of<Out>();
    c.fast = true;
    Check<fp8_e4m3, Out> one(world, stream, buffers, c);
    for (int i = 0; i < (c.shared ? 3 : 1); ++i) count_check(describe(c), one.run());
  };
  for (const auto scales : {kNone, kOfTensors, kOfRowsAndColumns})
    for (const Activation activation : {Activation::kNone, Activation::kSilu})
      for (const Size k : {16, 272, 5136, 8208})
        for (const Size m : {5, 300, 700}) {
          Case c{m, 528, k};
          c.scales = scales;
          c.activation = activation;
          c.biased = m == 300;
          c.shared = k > 5000;
          check(c);
          c.sms = 6;
          c.order = TileOrder::kOwnFirst;
          c.shards = 3;
          c.own = c.notified = true;
          c.collected = activation == Activation::kNone && !c.biased;
          check(c);
        }
}

template <class T>
void check_type(World& world, Stream& stream, Buffers& buffers, DType type) {
  struct Shape {
    Size m, n, k;
  };
  const auto check = [&](Case c) {
    c.type = c.out_type = type;
    try {
      count_check(describe(c), Check<T>(world, stream, buffers, c).run());
    } catch (const Error&) {
      std::printf("in %s\n", describe(c).c_str());
      throw;
    }
  };
  for (const int tile_n : {256, 128, 192}) {
    if (type == DType::kF16 && tile_n != 256) continue;  // there is no such kernel
    for (const Shape s : {Shape{128, 256, 64},
                          {256, 256, 128},
                          {1, 8, 8},
                          {5, 8, 16},
                          {300, 520, 264},
                          {257, 264, 72},
                          {1100, 2056, 512},
                          {130, 4104, 1024}})
      for (const int group : {0, 2}) check({s.m, s.n, s.k, type, tile_n, TileOrder::kRowMajor, 1, 1, 0, group});
    for (const TileOrder order :
         {TileOrder::kOwnFirst, TileOrder::kRing, TileOrder::kInterleaved, TileOrder::kPeersFirst})
      for (const int shards : {1, 3, 8})
        for (const int splits : {1, 3, 8}) {
          Case c{1100, 520, 136, type, tile_n, order, shards, splits, shards / 2, splits == 3 ? 3 : 0};
          if (splits == 8) {  // many tiles a block, which writes one while it computes the next
            c.sms = 6;
            c.k = shards == 3 ? 136 : 392;
          }
          check(c);
          c.own = true;
          check(c);
          c.notified = true;
          check(c);
          c.collected = true;
          check(c);
          c.m = 5;
          check(c);
        }
  }
}

/// The last wave's depth is shared for one tile and for many: on all SMs, and on few SMs after whole tiles.
template <class T>
void check_stream_k(World& world, Stream& stream, Buffers& buffers, DType type) {
  for (const int tile_n : {256, 128, 192})
    for (const Size k : {2568, 4104})
      for (const int sms : {0, 4, 8}) {
        if (type == DType::kF16 && tile_n != 256) continue;  // there is no such kernel
        Case c{sms == 0 ? Size{300} : 700, 520, k, type, tile_n};
        c.out_type = type;
        c.shared = true;
        c.sms = sms;
        c.biased = true;
        c.activation = Activation::kRelu;
        Check<T> check(world, stream, buffers, c);
        for (int i = 0; i < 3; ++i) count_check(describe(c), check.run());  // the same words and sums, call by call
        if (tile_n == 256) {
          c.layout = BLayout::kKxN;
          count_check(describe(c), Check<T>(world, stream, buffers, c).run());
          c.layout = BLayout::kNxK;
        }
        c.order = k == 4104 ? TileOrder::kPeersFirst : TileOrder::kOwnFirst;
        c.shards = 3;
        c.splits = sms == 8 ? 2 : 1;
        c.own = c.notified = true;
        count_check(describe(c), Check<T>(world, stream, buffers, c).run());
        c.activation = Activation::kNone;
        c.biased = false;
        c.collected = true;
        count_check(describe(c), Check<T>(world, stream, buffers, c).run());
      }
  // More than half of H200's clusters have a tile: of 192 columns each of the others computes parts of two tiles, of
  // 256 some do.
  if (type != DType::kBF16) return;
  for (const int tile_n : {256, 192}) {
    Case c{1500, 1024, 4104, type, tile_n};
    c.shared = true;
    Check<T> check(world, stream, buffers, c);
    for (int i = 0; i < 10; ++i) count_check(describe(c), check.run());
  }
}

void check_late_rows(World& world, Stream& stream, Buffers& buffers, int rounds) {
  Stream copies = world.make_stream("copies");
  Case c{1024, 1024, 512};
  c.order = TileOrder::kOwnFirst;
  c.shards = 4;
  c.splits = 2;
  c.gated = true;
  int round = 0;
  for (const int i : {0, 1, 2, 3}) {
    c.sms = i % 2 == 0 ? 0 : 6;  // a tile a block, and several
    c.shared = i >= 2;
    if (c.shared) c.k = 2568;
    Check<bf16> check(world, stream, buffers, c);
    for (int j = 0; j < rounds; ++j)
      count_check("rows that arrive late: " + describe(c), check.run_late(copies, round++));
  }
}

/// A gate that is not opened ends with an error that names its word; a new world works.
void check_timeout() {
  std::string problem = "no error";
  CudaOptions options;
  options.heap_bytes = Size{1} << 30;
  options.timeout_s = options.arrival_timeout_s = 0.5;
  try {
    CudaThreads threads(1, options);
    threads.run([](World& world) {
      Buffers buffers(world);
      Stream stream = world.make_stream("main");
      Case c{512, 512, 256};
      c.order = TileOrder::kOwnFirst;
      c.shards = 4;
      c.gated = true;
      const Epoch epoch = 1;
      world.copy_in(buffers.epoch, &epoch, 8);
      stream.gemm(gemm_of(c, buffers), world.team());
      stream.synchronize();
    });
  } catch (const Timeout& error) {
    const std::string text = error.what();
    problem = text.find("arrived[") != std::string::npos ? "" : text;
    std::printf("as it should be: %s\n", text.c_str());
  }
  count_check("a gate that is not opened", problem);
}

void check_refusals(World& world, Stream& stream, const Buffers& buffers) {
  const auto refused = [&](Case c, const char* word) {
    std::string problem = "no error";
    try {
      stream.gemm(gemm_of(c, buffers), world.team());
    } catch (const Error& error) {
      problem = std::string(error.what()).find(word) != std::string::npos ? "" : error.what();
    }
    count_check("refusal: " + describe(c), problem);
  };
  refused({64, 12, 64}, "n is 12");
  refused({64, 64, 12}, "k is 12");
  refused({64, 64, 64, DType::kBF16, 100}, "128x100");
  refused({64, 64, 64, DType::kF32}, "f32");
  Case partial{64, 64, 64, DType::kBF16, 256, TileOrder::kOwnFirst};
  partial.collected = true;
  partial.activation = Activation::kRelu;
  refused(partial, "activation is set");
}

int check_all(int rounds) {
  if (cuda_devices() == 0) {
    std::printf("no GPU\n");
    return 2;
  }
  setenv("TANDEM_CUBLASLT", "none", 1);  // plain GEMMs too by the kernels under test
  CudaOptions options;
  options.heap_bytes = Size{1} << 30;
  options.timeout_s = options.arrival_timeout_s = 5;
  {
    CudaThreads threads(1, options);
    threads.run([&](World& world) {
      Buffers buffers(world);
      Stream stream = world.make_stream("main");
      check_refusals(world, stream, buffers);
      check_type<bf16>(world, stream, buffers, DType::kBF16);
      check_type<f16>(world, stream, buffers, DType::kF16);
      check_epilogue_of<bf16>(world, stream, buffers, DType::kBF16);
      check_epilogue_of<f16>(world, stream, buffers, DType::kF16);
      check_stream_k<bf16>(world, stream, buffers, DType::kBF16);
      check_stream_k<f16>(world, stream, buffers, DType::kF16);
      check_skinny(world, stream, buffers);
      check_fp8<bf16>(world, stream, buffers);
      check_fp8<f16>(world, stream, buffers);
      check_fp8<fp8_e4m3>(world, stream, buffers);
      check_fast<bf16>(world, stream, buffers);
      check_fast<f16>(world, stream, buffers);
      std::printf("plain and fused: %d passed, %d failed\n", passed, failed);
      check_late_rows(world, stream, buffers, rounds);
    });
  }
  check_timeout();
  return finish();
}

}  // namespace

}  // namespace tandem::test

int main(int argc, char** argv) {
  try {
    return tandem::test::check_all(argc > 1 ? std::atoi(argv[1]) : 20);
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
