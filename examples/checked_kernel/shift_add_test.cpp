// The test of a kernel of one's own: no race, no hang, under many schedules, on any computer.

#include "shift_add.h"

#include <vector>

#include "tandem/check_matcher.h"

using namespace tandem;

TEST(ShiftAdd, HasNoRaceUnderAnySchedule) {
  const auto setup = [](World& world) -> ShiftAdd::Args {
    auto& heap = world.heap();
    const auto x = heap.allocate<float>(100, "x");
    const std::vector<float> ones(100, 1);
    world.copy_in(x.local(), ones.data(), 100 * sizeof(float));
    return {x,
            heap.allocate<float>(100, "received"),
            heap.signals(2, "ready"),
            heap.signals(2, "arrived"),
            heap.epochs(2, "epochs"),
            100};
  };
  EXPECT_THAT(check_kernel<ShiftAdd>({.blocks = 2}, setup, {.pes = 4, .schedules = 20}), is_clean());
}
