// The library that a program has loaded says which it is.
#include <gtest/gtest.h>

#include "tandem.h"

namespace tandem::test {
namespace {

TEST(Version, IsTheProjects) { EXPECT_STREQ(tandem_version(), TANDEM_PROJECT_VERSION); }

}  // namespace
}  // namespace tandem::test
