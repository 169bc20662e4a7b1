// Runs of an operator with other rows on one PE.
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
        const Symm<std::byte> memory = world.heap().allocate<std::byte>(Size{1} << 20, "matrices");
        Stream stream = world.make_stream("main");
        plan->run(stream, 512, memory.local(), memory.local(), memory.local());
        plan->run(stream, world.pe() == 1 ? 256 : 512, memory.local(), memory.local(), memory.local());
        stream.synchronize();
      });
    } catch (const InvalidArgument& refused) {
      error = refused.what();
    }
    EXPECT_THAT(error, ::testing::AllOf(::testing::HasSubstr("call 2 of a plan"), ::testing::HasSubstr(name(op)),
                                        ::testing::HasSubstr("count 256"), ::testing::HasSubstr("count 512")));
  }
}

}  // namespace
}  // namespace tandem
