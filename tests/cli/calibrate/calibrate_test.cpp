#include "tools/tandem/calibrate/calibrated_model.cpp"

#include <gmock/gmock.h>

#include "cli/tool.h"

namespace tandem::cli {
namespace {

using ::testing::HasSubstr;
using testing::tandem;
using testing::TemporaryFolder;

Calibration example() {
  Calibration c;
  c.gpu_name = "GPU";
  c.gpus = 2;
  c.sm_count = 100;
  c.max_blocks_per_sm = 32;
  c.max_threads_per_sm = 2048;
  c.hbm_gbps = 4000;
  c.local_latency_us = 0.5;
  c.local_flag_us = 0.6;
  c.copy_engine_startup_us = 1.23456;
  c.copy_engine_gbps = c.copy_engine_local_gbps = c.port_gbps = 390.123;
  c.launch_us = 2;
  c.graph_node_us = 1;
  c.latency_us = c.load_latency_us = c.flag_us = 0.9;
  c.all_to_all_efficiency = 0.95;
  c.block_hbm_gbps = c.store_gbps = c.load_gbps = {{1, 40}, {100, 370}};
  return c;
}

TEST(Calibrate, WritesAModelOfWhatWasMeasuredOnTopOfItsBase) {
  const std::string text = calibrated_model(example(), "h200x4", "mine", "today");
  const Machine machine = parse_machine(text, "mine");
  EXPECT_EQ(machine.name, "mine");
  EXPECT_EQ(machine.pes_per_node, 2);
  EXPECT_EQ(machine.gpu.sm_count, 100);
  EXPECT_DOUBLE_EQ(machine.gpu.copy_engine_startup_us, 1.23);
  EXPECT_DOUBLE_EQ(machine.link.port_gbps, 390);
  EXPECT_DOUBLE_EQ(machine.link.store_gbps.at(100), 370);
  EXPECT_DOUBLE_EQ(machine.gemm.launch_us, load_machine("h200x4").gemm.launch_us);
  // No probe measures them.
  const std::set<std::string> assumed = {"gpu.reduce_gbps", "gpu.kernel_us", "gpu.block_sync_us", "gpu.l2_mb"};
  for (const Provenance& figure : machine.provenance)
    EXPECT_EQ(figure.source, figure.field.rfind("gemm", 0) == 0 || figure.field == "gpu.copy_engines" ||
                                     figure.field == "link.fabric" || assumed.contains(figure.field) ||
                                     figure.field == "link.multicast" || figure.field.find("nodes") != std::string::npos
                                 ? "as h200x4, not measured here"
                                 : "today")
        << figure.field;
}

TEST(Calibrate, RefusesWhatMakesNoModel) {
  EXPECT_THROW(calibrated_model(example(), "h300x4", "mine", "today"), InvalidArgument);
  Calibration broken = example();
  broken.flag_us = 0;
  EXPECT_THROW(calibrated_model(broken, "h200x4", "mine", "today"), InvalidArgument);
}

TEST(Calibrate, SaysWhyItCannotOrWritesTheFile) {
  const TemporaryFolder folder;
  const std::string file = folder / "mine.json";
  const auto outcome = tandem("calibrate --out " + file);
  if (outcome.code == 0) {
    EXPECT_EQ(load_machine(file).name, "mine");
    return;
  }
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_EQ(tandem("calibrate --out " + file + " --base h300x4").code, 2);
  EXPECT_THAT(tandem("calibrate --out /missing/x.json").err, HasSubstr("/missing/x.json"));
}

}  // namespace
}  // namespace tandem::cli
