// Every labelled program: the racy ones are found, the others are clean, within a node and between nodes.

#include "check/conformance.h"

#include <gtest/gtest.h>

#include <ostream>

namespace tandem::check_test {

namespace {

const std::vector<LabelledProgram>& programs() {
  static const Programs all = [] {
    Programs made;
    add_put_programs(made);
    add_get_programs(made);
    add_store_programs(made);
    add_signal_programs(made);
    add_wait_programs(made);
    add_atomic_programs(made);
    add_packet_programs(made);
    add_stream_programs(made);
    add_lane_programs(made);
    add_role_programs(made);
    add_gemm_programs(made);
    add_order_programs(made);
    return made;
  }();
  return all.all();
}

CheckResult run(const LabelledProgram& program, int pes_per_node) {
  CheckOptions options;
  options.pes = 3;
  options.pes_per_node = pes_per_node;
  options.schedules = 12;
  return check(
      [&](World& world) {
        const Env env = make_env(world);
        program.run(world, env);
      },
      options);
}

class Conformance : public ::testing::TestWithParam<std::size_t> {};

TEST_P(Conformance, IsLabelledRight) {
  const LabelledProgram& program = programs()[GetParam()];
  for (const int pes_per_node : {0, 1}) {
    if (program.place == Place::kOneNode && pes_per_node == 1) continue;
    if (program.place == Place::kManyNodes && pes_per_node == 0) continue;
    const CheckResult result = run(program, pes_per_node);
    EXPECT_EQ(result.clean(), !program.racy) << program.name << ", PEs a node: " << pes_per_node << '\n'
                                             << result.text();
    for (const Finding& finding : result.findings) {
      if (finding.kind == "hang") continue;  // what some schedules make of the race
      EXPECT_EQ(finding.sites.size(), 2U) << program.name;
      EXPECT_FALSE(finding.missing.empty()) << program.name;
      EXPECT_FALSE(finding.buffer.empty() && finding.signal.empty()) << program.name;
    }
  }
}

std::string test_name(const ::testing::TestParamInfo<std::size_t>& info) {
  std::string name = std::to_string(info.param) + "_";
  for (const char c : programs()[info.param].name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      name += c;
    else if (name.back() != '_')
      name += '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, Conformance, ::testing::Range<std::size_t>(0, programs().size()), test_name);

TEST(ConformanceSet, HasBothKindsInNumber) {
  std::size_t racy = 0;
  for (const LabelledProgram& program : programs()) racy += program.racy ? 1U : 0U;
  EXPECT_GE(programs().size(), 60U);
  EXPECT_GE(racy, 25U);
  EXPECT_GE(programs().size() - racy, 25U);
}

}  // namespace

}  // namespace tandem::check_test
