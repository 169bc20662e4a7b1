// Shadow memory: intervals are counted however they come to be.

#include "check/shadow.h"

#include <gtest/gtest.h>

#include "tandem/error.h"

namespace tandem::checker {

namespace {

TEST(Shadow, CountsIntervalsThatACutMakes) {
  Shadow shadow;
  Clock none;
  std::vector<Conflict> conflicts;
  NewAccess access;
  access.record.stamp = {0, 1};
  access.after = &none;
  Size cells = 0;
  shadow.access({0, 100}, access, conflicts, cells);
  EXPECT_EQ(cells, 1);
  shadow.access({10, 20}, access, conflicts, cells);
  EXPECT_EQ(cells, 3);
  shadow.access({10, 20}, access, conflicts, cells);
  EXPECT_EQ(cells, 3);
  shadow.access({200, 300}, access, conflicts, cells);
  EXPECT_EQ(cells, 4);
  cells = Shadow::kMostCells;
  EXPECT_THROW(shadow.access({50, 60}, access, conflicts, cells), OutOfMemory);
}

}  // namespace

}  // namespace tandem::checker
