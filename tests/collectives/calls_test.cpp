// Calls that differ between PEs are errors before anything is enqueued.
#include <gmock/gmock.h>

#include "tandem/collectives.h"
#include "tandem/error.h"
#include "tandem/simulation.h"

namespace tandem::calls_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// The error of a world whose PEs run `program`.
std::string error_of(const std::function<void(World&)>& program) {
  try {
    Simulation(load_machine("h200x4"), 4).run(program);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

/// Some calls of an all-reduce, the last of them with `count`.
void call(World& world, const CollectiveOptions& options, Size count) {
  const auto plan = make_collective(world, Collective::kAllReduce, options);
  const Symm<std::byte> data = world.heap().allocate<std::byte>(4000, "data");
  const std::vector<std::byte> zeros(4000);
  world.copy_in(data.local(), zeros.data(), 4000);
  world.barrier();
  Stream stream = world.make_stream("main");
  for (int i = 0; i < 5; ++i) plan->run(stream, data, data, 1000);
  plan->run(stream, data, data, count);
  stream.synchronize();
}

TEST(Calls, OtherCountsAreNamed) {
  for (const AlgorithmInfo& info : collective_algorithms()) {
    if (info.collective != Collective::kAllReduce || info.name == "multimem") continue;
    EXPECT_THAT(error_of([&](World& world) {
                  call(world, {.max_count = 1000, .algorithm = info.name}, world.pe() == 2 ? 999 : 1000);
                }),
                AllOf(HasSubstr("call 6 of a plan"), HasSubstr("count 999"), HasSubstr("count 1000"),
                      HasSubstr("all_reduce " + info.name + " f32 sum")));
  }
}

TEST(Calls, OtherOperationsAreNamed) {
  EXPECT_THAT(error_of([](World& world) {
                call(world, {.op = world.pe() == 3 ? ReduceOp::kMax : ReduceOp::kSum, .max_count = 1000}, 1000);
              }),
              AllOf(HasSubstr("f32 sum"), HasSubstr("f32 max")));
}

TEST(Calls, ACountThatNoPlanTakesIsNotNoted) {
  EXPECT_EQ(error_of([](World& world) {
              const auto plan = make_collective(world, Collective::kBroadcast, {.max_count = 100});
              const Symm<std::byte> in = world.heap().allocate<std::byte>(400, "in");
              const Symm<std::byte> out = world.heap().allocate<std::byte>(400, "out");
              Stream stream = world.make_stream("main");
              if (world.pe() == 1) {
                EXPECT_THROW(plan->run(stream, in, out, 101), InvalidArgument);
              }
              plan->run(stream, in, out, 50);
              stream.synchronize();
            }),
            "");
}

}  // namespace
}  // namespace tandem::calls_test
