// Runs of an operator with other rows on one PE.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tandem/error.h"
#include "tandem/operators.h"
#include "tandem/simulation.h"

namespace tandem {
namespace {

TEST(OperatorCalls, OtherRowsAreNamed) {
  for (const Operator op : {Operator::kAllGatherGemm, Operator::kGemmReduceScatter, Operator::kGemmAllReduce}) {
    SimOptions simulated;
    simulated.phantom = true;
    Simulation simulation(load_machine("h200x4"), 4, simulated);
    std::string error;
    try {
      simulation.run([op](World& world) {
        OperatorOptions options;
        options.m = 512;
        options.n = 256;
        options.k = 256;
        const auto plan = make_operator(world, op, options);
        std::byte* const memory = world.heap().allocate<std::byte>(Size{1} << 20, "matrices").local();
        Stream stream = world.make_stream("main");
        const auto run = [&](Size m) { plan->run(stream, m, memory, memory, memory + (Size{1} << 19)); };
        run(512);
        run(world.pe() == 1 ? 256 : 512);
        stream.synchronize();
      });
    } catch (const InvalidArgument& refused) {
      error = refused.what();
    }
    EXPECT_THAT(error, ::testing::AllOf(::testing::HasSubstr("call 2 of a plan"), ::testing::HasSubstr(name(op)),
                                        ::testing::HasSubstr("count 256"), ::testing::HasSubstr("count 512")));
  }
}

/// Rows of one PE do not travel, so a heap that has no room for them suffices.
TEST(OperatorCalls, OfOnePeTakeNoTransportMemory) {
  for (const Operator op : {Operator::kAllGatherGemm, Operator::kGemmReduceScatter, Operator::kGemmAllReduce})
    for (const Form form : {Form::kOverlapped, Form::kSequential, Form::kDecomposed}) {
      SimOptions simulated;
      simulated.phantom = true;
      simulated.heap_bytes = Size{4} << 20;
      Simulation(load_machine("h200x4"), 1, simulated).run([&](World& world) {
        const OperatorOptions options{.m = 4096, .n = 8192, .k = 8192, .form = form};
        EXPECT_NO_THROW(make_operator(world, op, options)) << name(op) << ' ' << name(form);
        OperatorOptions normed = options;
        normed.norm.norm = Norm::kRms;
        if (op == Operator::kAllGatherGemm) return;  // its normed rows need a place
        EXPECT_NO_THROW(make_operator(world, op, normed)) << name(op) << ' ' << name(form);
      });
    }
}

TEST(OperatorCalls, MissingMatricesAreNamed) {
  for (const Operator op : {Operator::kAllGatherGemm, Operator::kGemmReduceScatter, Operator::kGemmAllReduce})
    for (const std::string missing : {"a", "b", "c", ""}) {
      std::string error;
      try {
        Simulation(load_machine("h200x4"), 4).run([&](World& world) {
          OperatorOptions options;
          options.m = options.n = options.k = 64;
          const auto plan = make_operator(world, op, options);
          std::byte* const memory = world.heap().allocate<std::byte>(Size{1} << 16, "matrices").local();
          const auto unless = [&](const char* what) { return missing == what ? nullptr : memory; };
          Stream stream = world.make_stream("main");
          plan->run(stream, 0, nullptr, nullptr, nullptr);  // no rows need none
          plan->run(stream, unless("a"), unless("b"), missing == "c" ? nullptr : memory + (Size{1} << 15));
          stream.synchronize();
        });
      } catch (const InvalidArgument& refused) {
        error = refused.what();
      }
      EXPECT_EQ(error, missing.empty() ? "" : missing + ": a null address given, allowed is one of this PE's memory");
    }
}

/// Bytes of a PE's matrices of 64 x 48 x 32 in bf16 on two PEs.
struct Bytes {
  Operator op;
  Size a, b, c;
};
constexpr Bytes kBytes[] = {{Operator::kAllGatherGemm, 32 * 32 * 2, 24 * 32 * 2, 64 * 24 * 2},
                            {Operator::kGemmReduceScatter, 64 * 16 * 2, 48 * 16 * 2, 32 * 48 * 2},
                            {Operator::kGemmAllReduce, 64 * 16 * 2, 48 * 16 * 2, 64 * 48 * 2}};

/// Returns the error of a run whose matrices start at these bytes of a PE's memory, or "".
std::string overlap(Operator op, Size m, Size a, Size b, Size c, Size bias) {
  std::string error;
  Simulation(load_machine("h200x4"), 2).run([&](World& world) {
    const auto plan = make_operator(world, op, {.m = 64, .n = 48, .k = 32});
    std::byte* const memory = world.heap().allocate_local<std::byte>(Size{1} << 16, "matrices");
    const void* const factor = memory + b;
    const void* const added = memory + bias;
    void* const result = memory + c;
    Stream stream = world.make_stream("main");
    try {
      plan->run(stream, {m, memory + a, {&factor, 1}, {&result, 1}, {&added, 1}});
      stream.synchronize();
    } catch (const InvalidArgument& refused) {
      error = refused.what();
    }
  });
  return error;
}

TEST(OperatorCalls, AResultBesideTheOthersIsTaken) {
  for (const auto& [op, a, b, c] : kBytes) {
    const Size bias = op == Operator::kAllGatherGemm ? 24 * 2 : 48 * 2;
    EXPECT_EQ(overlap(op, 64, c + b, c, 0, c + b + a), "") << name(op);         // C, B, A, bias
    EXPECT_EQ(overlap(op, 64, 0, a, a + b + bias, a + b), "") << name(op);      // A, B, bias, C
    EXPECT_EQ(overlap(op, 0, 0, 0, 0, 0), "") << name(op);                      // no rows
    EXPECT_EQ(overlap(op, 64, 0, 0, a + b + bias, 0), "") << name(op);          // what is read may be one
    EXPECT_EQ(overlap(op, 32, c / 2, 8192 + 16384, 0, 16384), "") << name(op);  // of fewer rows, C is shorter
  }
}

TEST(OperatorCalls, AResultOverAnotherMatrixIsRefused) {
  constexpr Size kFar = 32768;
  for (const auto& [op, a, b, c] : kBytes) {
    const auto names = [c = c](Size bytes, const char* other) {
      return ::testing::AllOf(::testing::HasSubstr(fmt::format("c: {} bytes at ", c)),
                              ::testing::HasSubstr(fmt::format("which overlap the {} bytes of {} at ", bytes, other)),
                              ::testing::HasSubstr("; allowed is a place of its own"));
    };
    EXPECT_THAT(overlap(op, 64, 0, kFar, 0, 2 * kFar - 1024), names(a, "a")) << name(op);
    EXPECT_THAT(overlap(op, 64, 0, kFar, a - 2, 2 * kFar - 1024), names(a, "a")) << name(op);
    EXPECT_THAT(overlap(op, 64, kFar + c - 2, 0, kFar, 2 * kFar - 1024), names(a, "a")) << name(op);
    EXPECT_THAT(overlap(op, 64, 0, kFar, kFar + b - 2, 2 * kFar - 1024), names(b, "b")) << name(op);
    const Size bias = op == Operator::kAllGatherGemm ? 24 * 2 : 48 * 2;
    EXPECT_THAT(overlap(op, 64, 0, 8192, kFar, kFar + 16), names(bias, "bias")) << name(op);
  }
}

TEST(OperatorCalls, MatricesFitIntoTheirBuffers) {
  const auto run = [](Size a_bytes, Size b_bytes, Size c_bytes) {
    std::string error;
    Simulation(load_machine("h200x4"), 2).run([&](World& world) {
      const auto plan = make_operator(world, Operator::kAllGatherGemm, {.m = 64, .n = 48, .k = 32});
      const auto matrix = [&](Size bytes, const char* name) {
        return world.heap().allocate_local<std::byte>(bytes, name);
      };
      std::byte* const a = matrix(a_bytes, "a");
      std::byte* const b = matrix(b_bytes, "b");
      std::byte* const c = matrix(c_bytes, "c");
      Stream stream = world.make_stream("main");
      try {
        plan->run(stream, a, b, c);
      } catch (const InvalidArgument& refused) {
        error = refused.what();
      }
      stream.synchronize();
    });
    return error;
  };
  constexpr Size kA = 32 * 32 * 2, kB = 24 * 32 * 2, kC = 64 * 24 * 2;
  using ::testing::HasSubstr;
  EXPECT_EQ(run(kA, kB, kC), "");
  EXPECT_THAT(run(kA - 2, kB, kC), HasSubstr("a: a buffer that has 2046 bytes from "));
  EXPECT_THAT(run(kA, kB - 2, kC), HasSubstr("b: a buffer that has 1534 bytes from "));
  EXPECT_THAT(run(kA, kB, kC - 2), HasSubstr("given to all_gather_gemm of 64 rows, this run needs 3072"));
}

TEST(OperatorCalls, OnlyAllGatherGemmReturnsTheGatheredRows) {
  std::string error;
  Simulation(load_machine("h200x4"), 2).run([&](World& world) {
    const auto plan = make_operator(world, Operator::kGemmAllReduce, {.m = 64, .n = 48, .k = 32});
    std::byte* const memory = world.heap().allocate_local<std::byte>(Size{1} << 16, "matrices");
    const void* const b = memory + 8192;
    void* const c = memory + 16384;
    Stream stream = world.make_stream("main");
    try {
      plan->run(stream, {.m = 64, .a = memory, .b = {&b, 1}, .c = {&c, 1}, .gathered = memory + 32768});
    } catch (const InvalidArgument& refused) {
      error = refused.what();
    }
  });
  EXPECT_EQ(error, "gathered: given to gemm_all_reduce, allowed with all_gather_gemm");
}

TEST(OperatorCalls, ResultsOfSeveralBAreApart) {
  std::string error;
  Simulation(load_machine("h200x4"), 2).run([&](World& world) {
    const auto plan = make_operator(world, Operator::kAllGatherGemm, {.m = 64, .n = 48, .k = 32, .ns = {32, 16}});
    std::byte* const memory = world.heap().allocate_local<std::byte>(Size{1} << 16, "matrices");
    const void* const b[] = {memory + 8192, memory + 8192};
    const auto run = [&](Size second) {
      void* const c[] = {memory + 16384, memory + 16384 + second};
      Stream stream = world.make_stream("main");
      plan->run(stream, {64, memory, b, c});
      stream.synchronize();
    };
    run(64 * 16 * 2);
    try {
      run(64 * 16 * 2 - 2);
    } catch (const InvalidArgument& refused) {
      error = refused.what();
    }
  });
  EXPECT_THAT(error, ::testing::AllOf(::testing::HasSubstr("c[1]: 1024 bytes at "),
                                      ::testing::HasSubstr("which overlap the 2048 bytes of c[0] at ")));
}

}  // namespace
}  // namespace tandem
