// In which order AllGather + GEMM takes the SMs.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "ops/operator_case.h"
#include "tandem/simulation.h"
#include "trace/timeline.h"

namespace tandem {

namespace {

constexpr Size kK = 64, kN = 256;

/// When each PE's last block that sends rows ended, and when its first tile began.
struct Times {
  trace::Time sent = 0;
  trace::Time computed = std::numeric_limits<trace::Time>::max();
};

/// One sequential run of `m` rows, on all PEs; what the last one sends finds no SM for a while.
std::vector<Times> run_sequential(int pes, Size m, Direction direction) {
  SimOptions options;
  options.record = true;
  Simulation simulation(load_machine("h200x4"), pes, options);
  simulation.run([&](World& world) {
    OperatorOptions o{.m = 64, .n = kN, .k = kK, .type = DType::kBF16, .form = Form::kSequential};
    o.copy_by = CopyBy::kSm;
    o.direction = direction;
    const auto plan = make_operator(world, Operator::kAllGatherGemm, o);
    auto* const memory = world.heap().allocate_local<std::byte>(Size{1} << 20, "matrices");
    const auto* const idle = world.heap().allocate_local<float>(1024, "idle");
    Stream crowd = world.make_stream("crowd");
    Stream main = world.make_stream("main");
    // Two blocks an SM, beside which a warp that waits has room, but no block that sends.
    if (world.pe() == pes - 1) crowd.launch<test::Dawdle>({2 * world.machine().gpu.sm_count, 992}, {idle, 1024, 100});
    plan->run(main, m, memory, memory, memory);
    main.synchronize();
    crowd.synchronize();
  });
  const trace::Timeline& timeline = simulation.timeline();
  std::vector<Times> times(static_cast<std::size_t>(pes));
  for (const trace::Span& span : timeline.spans) {
    Times& of_pe = times[static_cast<std::size_t>(timeline.lanes[span.lane].pe)];
    const std::string& label = timeline.label(span.label);
    if (span.kind == trace::SpanKind::kKernel && label.find("AllGather") != std::string::npos)
      of_pe.sent = std::max(of_pe.sent, span.end);
    if (span.kind == trace::SpanKind::kCompute) of_pe.computed = std::min(of_pe.computed, span.begin);
  }
  return times;
}

/// A GEMM may take all SMs while the step before it waits for peers; whoever has rows to send, or only to say that it
/// has none, has done so by then, else two PEs wait for each other.
TEST(AllGatherGemm, SendsBeforeItComputesOneAfterTheOther) {
  for (const int pes : {2, 3, 4})
    for (const Size m : {1, 3, 64})
      for (const Direction direction : {Direction::kPush, Direction::kPull})
        for (const Times& times : run_sequential(pes, m, direction)) {
          EXPECT_GT(times.sent, 0) << pes << " PEs, " << m << " rows";
          EXPECT_LE(times.sent, times.computed) << pes << " PEs, " << m << " rows";
        }
}

}  // namespace

}  // namespace tandem
