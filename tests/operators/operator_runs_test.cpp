#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operators/operator_case.h"
#include "tandem/check.h"
#include "tandem/error.h"

namespace tandem {
namespace {

using test::element;

constexpr Operator kOperators[] = {Operator::kAllGatherGemm, Operator::kGemmReduceScatter, Operator::kGemmAllReduce};

SimOptions small() {
  SimOptions options;
  options.heap_bytes = Size{64} << 20;
  return options;
}

double dot(Size i, Size j, Size k) {
  double sum = 0;
  for (Size l = 0; l < k; ++l) sum += element(0, 0, i, l) * element(0, 1, j, l);
  return sum;
}

/// Query, key and value from one gather: columns of C that belong to different B, each cut by itself.
TEST(AllGatherGemm, SeveralBShareOneGather) {
  constexpr Size m = 37, k = 19;
  const std::vector<Size> ns{33, 5, 20};
  for (const Form form : {Form::kOverlapped, Form::kSequential, Form::kDecomposed}) {
    int checked = 0, wrong = 0;
    Simulation(load_machine("h200x8"), 3, small()).run([&](World& world) {
      const int pes = world.num_pes(), me = world.pe();
      OperatorOptions options{.m = m, .n = 58, .k = k, .ns = ns, .type = DType::kF32, .form = form};
      options.tile_m = options.tile_n = 16;
      float* const a = world.heap().allocate_local<float>(m * k, "a");
      test::fill(a, 0, 0, split(m, pes)[me], {0, k});
      std::vector<const void*> b;
      std::vector<void*> c;
      Size first = 0;
      for (const Size n : ns) {
        const Range own = split(n, pes)[me];
        float* const weights = world.heap().allocate_local<float>(own.size() * k, "b");
        test::fill(weights, 0, 1, {first + own.begin, first + own.end}, {0, k});
        b.push_back(weights);
        c.push_back(world.heap().allocate_local<float>(m * own.size(), "c"));
        first += n;
      }
      const auto plan = make_operator(world, Operator::kAllGatherGemm, options);
      Stream stream = world.make_stream("main");
      for (int run = 0; run < 3; ++run) plan->run(stream, {m, a, b, c});
      stream.synchronize();
      first = 0;
      for (std::size_t matrix = 0; matrix < ns.size(); ++matrix) {
        const Range own = split(ns[matrix], pes)[me];
        for (Size i = 0; i < m; ++i)
          for (Size j = 0; j < own.size(); ++j, ++checked)
            wrong += static_cast<float*>(c[matrix])[i * own.size() + j] != dot(i, first + own.begin + j, k);
        first += ns[matrix];
      }
    });
    EXPECT_EQ(checked, m * 58);
    EXPECT_EQ(wrong, 0) << name(form);
  }
}

/// Calls whose rows travel before the GEMM, or not at all, with fewer rows than the plan has.
TEST(AllGatherGemm, CopiesOfSmsBeforeTheGemmAreComplete) {
  constexpr Size m = 24, most = 40, k = 16;
  for (const auto& [pes, form] : {std::pair{1, Form::kOverlapped}, {1, Form::kSequential}, {3, Form::kSequential}}) {
    int wrong = 0;
    Simulation(load_machine("h200x8"), pes, small()).run([&](World& world) {
      OperatorOptions options{.m = most, .n = 8 * world.num_pes(), .k = k, .type = DType::kF32, .form = form};
      options.copy_by = CopyBy::kSm;
      options.tile_m = options.tile_n = 16;
      const auto floats = [&](Size count) { return world.heap().allocate_local<float>(count, "matrix"); };
      float *const a = floats(m * k), *const gathered = floats(m * k), *const weights = floats(8 * k);
      float* const result = floats(m * 8);
      test::fill(a, 0, 0, split(m, world.num_pes())[world.pe()], {0, k});
      test::fill(weights, 0, 1, {0, 8}, {0, k});
      const void* const b = weights;
      void* const c = result;
      Stream stream = world.make_stream("main");
      const auto plan = make_operator(world, Operator::kAllGatherGemm, options);
      for (int run = 0; run < 3; ++run)
        plan->run(stream, {.m = m, .a = a, .b = {&b, 1}, .c = {&c, 1}, .gathered = gathered});
      stream.synchronize();
      for (Size i = 0; i < m; ++i) {
        for (Size j = 0; j < 8; ++j) wrong += result[i * 8 + j] != dot(i, j, k);
        for (Size l = 0; l < k; ++l) wrong += gathered[i * k + l] != element(0, 0, i, l);
      }
    });
    EXPECT_EQ(wrong, 0) << name(form) << " on " << pes;
  }
}

/// Where the heap's next buffers would lie: the same before and after runs that allocate nothing.
struct HeapMark {
  explicit HeapMark(World& world)
      : local(world.heap().allocate_local<float>(1, "mark")),
        control(world.heap().allocate_local<Epoch>(1, "mark")),
        symmetric(world.heap().allocate<float>(1, "mark").local()),
        signals(world.heap().signals(1, "mark").local()) {}
  float* local;
  Epoch* control;
  float* symmetric;
  Signal* signals;
};

TEST(Operators, RunsAllocateNothing) {
  for (const Operator op : kOperators)
    for (const Form form : {Form::kSuitable, Form::kOverlapped, Form::kSequential, Form::kDecomposed})
      for (const CopyBy copy_by : {CopyBy::kCopyEngine, CopyBy::kSm})
        Simulation(load_machine("h200x8"), 4, small()).run([&](World& world) {
          OperatorOptions options{.m = 300, .n = 64, .k = 64, .type = DType::kF32, .form = form};
          options.copy_by = copy_by;
          auto* const a = world.heap().allocate_local<float>(300 * 64, "a");
          auto* const b = world.heap().allocate_local<float>(64 * 64, "b");
          auto* const c = world.heap().allocate_local<float>(300 * 64, "c");
          const auto plan = make_operator(world, op, options);
          Stream stream = world.make_stream("main");
          const HeapMark first(world), second(world);
          for (const Size m : {300, 1, 0, 299, 129, 300}) plan->run(stream, m, a, b, c);
          stream.synchronize();
          const HeapMark third(world);
          EXPECT_EQ(third.local - second.local, second.local - first.local);
          EXPECT_EQ(third.control - second.control, second.control - first.control);
          EXPECT_EQ(third.symmetric - second.symmetric, second.symmetric - first.symmetric);
          EXPECT_EQ(third.signals - second.signals, second.signals - first.signals);
        });
}

TEST(Operators, RunsOfOtherRowsOrMatricesAreRefused) {
  Simulation(load_machine("h200x4"), 1, small()).run([](World& world) {
    const auto plan = make_operator(world, Operator::kGemmReduceScatter, {.m = 8, .n = 8, .k = 8});
    Stream stream = world.make_stream("main");
    const auto refusal = [&](const OperatorCall& call) -> std::string {
      try {
        plan->run(stream, call);
      } catch (const InvalidArgument& error) {
        return error.what();
      }
      return "";
    };
    const void* const b[] = {nullptr, nullptr};
    void* const c[] = {nullptr, nullptr};
    EXPECT_EQ(refusal({9, nullptr, {b, 1}, {c, 1}}), "m: 9 given, allowed is 0 to the plan's 8");
    EXPECT_EQ(refusal({-1, nullptr, {b, 1}, {c, 1}}), "m: -1 given, allowed is 0 to the plan's 8");
    EXPECT_EQ(refusal({8, nullptr, b, c}), "b: 2 given, allowed is 1 matrices, and as many c (2 given)");
    EXPECT_EQ(refusal({0, nullptr, {b, 1}, {c, 1}}), "");
  });
}

/// Choices that are left to the library are never more than 2 % slower than the sequential form.
TEST(OperatorTiming, DefaultsAreNotSlowerThanSequential) {
  for (const Operator op : kOperators)
    for (const int pes : {2, 4, 8})
      for (const Size m : {16, 128, 512, 1024, 2048}) {
        OperatorOptions options{.m = m, .n = 8192, .k = 28672};
        if (op == Operator::kAllGatherGemm) std::swap(options.n, options.k);
        const test::Place place{"h200x8", pes};
        const double us = test::phantom_us(place, op, options);
        options.form = Form::kSequential;
        EXPECT_LE(us, 1.02 * test::phantom_us(place, op, options)) << name(op) << " m=" << m << " pes=" << pes;
      }
}

TEST(OperatorTiming, DefaultsHideAllReducesOfManyPieces) {
  const OperatorOptions longest{.m = 8192, .n = 16384, .k = 65536}, shortest{.m = 8192, .n = 28672, .k = 4096};
  for (const auto& [machine, options] : {std::pair("h200x8", longest), std::pair("h800x8", shortest)}) {
    const test::Place place{machine, 8};
    OperatorOptions overlapped = options;
    overlapped.form = Form::kOverlapped;
    EXPECT_LE(test::phantom_us(place, Operator::kGemmAllReduce, options),
              test::phantom_us(place, Operator::kGemmAllReduce, overlapped))
        << machine;
  }
}

/// Reductions and copies' steps beside a GEMM must leave it the SMs that it asks for, also in runs of one tile.
TEST(OperatorRuns, ReductionsAndStepsBesideAGemmLeaveItsSmsToIt) {
  for (const int pes_per_node : {0, 2}) {
    OperatorOptions options{.m = 256, .n = 1024, .k = 32, .type = DType::kF32, .form = Form::kOverlapped};
    options.tile_m = 8;
    options.tile_n = 1024;
    options.copy_by = CopyBy::kCopyEngine;
    options.reduction = Reduction::kOwner;
    options.communication_sms = 4;
    const auto program = [&](World& world) {
      const auto zeros = [&](Size elements, const char* name) {
        float* const memory = world.heap().allocate_local<float>(elements, name);
        world.copy_in(memory, std::vector<float>(static_cast<std::size_t>(elements)).data(), 4 * elements);
        return memory;
      };
      const float* const a = zeros(options.m * options.k, "a");
      const float* const b = zeros(options.n * options.k, "b");
      float* const c = zeros(options.m * options.n, "c");
      const auto plan = make_operator(world, Operator::kGemmReduceScatter, options);
      Stream stream = world.make_stream("main");
      for (const Size m : {options.m, Size{1}, Size{1}, Size{1}}) plan->run(stream, m, a, b, c);
      stream.synchronize();
    };
    CheckOptions how{.machine = load_machine("h200x8"), .pes = 4, .schedules = 20};
    how.pes_per_node = pes_per_node;
    how.stop_at_first = true;
    const CheckResult result = check(program, how);
    EXPECT_TRUE(result.clean()) << result.text();
  }
}

}  // namespace
}  // namespace tandem
