// The processors that a process may use.
#include "host/processors.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

#include "host/world/devices.h"

namespace tandem::host {
namespace {

TEST(Processors, AreThoseOfTheAffinityWithinTheShareOfTheControlGroup) {
  EXPECT_EQ(processors(16, ""), 16);
  EXPECT_EQ(processors(16, "max 100000\n"), 16);
  EXPECT_EQ(processors(16, "200000 100000\n"), 2);
  EXPECT_EQ(processors(16, "250000 100000\n"), 3) << "a part of a processor counts";
  EXPECT_EQ(processors(4, "800000 100000\n"), 4);
  EXPECT_EQ(processors(16, "1000 100000\n"), 1);
  EXPECT_EQ(processors(0, ""), 1) << "the number is not known";
  EXPECT_EQ(processors(8, "nonsense"), 8);
  EXPECT_GE(processors(), 1);
}

TEST(Processors, AreForProxiesThatLookForWorkWhereNobodyElseNeedsThem) {
  using std::chrono::microseconds;
  EXPECT_EQ(HostDevices::search_of_proxy(1, 3), microseconds(0)) << "the PE, its proxy and what receives";
  EXPECT_EQ(HostDevices::search_of_proxy(1, 4), microseconds(100));
  EXPECT_EQ(HostDevices::search_of_proxy(8, 24), microseconds(0));
  EXPECT_EQ(HostDevices::search_of_proxy(8, 25), microseconds(100));
}

TEST(Processors, OfAThreadOnOneOfThemAreOne) {
  int counted = 0;
  std::thread([&counted] {
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(sched_getcpu(), &own);
    ASSERT_EQ(sched_setaffinity(0, sizeof own, &own), 0);
    counted = processors_of_affinity();
  }).join();
  EXPECT_EQ(counted, 1);
}

}  // namespace
}  // namespace tandem::host
