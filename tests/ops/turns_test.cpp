#include "ops/turns.h"

#include <gtest/gtest.h>

#include <vector>

#include "tandem/simulation.h"

namespace tandem {

namespace {

/// Notes its number when its turn comes.
class NotingPlan final : public OperatorPlan {
 public:
  NotingPlan(const OperatorOptions& options, int number, std::vector<int>& turns)
      : OperatorPlan(options), number_(number), turns_(turns) {}

 private:
  void enqueue(Stream&, const OperatorCall&) override { turns_.push_back(number_); }

  int number_;
  std::vector<int>& turns_;
};

TEST(Turns, EveryCallButThoseOfNoRowsIsTheOtherPlans) {
  Simulation simulation(load_machine("h200x2"), 1);
  std::vector<int> turns;
  simulation.run([&](World& world) {
    OperatorOptions options;
    options.m = options.n = options.k = 8;
    ops::Turns plan(std::make_unique<NotingPlan>(options, 0, turns), std::make_unique<NotingPlan>(options, 1, turns));
    Stream stream = world.make_stream("main");
    std::vector<float> data(64);
    for (const Size m : {8, 3, 0, 8, 1, 0, 0, 2}) plan.run(stream, m, data.data(), data.data(), data.data());
  });
  EXPECT_EQ(turns, (std::vector<int>{0, 1, 0, 1, 0}));
}

}  // namespace

}  // namespace tandem
