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
          plan->run(stream, unless("a"), unless("b"), unless("c"));
          stream.synchronize();
        });
      } catch (const InvalidArgument& refused) {
        error = refused.what();
      }
      EXPECT_EQ(error, missing.empty() ? "" : missing + ": a null address given, allowed is one of this PE's memory");
    }
}

}  // namespace
}  // namespace tandem
