#include "operators/plan/double_buffered_plan.h"

#include <gtest/gtest.h>

#include <vector>

#include "operators/operator_case.h"
#include "tandem/check.h"
#include "tandem/simulation.h"

namespace tandem {

namespace {

/// Notes its number when its turn comes.
class NotingPlan final : public OperatorPlan {
 public:
  NotingPlan(const OperatorOptions& options, int number, std::vector<int>& buffers)
      : OperatorPlan(options), number_(number), buffers_(buffers) {}

 private:
  void enqueue(Stream&, const OperatorCall&) override { buffers_.push_back(number_); }

  int number_;
  std::vector<int>& buffers_;
};

TEST(DoubleBufferedPlan, EveryCallButThoseOfNoRowsIsTheOtherPlans) {
  Simulation simulation(load_machine("h200x2"), 1);
  std::vector<int> buffers;
  simulation.run([&](World& world) {
    OperatorOptions options;
    options.m = options.n = options.k = 8;
    ops::DoubleBufferedPlan plan(std::make_unique<NotingPlan>(options, 0, buffers),
                                 std::make_unique<NotingPlan>(options, 1, buffers));
    Stream stream = world.make_stream("main");
    std::vector<float> data(64);
    for (const Size m : {8, 3, 0, 8, 1, 0, 0, 2}) plan.run(stream, m, data.data(), data.data(), data.data());
  });
  EXPECT_EQ(buffers, (std::vector<int>{0, 1, 0, 1, 0}));
}

/// Runs of both plans, in whatever order graphs of an odd number of calls put them, with the PEs late in turn.
void check_double_buffering(Operator op, int pes, CopyBy copy_by) {
  constexpr Size kM = 70, kN = 24, kK = 12;
  constexpr std::size_t kBuffers[] = {0, 1, 0, 0, 1, 1, 1, 0, 1};
  constexpr int kRuns = std::size(kBuffers);
  ops::Settings settings;
  settings.options = {.m = kM, .n = kN, .k = kK, .type = DType::kF32, .form = Form::kOverlapped};
  settings.options.copy_by = copy_by;
  if (op == Operator::kGemmReduceScatter) settings.options.reduction = Reduction::kChain;
  settings.options.communication_sms = op == Operator::kAllGatherGemm && copy_by == CopyBy::kSm ? 1 : 0;
  settings.options.splits = 2;
  settings.options.tile_m = settings.options.tile_n = 16;
  settings.order = op == Operator::kAllGatherGemm ? TileOrder::kOwnFirst : TileOrder::kPeersFirst;
  const auto make = op == Operator::kAllGatherGemm ? ops::make_all_gather_gemm : ops::make_gemm_reduce_scatter_ring;
  const auto expected = test::reference(settings.options, kRuns);
  Size wrong = 0;
  const auto program = [&](World& world) {
    const test::Shards shards(op, settings.options, world.pe(), pes);
    ops::Settings of_both = settings;
    of_both.buffers = ops::make_buffer_words(world);
    const std::unique_ptr<OperatorPlan> plans[] = {make(world, of_both), make(world, of_both)};
    const auto matrix = [&](Size size) { return world.heap().allocate_local<float>(kRuns * size, "matrices"); };
    float *const a = matrix(shards.a_size()), *const b = matrix(shards.b_size()), *const c = matrix(shards.c_size());
    float* const idle = world.heap().allocate_local<float>(1 << 14, "idle");
    std::fill_n(idle, 1 << 14, 0.0F);
    Stream stream = world.make_stream("main");
    for (int run = 0; run < kRuns; ++run) {
      test::fill(a + run * shards.a_size(), run, 0, shards.a_rows, shards.a_cols);
      test::fill(b + run * shards.b_size(), run, 1, shards.b_rows, shards.b_cols);
      if (run % pes == world.pe()) stream.launch<test::Dawdle>({1, 128}, {idle, 1 << 14, 20});
      plans[kBuffers[run]]->run(stream, a + run * shards.a_size(), b + run * shards.b_size(),
                                c + run * shards.c_size());
    }
    stream.synchronize();
    for (int run = 0; run < kRuns; ++run)
      for (Size i = 0; i < shards.c_size(); ++i) {
        const Size row = shards.c_rows.begin + i / shards.c_cols.size();
        const Size column = shards.c_cols.begin + i % shards.c_cols.size();
        wrong += static_cast<double>(c[run * shards.c_size() + i]) !=
                 expected[static_cast<std::size_t>(run)][static_cast<std::size_t>(row * kN + column)];
      }
  };
  CheckOptions how{.machine = load_machine("h200x8"), .pes = pes, .schedules = 5};
  how.uninitialised_reads = false;   // Dawdle's
  how.one_kernel_at_a_time = false;  // a chain by copy engines needs kernels beside its GEMM
  const CheckResult result = check(program, how);
  EXPECT_TRUE(result.clean()) << result.text();
  EXPECT_EQ(wrong, 0);
}

TEST(DoubleBufferedPlan, AreExactAndWithoutRacesInAnyOrder) {
  for (const Operator op : {Operator::kAllGatherGemm, Operator::kGemmReduceScatter})
    for (const int pes : {2, 3, 4})
      for (const CopyBy copy_by : {CopyBy::kCopyEngine, CopyBy::kSm}) check_double_buffering(op, pes, copy_by);
}

}  // namespace

}  // namespace tandem
