// The test of ShiftAdd: no race and no hang under twenty schedules, on any computer.

#include "shift_add.h"

#include <vector>

#include "tandem/advanced/check_matcher.h"

using namespace tandem;

// listing: test
TEST(ShiftAdd, HasNoRaceUnderAnySchedule) {
  const auto setup = [](World& world) -> ShiftAdd::Args {
    auto& heap = world.heap();
    const ShiftAdd::Args args{heap.allocate<float>(100, "x"), heap.allocate<float>(100, "received"),
                              heap.signals(2, "ready"),       heap.signals(2, "arrived"),
                              heap.epochs(2, "epochs"),       100};
    const std::vector<float> ones(100, 1.0F);  // a kernel must not use data that no kernel has written
    world.copy_in(args.x.local(), ones.data(), 100 * sizeof(float));
    return args;
  };
  EXPECT_THAT(check_kernel<ShiftAdd>({.blocks = 2}, setup, {.pes = 4, .schedules = 20}), is_clean());
}
// end of listing
