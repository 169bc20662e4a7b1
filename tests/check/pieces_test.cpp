// Calls in pieces whose copies run beside kernels: no copy meets a piece that still runs.
#include <gtest/gtest.h>

#include "tandem/advanced/local_handle.h"
#include "tandem/check.h"
#include "tandem/collectives.h"

namespace tandem {
namespace {

constexpr Size kCount = 1000;

/// Two calls back to back, on memory that peers do not reach. The staging holds a part of one.
void reduce_in_pieces(World& world, const char* algorithm, bool is_scaled) {
  constexpr Size kStaging = 1024;
  CollectiveOptions options;
  options.type = DType::kI32;
  options.op = is_scaled ? ReduceOp::kPremulSum : ReduceOp::kSum;
  options.scale_of_run = is_scaled;
  options.max_count = kCount;
  options.algorithm = algorithm;
  options.local_in = options.local_out = true;
  options.staging = {world.heap().allocate<std::byte>(kStaging, "staged in"),
                     world.heap().allocate<std::byte>(kStaging, "staged out"), kStaging};
  const auto plan = make_collective(world, Collective::kAllReduce, options);
  const auto memory = [&](Size count, const char* what) {
    return local_handle(world, world.heap().allocate_local<std::int32_t>(count, what));
  };
  const auto in = memory(kCount, "in"), out = memory(kCount, "out"), factor = memory(1, "factor");
  for (Size i = 0; i < kCount; ++i) in.local()[i] = world.pe() + 1;
  *factor.local() = is_scaled ? 3 : 1;
  Stream stream = world.make_stream("main");
  for (int call = 0; call < 2; ++call) {
    const auto from = in.as<const std::byte>();
    const auto to = out.as<std::byte>();
    if (is_scaled)
      plan->run_scaled(stream, from, to, kCount, {factor.local(), {}});
    else
      plan->run(stream, from, to, kCount);
  }
  stream.synchronize();
  const int sum = world.num_pes() * (world.num_pes() + 1) / 2;
  for (Size i = 0; i < kCount; ++i) ASSERT_EQ(out.local()[i], sum * *factor.local()) << i;
  world.barrier();
}

TEST(CallsInPieces, AreFreeOfRacesAndHangs) {
  for (const char* const algorithm : {"two_shot", "ring", "one_shot_ll"})
    for (const bool is_scaled : {false, true}) {
      CheckOptions options;
      options.pes = 3;
      options.schedules = 8;
      const CheckResult result = check([&](World& world) { reduce_in_pieces(world, algorithm, is_scaled); }, options);
      EXPECT_TRUE(result.clean()) << algorithm << ": " << result.text();
    }
}

}  // namespace
}  // namespace tandem
