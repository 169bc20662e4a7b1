// Accesses that do not lie within one buffer.

#include <gtest/gtest.h>

#include "check/conformance.h"
#include "tandem/check_matcher.h"
#include "tandem/error.h"

namespace tandem::check_test {

namespace {

template <class Body>
CheckResult check_body(const Body& body) {
  CheckOptions options;
  options.pes = 2;
  options.schedules = 1;
  return check(
      [&body](World& world) {
        const Env env = make_env(world);
        Stream stream = world.make_stream("main");
        stream.launch<Kernel<Body>>({1, 64}, {body, env});
        stream.synchronize();
      },
      options);
}

TEST(Bounds, ALoadBeyondItsBufferIsNamed) {
  const CheckResult result = check_body([](auto& block, const Env& e) {
    block.template load<float>(e.data.local(), Range{Env::kCount - 1, Env::kCount + 1});
  });
  ASSERT_THAT(result, has_finding("out_of_bounds"));
  const Finding& finding = result.findings.front();
  EXPECT_EQ(finding.sites.front().operation, "load");
  EXPECT_EQ(finding.buffer.substr(0, 13), "data[31, 33) ") << finding.buffer;
}

TEST(Bounds, SoIsAPutIntoASmallerBuffer) {
  EXPECT_THAT(check_body([](auto& block, const Env& e) {
                if (block.pe() == 0) block.put(e.data + 1, e.other.local(), Env::kCount, 1);
              }),
              has_finding("out_of_bounds"));
}

TEST(Bounds, SoIsASignalOfAGridThatIsLargerThanItsWords) {
  EXPECT_THAT(check_body([](auto& block, const Env& e) { block.notify(e.words + 4096, 1, block.pe()); }),
              has_finding("out_of_bounds"));
}

TEST(Bounds, WhatGoesBeyondThePEsMemoryEndsTheRun) {
  const CheckResult result = check_body([](auto& block, const Env& e) {
    if (block.pe() == 0) block.put(e.data, e.other.local(), Size{1} << 40, 1);
  });
  EXPECT_THAT(result, has_finding("out_of_bounds"));
  EXPECT_THAT(result, has_finding("error"));
}

TEST(Bounds, ThereIsNoPutOfLessThanNothing) {
  const CheckResult result =
      check_body([](auto& block, const Env& e) { block.put(e.data, e.other.local(), -1, 1 - block.pe()); });
  ASSERT_THAT(result, has_finding("error"));
  EXPECT_NE(result.findings.front().missing.find("must not be negative"), std::string::npos) << result.text();
}

TEST(Bounds, ARoleOfOneWarpHasNoRoles) {
  const CheckResult result = check_body([](auto& block, const Env&) {
    block.template parallel_for<1>(1, [](auto& role, int) { role.template parallel_for<1>(1, [](auto&, int) {}); });
  });
  ASSERT_THAT(result, has_finding("error"));
  EXPECT_NE(result.findings.front().missing.find("roles must not be nested"), std::string::npos) << result.text();
}

TEST(Bounds, AStrategyIsOneOfThem) {
  CheckOptions options;
  options.strategy = static_cast<Strategy>(9);
  EXPECT_THROW(check([](World&) {}, options), InvalidArgument);
}

TEST(Bounds, AWholeBufferIsWithinItsBounds) {
  EXPECT_THAT(check_body([](auto& block, const Env& e) {
                const auto values = block.template load<float>(e.local, Range{0, Env::kCount});
                block.store(e.result, Range{0, Env::kCount}, values);
              }),
              is_clean());
}

}  // namespace

}  // namespace tandem::check_test
