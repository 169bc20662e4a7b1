// Tables of operators' constants: machines/operators/*.json.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "base/builtin_files.h"
#include "operators/resolve/table/operator_table.h"
#include "tandem/error.h"

namespace tandem::ops {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

/// The error of a builtin table after a change; empty: none.
std::string refusal(const std::function<void(Json&)>& change) {
  Json json = Json::parse(detail::builtin_operator_tables().front().text);
  change(json);
  try {
    parse_operator_table(json.dump(), "changed");
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(OperatorTable, EveryBuiltinFileIsTakenWithASourceForEachFigure) {
  EXPECT_FALSE(detail::builtin_operator_tables().empty());
  for (const detail::BuiltinFile& file : detail::builtin_operator_tables()) {
    const OperatorTable table = parse_operator_table(file.text, std::string(file.name));
    EXPECT_EQ(table.name, file.name);
    EXPECT_GT(table.provenance.size(), 30U);
    for (const Provenance& figure : table.provenance) EXPECT_NE(figure.source, "") << figure.field;
  }
  EXPECT_EQ(refusal([](Json&) {}), "");
}

TEST(OperatorTable, NamesWhatIsMissingOrUnknown) {
  EXPECT_EQ(refusal([](Json& json) { json.erase("name"); }), "operator table changed: name is missing (a text)");
  EXPECT_EQ(refusal([](Json& json) { json.erase("machines"); }),
            "operator table changed: machines is missing (a list of names)");
  EXPECT_EQ(refusal([](Json& json) { json.erase("gather"); }),
            "operator table changed: gather.few_columns is missing (a whole number from 0 to 1073741824)");
  EXPECT_EQ(refusal([](Json& json) { json["scatter"].erase("splits"); }),
            "operator table changed: scatter.splits is missing (a whole number from 1 to 8)");
  EXPECT_EQ(refusal([](Json& json) { json["scatter"]["splits"].erase("value"); }),
            "operator table changed: scatter.splits.value is missing (a whole number from 1 to 8)");
  EXPECT_EQ(refusal([](Json& json) { json["scatter"]["splits"].erase("source"); }),
            "operator table changed: scatter.splits.source is missing (a text)");
  EXPECT_EQ(refusal([](Json& json) { json["scatter"]["splitts"] = 1; }),
            "operator table changed: scatter.splitts is not a field of an operator table");
  EXPECT_EQ(refusal([](Json& json) { json["spread"] = Json::object(); }),
            "operator table changed: spread is not a field of an operator table");
  EXPECT_EQ(refusal([](Json& json) { json["scatter"]["splits"]["why"] = "so"; }),
            "operator table changed: scatter.splits.why is not a field of an operator table");
}

TEST(OperatorTable, RefusesNonsense) {
  const auto value = [](const char* section, const char* key, const Json& given) {
    return refusal([&](Json& json) { json[section][key]["value"] = given; });
  };
  EXPECT_EQ(value("scatter", "splits", 9),
            "operator table changed: scatter.splits: 9 given, allowed is a whole number from 1 to 8");
  EXPECT_THAT(value("scatter", "splits", 1.5), HasSubstr("scatter.splits: 1.5 given, allowed is a whole number"));
  EXPECT_THAT(value("scatter", "splits", "two"), HasSubstr("scatter.splits: \"two\" given"));
  EXPECT_THAT(value("measured", "collective_us", -1), HasSubstr("measured.collective_us: -1 given"));
  EXPECT_THAT(value("measured", "collective_bytes_per_us", 0), HasSubstr("measured.collective_bytes_per_us: 0 given"));
  EXPECT_THAT(value("predicted", "shown_share", 1.01), HasSubstr("allowed is a number from 0 to 1"));
  EXPECT_EQ(refusal([](Json& json) { json["measured"]["chain_us"]["unit"] = "ms"; }),
            "operator table changed: measured.chain_us.unit: \"ms\" given, allowed is \"us\"");
  EXPECT_THAT(refusal([](Json& json) { json["gather"] = 3; }), HasSubstr("gather: 3 given, allowed is an object"));
  EXPECT_THAT(refusal([](Json& json) { json["machines"] = "H200"; }), HasSubstr("machines: \"H200\" given"));
  EXPECT_THAT(refusal([](Json& json) { json["fabric"] = "ring"; }), HasSubstr("fabric: \"ring\" given"));
  EXPECT_THAT(refusal([](Json& json) { json = Json::array(); }), HasSubstr("the whole file: [] given"));
  EXPECT_THROW(parse_operator_table("{", "broken"), InvalidArgument);
}

TEST(OperatorTable, TheNearestOneIsThatOfTheFamilyThenOfTheFabricThenTheFirst) {
  const auto table = [](const char* name, std::vector<std::string> machines, std::optional<Fabric> fabric) {
    OperatorTable made;
    made.name = name;
    made.machines = std::move(machines);
    made.fabric = fabric;
    return made;
  };
  const std::vector<OperatorTable> tables{table("first", {"B200"}, {}), table("hopper", {"H200", "H100"}, {}),
                                          table("mesh", {"MI300X"}, Fabric::kFullMesh),
                                          table("switch", {}, Fabric::kSwitched)};
  const auto nearest = [&](const char* machine) { return nearest_table(tables, load_machine(machine)).name; };
  EXPECT_EQ(nearest("h200x4"), "hopper");
  EXPECT_EQ(nearest("h100x8-rail"), "hopper");
  EXPECT_EQ(nearest("h800x8"), "switch");
  EXPECT_EQ(nearest("mi300x8"), "mesh");
  EXPECT_EQ(nearest("pcie-2numa"), "first");
  EXPECT_EQ(operator_table(load_machine("mi300x8")).name, "nvidia-h200") << "the build has one";
}

}  // namespace
}  // namespace tandem::ops
