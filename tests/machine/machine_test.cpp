#include "tandem/machine.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/builtin_files.h"
#include "machine/machine_fields.h"
#include "tandem/error.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

Json builtin(std::string_view name) {
  for (const detail::BuiltinFile& machine : detail::builtin_machines())
    if (machine.name == name) return Json::parse(machine.text);
  throw InvalidArgument("no such builtin machine");
}

/// Returns the parser's error for a text, or "accepted".
std::string refusal(std::string_view text) {
  try {
    parse_machine(text, "test.json");
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "accepted";
}

/// The same for a builtin model with one change: `value` at a JSON pointer, or nothing there any more.
std::string refusal_with(const char* machine, const char* pointer, const Json& value) {
  Json json = builtin(machine);
  json[Json::json_pointer(pointer)] = value;
  return refusal(json.dump());
}
std::string refusal_without(const char* machine, const char* pointer) {
  Json patch = Json::array({{{"op", "remove"}, {"path", pointer}}});
  return refusal(builtin(machine).patch(patch).dump());
}

TEST(Curve, IsLinearBetweenPointsAndConstantOutside) {
  const Curve curve{{{1, 10}, {2, 20}, {4, 40}, {8, 30}}};
  EXPECT_DOUBLE_EQ(curve.at(0.5), 10);
  EXPECT_DOUBLE_EQ(curve.at(1), 10);
  EXPECT_DOUBLE_EQ(curve.at(3), 30);
  EXPECT_DOUBLE_EQ(curve.at(4), 40);
  EXPECT_DOUBLE_EQ(curve.at(6), 35);
  EXPECT_DOUBLE_EQ(curve.at(100), 30);
}

TEST(Machines, AllBuiltinModelsLoad) {
  EXPECT_THAT(machine_names(),
              ::testing::ElementsAre("h100x8", "h100x8-proxy", "h100x8-rail", "h200x2", "h200x2-calibrated", "h200x4",
                                     "h200x4-calibrated", "h200x8", "h800x8", "host", "mi300x8", "pcie-2numa"));
  for (const std::string& name : machine_names()) {
    const Machine machine = load_machine(name);
    EXPECT_EQ(machine.name, name);
    EXPECT_FALSE(machine.provenance.empty()) << name;
    // The rate of a transfer by blocks or copy engines never exceeds the port's.
    EXPECT_LE(machine.link.store_gbps.points.back().second, machine.link.port_gbps) << name;
    EXPECT_LE(machine.gpu.copy_engine_gbps, machine.link.port_gbps) << name;
    EXPECT_LE(machine.gpu.block_hbm_gbps.points.back().second, machine.gpu.hbm_gbps) << name;
    EXPECT_LE(machine.link.latency_us, machine.link.flag_us) << name;
  }
}

TEST(Machines, H200HasTheMeasuredFigures) {
  const Machine machine = load_machine("h200x4");
  EXPECT_EQ(machine.pes_per_node, 4);
  EXPECT_EQ(machine.gpu.sm_count, 132);
  EXPECT_DOUBLE_EQ(machine.link.port_gbps, 395);
  EXPECT_DOUBLE_EQ(machine.link.flag_us, 1.36);
  EXPECT_DOUBLE_EQ(machine.link.store_gbps.at(4), 182);
  EXPECT_DOUBLE_EQ(machine.link.load_gbps.at(132), 372);
  EXPECT_DOUBLE_EQ(machine.gpu.hbm_gbps, 4136);
  EXPECT_EQ(machine.link.fabric, Fabric::kSwitched);
  EXPECT_EQ(machine.nic.count_per_node, 0);
}

TEST(Machines, OthersHaveTheirFabrics) {
  EXPECT_DOUBLE_EQ(load_machine("h800x8").link.port_gbps, 160);
  EXPECT_EQ(load_machine("mi300x8").link.fabric, Fabric::kFullMesh);
  EXPECT_DOUBLE_EQ(load_machine("mi300x8").link.port_gbps, 48);
  EXPECT_EQ(load_machine("pcie-2numa").link.numa_nodes, 2);
  const Machine rail = load_machine("h100x8-rail");
  EXPECT_EQ(rail.nic.count_per_node, 8);
  EXPECT_EQ(rail.default_nodes, 2);
  EXPECT_EQ(rail.max_nodes, 1024);
}

TEST(Machines, ExplainShowsEveryFigureWithItsSource) {
  for (const std::string& name : machine_names()) {
    const Machine machine = load_machine(name);
    const std::string text = explain(machine);
    EXPECT_THAT(text, HasSubstr(machine.description));
    for (const Provenance& figure : machine.provenance) {
      EXPECT_THAT(text, HasSubstr(figure.field));
      EXPECT_THAT(text, HasSubstr(figure.source));
    }
  }
  const std::string text = explain(load_machine("h200x4"));
  EXPECT_THAT(text, HasSubstr("link.port_gbps               395 GB/s"));
  EXPECT_THAT(text, HasSubstr("[[1,46],[2,91]"));
}

TEST(Machines, AFileLoadsLikeABuiltin) {
  const std::string path = ::testing::TempDir() + "machine_test_model.json";
  Json json = builtin("h200x4");
  json["name"] = "mine";
  json["link"]["port_gbps"]["value"] = 123.5;
  std::ofstream(path) << json.dump(2);
  const Machine machine = load_machine(path);
  EXPECT_EQ(machine.name, "mine");
  EXPECT_DOUBLE_EQ(machine.link.port_gbps, 123.5);
}

TEST(Machines, AnUnknownNameIsToldWhatThereIs) {
  for (const char* name : {"h200x5", "", "."}) {
    try {
      load_machine(name);
      FAIL() << name;
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), HasSubstr(std::string("machine: '") + name + "' given"));
      EXPECT_THAT(error.what(), HasSubstr("h100x8, h100x8-proxy, h100x8-rail, h200x2"));
    }
  }
}

TEST(MachineFile, WhatIsNotJsonIsRefusedWithItsPlace) {
  EXPECT_THAT(refusal("{\n  \"name\": \"x\",\n  oops\n}"), HasSubstr("test.json: line 3, column 3: not JSON"));
  EXPECT_THAT(refusal(""), HasSubstr("line 1, column 1"));
  EXPECT_THAT(refusal("[]"), HasSubstr("the whole file: [] given, allowed is an object"));
  EXPECT_THAT(refusal("{\"name\": \"a\", \"name\": \"b\"}"), HasSubstr("name is given twice"));
  EXPECT_THAT(refusal("{\"name\": 1e999}"), HasSubstr("test.json: a number is too large"));
  EXPECT_THAT(refusal("{\"name\": NaN}"), HasSubstr("line 1, column 10"));
}

TEST(MachineFile, EveryMissingFigureIsNamed) {
  for (const char* machine : {"h200x4", "h100x8-rail", "pcie-2numa"})
    for (const Provenance& figure : load_machine(machine).provenance) {
      std::string pointer = "/" + figure.field;
      std::replace(pointer.begin(), pointer.end(), '.', '/');
      EXPECT_THAT(refusal_without(machine, pointer.c_str()), HasSubstr("test.json: " + figure.field + " is missing"));
      EXPECT_THAT(refusal_without(machine, (pointer + "/source").c_str()),
                  HasSubstr(figure.field + ".source is missing"));
    }
  EXPECT_THAT(refusal_without("h200x4", "/name"), HasSubstr("name is missing"));
  EXPECT_THAT(refusal_without("h200x4", "/link"), HasSubstr("link.fabric is missing"));
  EXPECT_THAT(refusal_without("h200x4", "/link/port_gbps/value"), HasSubstr("link.port_gbps.value is missing"));
  EXPECT_THAT(refusal_without("h200x4", "/link/port_gbps/unit"), HasSubstr("link.port_gbps.unit is missing"));
}

TEST(MachineFile, AbsurdValuesAreNamedWithWhatIsAllowed) {
  EXPECT_THAT(refusal_with("h200x4", "/link/port_gbps/value", -3),
              HasSubstr("link.port_gbps: -3 given, allowed is a number from 0.1 to 100000"));
  EXPECT_THAT(refusal_with("h200x4", "/link/port_gbps/value", 0), HasSubstr("link.port_gbps: 0 given"));
  EXPECT_THAT(refusal_with("h200x4", "/link/port_gbps/value", 1e6), HasSubstr("link.port_gbps: 1000000.0 given"));
  EXPECT_THAT(refusal_with("h200x4", "/link/port_gbps/value", "fast"), HasSubstr("link.port_gbps: \"fast\" given"));
  EXPECT_THAT(refusal_with("h200x4", "/link/port_gbps/value", nullptr), HasSubstr("link.port_gbps: null given"));
  EXPECT_THAT(refusal_with("h200x4", "/link/port_gbps", 395),
              HasSubstr("link.port_gbps: 395 given, allowed is an object"));
  EXPECT_THAT(refusal_with("h200x4", "/link/port_gbps/unit", "Gb/s"), HasSubstr("link.port_gbps.unit: \"Gb/s\" given"));
  EXPECT_THAT(refusal_with("h200x4", "/link/port_gbps/source", ""), HasSubstr("link.port_gbps.source: \"\" given"));
  EXPECT_THAT(refusal_with("h200x4", "/gpu/sm_count/value", 131.5),
              HasSubstr("gpu.sm_count: 131.5 given, allowed is a whole number from 1 to 4096"));
  EXPECT_THAT(refusal_with("h200x4", "/gpu/sm_count/value", 4294967428LL), HasSubstr("gpu.sm_count: 4294967428 given"));
  EXPECT_THAT(refusal_with("h200x4", "/link/multicast/value", 1),
              HasSubstr("link.multicast: 1 given, allowed is true or false"));
  EXPECT_THAT(refusal_with("h200x4", "/link/fabric/value", "ring"), HasSubstr("link.fabric: \"ring\" given"));
  EXPECT_THAT(refusal_with("h200x4", "/link/all_to_all_efficiency/value", 1.2), HasSubstr("from 0.1 to 1"));
  EXPECT_THAT(refusal_with("h200x4", "/link", 3), HasSubstr("link: 3 given, allowed is an object"));
}

TEST(MachineFile, CopyEnginesAreOneOrMore) {
  EXPECT_THAT(refusal_with("h200x4", "/gpu/copy_engines/value", 0),
              HasSubstr("gpu.copy_engines: 0 given, allowed is a whole number from 1 to 64"));
  EXPECT_EQ(refusal_with("h200x4", "/gpu/copy_engines/value", 64), "accepted");
}

/// Rates below a MB/s were none to the simulator, which has no limit for them.
TEST(MachineFile, RatesThatTheSimulatorCouldNotCountAreRefused) {
  Json rail = builtin("h100x8-rail");
  Json sockets = builtin("pcie-2numa");
  for (const Json& machine : {rail, sockets})
    for (const auto& [section, figures] : machine.items())
      for (const auto& [field, figure] : figures.items()) {
        const bool is_rate = field.ends_with("_gbps") || field == "gbps";
        if (!is_rate && !field.ends_with("_efficiency") && !field.ends_with("_share")) continue;
        const auto with = [&, section = section, field = field](double value) {
          Json changed = machine;
          Json& place = changed[section][field];
          (place.contains("points") ? place["points"][0][1] : place["value"]) = value;
          return refusal(changed.dump());
        };
        EXPECT_EQ(with(0.1), "accepted") << section << "." << field;
        for (const double value : {0.099, 1e-4, 0.0})
          EXPECT_THAT(with(value), HasSubstr(fmt::format("{}.{}: ", section, field))) << value;
        EXPECT_THAT(with(0.0999), HasSubstr(is_rate ? "from 0.1 to 100000" : "from 0.1 to 1"))
            << section << "." << field;
      }
}

TEST(MachineFile, CurvesAndTilesAreChecked) {
  const char* const curve = "/link/store_gbps/points";
  EXPECT_THAT(refusal_with("h200x4", curve, Json::array()), HasSubstr("link.store_gbps: [] given"));
  EXPECT_THAT(refusal_with("h200x4", curve, {{1, 2}, {1, 3}}), HasSubstr("link.store_gbps: [1,3] given"));
  EXPECT_THAT(refusal_with("h200x4", curve, {{0, 2}, {1, 3}}), HasSubstr("link.store_gbps: [0,2] given"));
  EXPECT_THAT(refusal_with("h200x4", curve, {{1, -2}, {2, 3}}), HasSubstr("link.store_gbps: -2 given"));
  EXPECT_THAT(refusal_with("h200x4", curve, {{1, 2, 3}, {2, 3, 4}}), HasSubstr("link.store_gbps: [1,2,3] given"));
  EXPECT_THAT(refusal_with("h200x4", "/link/store_gbps/value", 3), HasSubstr("link.store_gbps.value is not a field"));
  EXPECT_THAT(refusal_with("h200x4", "/gemm/tiles/points", {{128, 256}, {1, 2}}),
              HasSubstr("gemm.tiles: [128,256] given"));
  EXPECT_THAT(refusal_with("h200x4", "/gemm/tiles/points", {{128, 256, 2}, {8, 8, 1}}),
              HasSubstr("gemm.tiles: 2 given"));
  EXPECT_THAT(refusal_with("h200x4", "/gemm/tiles/points", {{4, 256, 1}, {8, 8, 1}}),
              HasSubstr("gemm.tiles: [4,256,1]"));
}

TEST(MachineFile, UnknownAndMisplacedFieldsAreRefused) {
  EXPECT_THAT(refusal_with("h200x4", "/link/port_gpbs", 3), HasSubstr("link.port_gpbs is not a field"));
  EXPECT_THAT(refusal_with("h200x4", "/processor", "tpu"),
              HasSubstr("processor: \"tpu\" given, allowed is \"gpu\" or \"cpu\""));
  EXPECT_THAT(refusal_with("h200x4", "/color", "red"), HasSubstr("color is not a field"));
  EXPECT_THAT(refusal_with("h200x4", "/gpu.sm_count", 3), HasSubstr("gpu.sm_count is not a field"));
  EXPECT_THAT(refusal_with("h200x4", "/link/port_gbps/note", "x"), HasSubstr("link.port_gbps.note is not a field"));
  const Json nic = builtin("h100x8-rail")["nic"];
  EXPECT_THAT(refusal_with("h200x4", "/nic", nic),
              HasSubstr("nic.count_per_node is given, but only machines with max_nodes above 1"));
  EXPECT_THAT(refusal_without("h100x8-rail", "/nic"), HasSubstr("nic.count_per_node is missing"));
  const Json sockets = builtin("pcie-2numa")["link"]["numa_nodes"];
  EXPECT_THAT(refusal_with("h200x4", "/link/numa_nodes", sockets), HasSubstr("link.numa_nodes is given, but only"));
  EXPECT_THAT(refusal_with("h100x8-rail", "/default_nodes/value", 2000), HasSubstr("default_nodes: 2000 given"));
  EXPECT_THAT(refusal_with("pcie-2numa", "/link/numa_nodes/value", 9), HasSubstr("link.numa_nodes: 9 given"));
}

TEST(GemmModel, AFullWaveTakesATilesTime) {
  const Machine machine = load_machine("h200x4");
  const GemmTileTimes one = gemm_tile_times(machine, 128, 256, {128 * 132, 256, 8192}, 132);
  EXPECT_EQ(one.last_us, one.whole_us);
  EXPECT_NEAR(gemm_alone_us(machine, 128 * 132, 256, 8192, 2, 132), machine.gemm.launch_us + one.whole_us, 1e-6);
  EXPECT_GT(gemm_alone_us(machine, 8192, 8192, 8192, 2, 66), 1.9 * gemm_alone_us(machine, 8192, 8192, 8192, 2, 132));
  EXPECT_EQ(best_gemm_tile(machine, {8192, 8192, 8192}, 132).m, 128);
}

TEST(GemmModel, AllSmsShareTheDepthOfALastWaveThatIsNotFull) {
  const Machine machine = load_machine("h200x4");
  const GemmTileTimes deep = gemm_tile_times(machine, 128, 256, {128 * (132 + 33), 256, 16384}, 132);
  EXPECT_LT(deep.last_us, 0.4 * deep.whole_us);
  const GemmTileTimes flat = gemm_tile_times(machine, 128, 256, {128 * (132 + 33), 256, 128}, 132);
  EXPECT_EQ(flat.last_us, flat.whole_us) << "sharing so little would take longer";
}

/// Between problems of nearly the same size there is neither a cliff nor a dip.
TEST(GemmModel, MoreWorkTakesLongerAndNoRateFallsFarBelowItsNeighbours) {
  const Machine machine = load_machine("h200x4");
  const auto tflops = [&](Size n) {
    return GemmShape{8192, n, 8192}.tflop() * 1e6 / gemm_alone_us(machine, 8192, n, 8192, 2, 132);
  };
  for (Size n = 512; n <= 16384; n += 128) EXPECT_GT(tflops(n + 128), 0.9 * tflops(n)) << n;
  const auto& rates = machine.gemm.sustained_tflops.points;
  for (std::size_t i = 1; i < rates.size(); ++i) EXPECT_LE(rates[i].second, rates[i - 1].second);
}

TEST(GemmModel, ElementSizeSetsTheRate) {
  const Machine machine = load_machine("h200x4");
  const double bf16 = gemm_alone_us(machine, 8192, 8192, 8192, 2, 132);
  EXPECT_LT(gemm_alone_us(machine, 8192, 8192, 8192, 1, 132), 0.6 * bf16);
  EXPECT_GT(gemm_alone_us(machine, 8192, 8192, 8192, 4, 132), 1.8 * bf16);
  EXPECT_GT(gemm_alone_us(machine, 8192, 8192, 8192, 8, 132), 10 * bf16);
}

TEST(GemmModel, FewRowsAreLimitedByTheMemory) {
  const Machine machine = load_machine("h200x4");
  const double weights_us = 8192.0 * 7168 * 2 / (machine.gemm.memory_gbps * 1e3);
  EXPECT_NEAR(gemm_alone_us(machine, 1, 8192, 7168, 2, 132), weights_us + machine.gemm.launch_us, 1);
  EXPECT_GT(gemm_alone_us(machine, 1, 8192, 7168, 2, 4), 3 * weights_us);
  Machine slow_copies = machine;
  slow_copies.gpu.block_hbm_gbps = {{{1, 10}}};
  EXPECT_EQ(gemm_alone_us(slow_copies, 1, 8192, 7168, 2, 132), gemm_alone_us(machine, 1, 8192, 7168, 2, 132));
}

/// The weights of the first product are 470 MB and leave the cache; those of the second are 34 MB and stay there. The
/// chunks of the third, of 117 MB, are tiles of one wave, which read them together.
TEST(GemmModel, ChunksOfRowsReadWeightsAgainThatTheCacheCannotHold) {
  const Machine machine = load_machine("h200x4");
  const auto factor = [&](Size n, int passes) {
    const auto us = [&](int times) {
      const GemmTileTimes tile = gemm_tile_times(machine, 128, 256, {512, n, 8192, 2, times}, 132);
      return tile.whole_us + tile.last_us;
    };
    return us(passes) / us(1);
  };
  EXPECT_GT(factor(28672, 4), 1.25);
  EXPECT_LT(factor(28672, 2), factor(28672, 4));
  EXPECT_EQ(factor(2048, 4), 1);
  EXPECT_EQ(factor(7168, 4), 1);
  EXPECT_THROW(gemm_tile_times(machine, 128, 256, {512, 512, 512, 2, 0}, 132), InvalidArgument);
}

TEST(GemmModel, EmptyProductsAndBadArguments) {
  const Machine machine = load_machine("h200x4");
  EXPECT_EQ(gemm_alone_us(machine, 0, 8192, 8192, 2, 132), 0);
  EXPECT_GT(gemm_alone_us(machine, 128, 128, 0, 2, 132), 0);
  EXPECT_THROW(gemm_alone_us(machine, -1, 8192, 8192, 2, 132), InvalidArgument);
  EXPECT_THROW(gemm_alone_us(machine, 8192, 8192, 8192, 3, 132), InvalidArgument);
  EXPECT_THROW(gemm_alone_us(machine, 8192, 8192, 8192, 2, 133), InvalidArgument);
  EXPECT_THROW(gemm_alone_us(machine, 8192, 8192, 8192, 2, 0), InvalidArgument);
  EXPECT_THROW(gemm_tile_times(machine, 0, 256, {8192, 8192, 8192}, 132), InvalidArgument);
}

}  // namespace
}  // namespace tandem
